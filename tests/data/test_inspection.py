import dataclasses
import hashlib
import os
import pathlib

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Data  # noqa: E402
from keras_vit.data import inspection, known_files, sources  # noqa: E402
from keras_vit.data.memory import Source  # noqa: E402
from keras_vit.data.readers import decoding  # noqa: E402
from tests import exiffiles, picturefiles  # noqa: E402

DATA = picturefiles.EXACT["gray.png"]


def inspect(path):
    """Returns the `Inspected` of one file."""
    return inspection.inspect_all([path])[0]


@pytest.fixture
def source(tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(4)]
    for path in paths:
        path.write_bytes(DATA)
    return Source(np.array(list(map(str, paths))), {"labels": np.zeros(4, "int32")}, ("a",), files=True)


def test_a_file_is_decoded_once_until_it_changes(tmp_path, monkeypatch):
    path, decoded, decode = tmp_path / "a.png", [], decoding.decode
    monkeypatch.setattr(decoding, "decode", lambda *args: decoded.append(1) or decode(*args))
    path.write_bytes(DATA)
    first = inspect(path)
    assert first.fault is None and first.size == (picturefiles.WIDTH, picturefiles.HEIGHT)
    assert first == inspect(str(path)) and len(decoded) == 1
    os.utime(path, (1, 1))
    assert inspect(path) == first and len(decoded) == 2  # the same bytes
    path.write_bytes(picturefiles.EXACT["color.png"])
    assert inspect(path).fault is None and inspect(path) != first
    path.write_bytes(DATA[:-30])
    assert inspect(path).fault


def test_faults_do_not_repeat_the_name(tmp_path):
    (tmp_path / "empty.png").touch()
    assert inspect(tmp_path / "empty.png").fault == "empty file"
    assert inspect(tmp_path / "none.png").fault == "No such file or directory"
    for name, (data, message) in picturefiles.REFUSED.items():
        (tmp_path / name).write_bytes(data)
        assert message.split(":")[0] in (reason := inspect(tmp_path / name).fault) and name not in reason
    for path in picturefiles.irregular(tmp_path):
        assert inspect(path).fault == "is not a regular file"


def test_contents_are_those_of_files_and_of_nothing_else(source, tmp_path):
    def contents(source):
        digests = np.array([list(file.digest) for file in inspection.inspect_all(source.images)], "uint8")
        return inspection.contents(train=dataclasses.replace(source, digests=digests))

    assert inspection.contents(train=source, validation=None) == {}  # pixels, say, or a stream
    found = contents(source)
    assert set(found) == {"train_contents"}
    (tmp_path / "2.png").write_bytes(DATA + b"\0")
    assert contents(source) != found
    (tmp_path / "2.png").write_bytes(DATA)
    assert contents(source) == found != contents(source.take(slice(3)))


def test_a_folder_s_hashes_are_those_of_its_files(tmp_path):
    for i in range(8):
        path = tmp_path / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(list(picturefiles.EXACT.values())[i])
    for split, part in (("all[:50%]", slice(None)), ("all[50%:]", slice(None)), ("all", slice(1, 3))):
        found = sources.load(Data(source=f"folder:{tmp_path}"), split).take(part)
        expected = [hashlib.blake2b(pathlib.Path(path).read_bytes(), digest_size=16).digest() for path in found.images]
        assert found.digests.tobytes() == b"".join(expected) and len(expected) > 1


def test_what_went_bad_is_refused(source, tmp_path):
    (tmp_path / "2.png").write_bytes(DATA[:-30])
    message = r"2.png' was readable when it was checked, and now is not: "
    with pytest.raises(ValueError, match=message) as raised, inspection.named(source):
        raise tf.errors.InvalidArgumentError(None, None, "a trace\nof many lines")
    assert "\n" not in str(raised.value) and raised.value.__suppress_context__
    (tmp_path / "2.png").unlink()
    with (
        pytest.raises(ValueError, match=r"2.png' was .* now is not: No such file or directory\.$"),
        inspection.named(source),
    ):
        raise tf.errors.NotFoundError(None, None, "no file")


def test_other_errors_are_left_alone(source):
    error = tf.errors.ResourceExhaustedError(None, None, "no memory")
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised, inspection.named(source):
        raise error
    assert raised.value is error
    with pytest.raises(KeyError), inspection.named(source):
        raise KeyError


def test_files_are_judged_together_as_alone(tmp_path):
    """Each file whole, without its end, and with a wrong bit."""
    data = [*picturefiles.EXACT.values(), *picturefiles.JPEGS.values(), *(d for d, _ in picturefiles.REFUSED.values())]
    data += [d for d, _ in (*exiffiles.every().values(), *exiffiles.ODD.values())]
    paths = [str(tmp_path / f"{i}.png") for i in range(4 * len(data))]
    for i, path in enumerate(paths):
        whole, bit = data[i // 4], i * 37 % len(data[i // 4])
        flipped = whole[:bit] + bytes([whole[bit] ^ 16]) + whole[bit + 1 :]
        pathlib.Path(path).write_bytes((whole, whole[:-3], whole[: len(whole) // 2], flipped)[i % 4])
    together, alone = inspection._inspect(paths), [inspection._inspect([path])[0] for path in paths]
    for path, one, other in zip(paths, together, alone):
        assert [np.asarray(part).tolist() for part in one] == [np.asarray(part).tolist() for part in other], path
    assert 100 < sum(isinstance(one, str) for one in together) < len(paths) - 100


def test_a_second_process_decodes_new_files_only(tmp_path, monkeypatch):
    """What else the data say is read at each start, such as a new class."""
    monkeypatch.setenv("KERAS_VIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(known_files, "SETTLED", -(10**12))
    for name, data in picturefiles.EXACT.items():
        path = tmp_path / "data" / ("ab"[len(name) % 2]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def load():
        inspection._known.cache_clear()
        return sources.load(Data(source=f"folder:{tmp_path / 'data'}"), "all")

    first = load()
    monkeypatch.setattr(inspection, "_inspect", None)
    second = load()
    np.testing.assert_array_equal(first.digests, second.digests)
    assert first.fingerprint() == second.fingerprint() and first.sizes() == second.sizes()
    monkeypatch.undo()
    monkeypatch.setenv("KERAS_VIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "c").mkdir()
    (tmp_path / "data" / "c" / "new.png").write_bytes(DATA)
    assert load().class_names == ("a", "b", "c") and len(load()) == len(first) + 1
    assert not [*(tmp_path / "data").rglob("*keras_vit*")]


def test_a_file_is_hashed_in_parts_as_its_bytes_are(tmp_path):
    path = tmp_path / "large.mp4"
    path.write_bytes(np.random.default_rng(0).bytes(3 * 2**20 + 1))
    np.testing.assert_array_equal(inspection.digest_of_file(path), inspection.digest_of(path.read_bytes()))

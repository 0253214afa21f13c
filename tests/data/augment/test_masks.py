import io
import os

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.data import known_files  # noqa: E402
from keras_vit.data.augment import masks  # noqa: E402
from keras_vit.utils.images import mask_pixels  # noqa: E402
from tests import picturefiles  # noqa: E402

VALUES = np.random.default_rng(0).integers(0, 4, (6, 9)).astype("uint8")
COLORS = np.random.default_rng(1).integers(0, 256, (256, 3)).astype("uint8")


def png(values=VALUES, mode="L", **settings):
    image, file = Image.fromarray(values), io.BytesIO()
    if mode == "P":
        image.putpalette(COLORS.tobytes())
    elif mode != image.mode:
        image = image.convert(mode)
    image.save(file, "PNG", **settings)
    return file.getvalue()


def few_bits(bits, colors):
    """Returns a PNG of the numbers 0, 1, 2, 3 ... in few bits, and these numbers."""
    values = np.arange(32).reshape(4, 8) % 2**bits
    rows = np.packbits((values[..., None] >> np.arange(bits)[::-1] & 1).reshape(4, -1).astype("uint8"), axis=1)
    palette = [picturefiles.chunk(b"PLTE", COLORS[: 2**bits].tobytes())] if colors == 3 else []
    return picturefiles.png(rows, bits, colors, 8, 4, *palette), values


def inspect(path):
    """Returns the `Mask` of one file."""
    return masks.inspect_all([path])[0]


KINDS = {
    "gray": (png(), VALUES),
    "palette": (png(mode="P"), VALUES),
    "transparent palette": (png(mode="P", transparency=0), VALUES),
    **{f"{bits} bits, {colors}": few_bits(bits, colors) for bits in (1, 2, 4) for colors in (0, 3)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_in_the_file_are_the_classes(kind, tmp_path):
    data, values = KINDS[kind]
    (tmp_path / "a.png").write_bytes(data)
    mask = inspect(tmp_path / "a.png")
    assert mask.fault is None and mask.size == values.shape[::-1]
    np.testing.assert_array_equal(mask.counts, np.bincount(values.reshape(-1), minlength=256))
    assert (mask.rewritten is None) == (kind == "gray")
    np.testing.assert_array_equal(mask_pixels(mask.rewritten or data), values)
    np.testing.assert_array_equal(masks.decode(tf.constant(mask.rewritten or data))[..., 0], values)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "I;16"])
def test_colors_and_alpha_are_no_classes(mode, tmp_path):
    Image.new(mode, (3, 4)).save(tmp_path / "a.png")
    mask = inspect(tmp_path / "a.png")
    assert mask.wrong_kind and "PNG of mode" in mask.fault


def test_a_photograph_is_no_mask(tmp_path):
    Image.new("L", (3, 4)).save(tmp_path / "a.png", "JPEG")
    assert inspect(tmp_path / "a.png")[:2] == ("JPEG of mode 'L'", True)


def test_faults_are_found_and_a_file_is_decoded_once(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    assert inspect(path)[:2] == ("No such file or directory", False)
    for cut in (30, 18, 13, 1):  # Pillow reads those that lack less than a chunk, TensorFlow does not
        path.write_bytes(png()[:-cut])
        mask = inspect(path)
        assert (mask.fault and not mask.wrong_kind) or masks.decode(tf.constant(path.read_bytes())).shape
    path.write_bytes(png())
    first = inspect(path)
    monkeypatch.setattr(masks, "decode", None)
    assert first.fault is None and inspect(str(path))[:4] == first[:4]
    os.utime(path, (1, 1))
    assert inspect(path).fault
    monkeypatch.undo()
    path.write_bytes(png())
    assert inspect(path).digest == first.digest
    assert [mask.size for mask in masks.inspect_all([path, path])] == [(9, 6)] * 2


def test_a_second_process_decodes_new_masks_and_those_that_are_written_again(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_VIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(known_files, "SETTLED", -(10**12))
    paths = [tmp_path / f"{i}.png" for i in range(len(KINDS))]
    for path, (data, _) in zip(paths, KINDS.values()):
        path.write_bytes(data)
    first = masks.inspect_all(paths)
    masks._known.cache_clear()
    monkeypatch.setattr(masks, "decode", None)
    second = masks.inspect_all(paths)
    for one, other in zip(first, second):
        np.testing.assert_array_equal(one.counts, other.counts)
        assert one._replace(counts=None) == other._replace(counts=None) and one.fault is None


def test_values_are_named_by_a_file_that_has_them(tmp_path):
    for name, values in (("a", VALUES * 0), ("b", VALUES)):
        (tmp_path / f"{name}.png").write_bytes(png(values))
    paths = [str(tmp_path / "a.png"), str(tmp_path / "b.png")]
    found = masks.named_values(masks.counts_of(np.array(paths)), np.array(paths))
    assert found == {0: paths[0], 1: paths[1], 2: paths[1], 3: paths[1]}
    held = [VALUES[..., None] * 0, VALUES[..., None]], [png(VALUES * 0), png()]
    for items in held:
        assert masks.named_values(masks.counts_of(items)) == {0: "mask 0", 1: "mask 1", 2: "mask 1", 3: "mask 1"}

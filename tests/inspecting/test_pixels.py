import io

import numpy as np
import pytest
from PIL import Image

from keras_vit.data import known_files
from keras_vit.inspecting import pixels
from keras_vit.inspecting.pictures import Pictures
from tests.inspecting.conftest import picture, save


def encoded(image, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def files(*paths):
    return Pictures([path.name for path in paths], [*map(str, paths)])


def test_equal_pixels_have_one_hash_in_any_format(tmp_path, cache):
    image = picture(0)
    gray = np.repeat(image[..., :1], 3, -1)
    turned = Image.Exif()
    turned[0x0112] = 6
    save(image, tmp_path / "a.png")
    save(image, tmp_path / "b.bmp")
    save(image, tmp_path / "c.webp", lossless=True)
    save(np.rot90(image), tmp_path / "d.png", exif=turned)  # as it is seen, the same
    save(gray, tmp_path / "e.png")
    save(gray[..., 0], tmp_path / "f.png")
    save(image[:, :-1], tmp_path / "g.png")
    found = pixels.scan(files(*sorted(tmp_path.glob("?.*"))))
    same = [digest.tobytes() for digest in found.digests]
    assert len({*same[:4]}) == 1 and same[4] == same[5] and len({*same}) == 3 and not found.faults
    arrays = Pictures(["0", "1", "2"], [image, gray[..., :1], encoded(image)], files=False)
    assert [digest.tobytes() for digest in pixels.scan(arrays).digests] == [same[0], same[4], same[0]]


def test_the_shape_counts():
    assert (
        pixels.summary(np.zeros((2, 8, 3), "uint8"))[0].tobytes()
        != pixels.summary(np.zeros((4, 4, 3), "uint8"))[0].tobytes()
    )


def test_thumbnails_do_not_depend_on_the_size():
    """Of 28 pixels, parts have no whole number of them; large pictures are made smaller first, which is less exact."""
    image = np.random.default_rng(0).integers(0, 256, (28, 30, 3)).astype("uint8")
    small = pixels.summary(image)
    for times, most in ((2, 1), (3, 1), (20, 12)):
        large = pixels.summary(image.repeat(times, 0).repeat(times, 1))
        for one, other in zip(small[1:], large[1:]):
            assert np.abs(one.astype(int) - other).max() <= most


def test_what_cannot_be_read_is_named(tmp_path, cache):
    save(picture(0), tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no image")
    (tmp_path / "c.png").write_bytes(encoded(picture(1))[:200])
    (tmp_path / "d.png").touch()
    found = pixels.scan(files(*(tmp_path / f"{name}.png" for name in "abcde")))
    assert [*found.faults] == [1, 2, 3, 4]
    assert "is not a PNG" in found.faults[1] and found.faults[3] == "empty file"
    assert "No such file" in found.faults[4] and str(tmp_path) not in "".join(found.faults.values())
    assert not found.digests[1:].any() and found.thumbs[0].any()


def test_files_are_read_once(tmp_path, cache, monkeypatch):
    """In another process too: what was read is in the cache, and an interrupted scan resumes there."""
    monkeypatch.setattr(known_files, "SETTLED", -(10**12))
    for i in range(3):
        save(picture(i), tmp_path / f"{i}.png")
    pictures = files(*sorted(tmp_path.glob("?.png")))
    pixels._known.cache_clear()
    first = pixels.scan(pictures)
    pixels._known.cache_clear()  # as in another process
    monkeypatch.setattr(pixels, "summary", lambda *_: pytest.fail("a file is read again"))
    again = pixels.scan(pictures)
    for one, other in zip(first[:3], again[:3]):
        np.testing.assert_array_equal(one, other)
    pixels._known.cache_clear()


def test_bands(tmp_path):
    values = np.random.default_rng(0).integers(0, 60_000, (20, 30, 5)).astype("uint16")
    other = values.copy()
    other[..., 4] //= 2
    for name, each in (("a", values), ("b", values), ("c", other), ("d", values // 2)):
        np.save(tmp_path / f"{name}.npy", each)
    found = pixels.scan(Pictures(list("abcd"), [str(tmp_path / f"{name}.npy") for name in "abcd"], folder=tmp_path))
    assert not found.faults and (found.digests[0] == found.digests[1]).all()
    assert len({digest.tobytes() for digest in found.digests}) == 3  # a copy is one in all bands
    assert np.abs(found.thumbs[0].astype(int) - found.thumbs[3]).max() <= 1
    shown = pixels.shown(tmp_path / "a.npy")
    assert shown.shape == (20, 30, 3) and shown.min() == 0 and shown.max() == 255

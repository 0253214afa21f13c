import io
import os
import pathlib
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from keras_vit import preprocess, vit
from keras_vit.utils import images
from tests import exiffiles, picturefiles
from tests.marks import few
from tests.small import peak

pytestmark = pytest.mark.backend
KINDS = picturefiles.EXACT | picturefiles.JPEGS


def model(channels):
    size = (picturefiles.HEIGHT, picturefiles.WIDTH)
    return vit("mu/4", image_size=size, channels=channels)  # resizes as TensorFlow does, here not at all


@few(1)
@pytest.mark.parametrize("channels", [1, 3])
def test_both_readers_find_the_same_pixels(channels, tmp_path):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    from keras_vit.data.augment.crops import evaluation_image
    from keras_vit.data.readers.decoding import decode
    from keras_vit.data.readers.image_files import Rule

    mine, differ, size = model(channels), [], (picturefiles.HEIGHT, picturefiles.WIDTH, channels)
    for name, data in KINDS.items():
        path = tmp_path / name
        path.write_bytes(data)
        with warnings.catch_warnings(action="error"):
            here = images.read_pixels(path, channels)
        encoded = tf.constant(images.encoded(path))
        there = decode(encoded, channels).numpy()
        assert here.shape == there.shape and here.shape[2] == channels, name
        turned = here.shape[:2] == (picturefiles.WIDTH, picturefiles.HEIGHT)
        assert turned == name.startswith("turned"), name
        # Of four inks TensorFlow makes colors by another rounding, and of colors gray in another order.
        most = {"cmyk.jpg": 3}.get(name, 0) or (channels == 1 and name in picturefiles.JPEGS)
        ours, theirs = preprocess(mine, path), evaluation_image(encoded, size, Rule())
        differ += [(name, "decoded")] if np.abs(here.astype(int) - there).max() > most else []
        differ += [(name, "resized")] if np.abs(ours - theirs).max() > most + (4 if turned else 0.01) else []
        differ += [(name, "kept")] if not turned and not np.array_equal(ours[0], here) else []
    assert not differ


def test_every_orientation_is_turned_upright(tmp_path):
    for name, (data, number) in exiffiles.every().items():
        (tmp_path / name).write_bytes(data)
        pixels, wanted = images.read_pixels(tmp_path / name, 3), exiffiles.upright(number)
        assert images.orientation(data) == number and images.image_size(data) == wanted.shape[:2] == pixels.shape[:2]
        if not name.endswith("jpg"):
            np.testing.assert_array_equal(pixels, wanted, name)
        np.testing.assert_array_equal(pixels, images.turned(images.turned(pixels, number), exiffiles.BACK[number]))
        with Image.open(tmp_path / name) as image:
            np.testing.assert_array_equal(images.plain_pixels(image, 3), pixels)
    with warnings.catch_warnings(action="error"):
        assert {name: images.orientation(data) for name, (data, _) in exiffiles.ODD.items()} == {
            name: number for name, (_, number) in exiffiles.ODD.items()
        }


@pytest.mark.skipif(not os.environ.get("KERAS_VIT_IMAGES"), reason="KERAS_VIT_IMAGES names no folder of photographs")
def test_photographs_are_decoded_alike():
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    from keras_vit.data.readers.decoding import decode

    for path in sorted(pathlib.Path(os.environ["KERAS_VIT_IMAGES"]).rglob("*.JPEG"))[:10]:
        here, there = images.read_pixels(path, 3), decode(tf.constant(images.encoded(path)), 3)
        np.testing.assert_array_equal(here, there.numpy())


def test_pixels_are_what_was_saved(tmp_path):
    for name, expected in {
        "gray.png": picturefiles.GRAY[..., None],
        "alpha.png": picturefiles.COLOR,
        "alpha.webp": picturefiles.COLOR,
        "moving.webp": picturefiles.COLOR,
        "moving.png": picturefiles.COLOR,
        "turned.png": np.rot90(picturefiles.COLOR, -1),
    }.items():
        (tmp_path / name).write_bytes(KINDS[name])
        np.testing.assert_array_equal(images.read_pixels(tmp_path / name, expected.shape[-1]), expected)
    values = np.arange(0, 2**16, 97).astype(">u2")[:600].reshape(20, 30)
    (tmp_path / "deep.png").write_bytes(picturefiles.png(values, 16, 0, 30, 20))
    for channels in (1, 3):
        found = images.read_pixels(tmp_path / "deep.png", channels)
        np.testing.assert_array_equal(found, np.repeat((values // 256)[..., None], channels, axis=2))


def test_gray_is_tensorflow_s_for_every_color():
    """But for one in ten thousand, which processors that add in another order round to the next value."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    steps = np.append(np.arange(0, 255, 4), 255)
    colors = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 65, 3).astype("uint8")
    found = images.plain_pixels(Image.fromarray(colors), 1)
    differences = np.abs(found.astype(int) - tf.image.rgb_to_grayscale(colors).numpy())
    assert differences.max() <= 1 and differences.mean() <= 1e-4


def test_what_is_not_read_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("decodes"))
    mine = model(3)
    for name, (data, reason) in picturefiles.REFUSED.items():
        (tmp_path / name).write_bytes(data)
        with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match=f"{name}' .*{reason}") as refused:
            images.encoded(tmp_path / name)
        assert "\n" not in str(refused.value) and str(refused.value).endswith(".")
        with pytest.raises(ValueError) as again:
            preprocess(mine, tmp_path / name)
        assert str(again.value) == str(refused.value)


def test_only_regular_files_are_opened(tmp_path, monkeypatch):
    paths = picturefiles.irregular(tmp_path)
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"opens {path}"))
    for path in paths:
        with pytest.raises(ValueError, match=rf"{path.name}' is not a regular file\.$"):
            images.encoded(path)


def test_a_link_to_a_file_is_read(tmp_path):
    (tmp_path / "a.png").write_bytes(KINDS["gray.png"])
    os.symlink("a.png", tmp_path / "b.png")
    assert images.encoded(tmp_path / "b.png") == images.encoded(str(tmp_path / "a.png")) == KINDS["gray.png"]


def test_a_file_of_too_many_bytes_is_not_opened(tmp_path, monkeypatch):
    with open(tmp_path / "sparse.png", "wb") as file:
        file.truncate(images.MOST_BYTES + 1)
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"opens {path}"))
    with pytest.raises(ValueError, match="sparse.png' is too large: it has more than 512 MiB"):
        images.encoded(tmp_path / "sparse.png")


def test_names_that_no_file_has(tmp_path):
    for path in (tmp_path / "none.png", tmp_path / "none" / "a.png"):
        with pytest.raises(FileNotFoundError, match=rf"^There is no file '{path}'\.$"):
            images.encoded(path)
    os.symlink("loop.png", tmp_path / "loop.png")
    for name in ("a\0b.png", str(tmp_path / "loop.png"), "n" * 300 + ".png"):
        with pytest.raises(ValueError, match="cannot be read: "):
            images.encoded(name)


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "cut.png").write_bytes(KINDS["alpha.png"][:-200])
    with pytest.raises(ValueError, match=r"cut.png' cannot be read as an image: [^\n]*\.$"):
        images.read_pixels(tmp_path / "cut.png", 3)


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX alone")
def test_a_name_may_be_no_utf_8(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.png"
    with open(name, "wb") as file:
        file.write(KINDS["gray.png"])
    path = os.fsdecode(name)
    assert images.encoded(path) == KINDS["gray.png"] and images.read_pixels(path, 1).shape[2] == 1


def test_pillow_s_images_are_read_as_files_are(tmp_path):
    for name in ("palette_alpha.png", "gray16.png", "moving.gif", "cmyk.jpg"):
        (tmp_path / name).write_bytes(KINDS[name])
        with Image.open(tmp_path / name) as image:
            np.testing.assert_array_equal(images.plain_pixels(image, 3), images.read_pixels(tmp_path / name, 3))
    for mode in ("F", "I"):
        with pytest.raises(ValueError, match=f"Received: mode '{mode}'"):
            images.plain_pixels(Image.new(mode, (4, 4)), 3)


def test_oblong_images_are_refused_before_they_fill_the_memory(tmp_path):
    Image.new("L", (60_000, 1)).save(tmp_path / "line.png")
    with pytest.raises(ValueError, match="line.png' is too oblong: it has 60000 x 1 pixels"):
        images.encoded(tmp_path / "line.png")
    Image.new("L", (100, 1)).save(tmp_path / "line.png")
    assert images.read_pixels(tmp_path / "line.png", 1).shape == (1, 100, 1)


@pytest.mark.parametrize("kind", ["L", "P"])
def test_masks_are_indices_gray_or_of_a_palette(kind):
    mask, file = np.random.default_rng(0).integers(0, 3, (5, 7)).astype("uint8"), io.BytesIO()
    picture = Image.fromarray(mask)
    if kind == "P":
        picture.putpalette(bytes(range(9, 0, -1)))
    picture.save(file, "PNG")
    for given in (file.getvalue(), np.bytes_(file.getvalue()), mask, mask[..., None]):
        found = images.mask_pixels(given)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, mask)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "I;16", "1"])
def test_what_else_is_in_a_file_is_kept(mode, tmp_path):
    rng, profile = np.random.default_rng(0), b"a color profile"
    image = Image.fromarray(rng.integers(0, 256, (6, 8, 4), "uint8"))
    image = (
        Image.new("I;16", (8, 6), 40_000)
        if mode == "I;16"
        else image.convert("RGB" if mode == "P" else mode).convert(mode)
    )
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated
    image.save(tmp_path / "a.png", icc_profile=profile, exif=exif)
    exif[0x010E] = "a leaf"
    image.save(tmp_path / "a.png", icc_profile=profile, exif=exif)
    larger = images.read_pixels(tmp_path / "a.png", 3).repeat(2, 0).repeat(2, 1)
    with images.opened(images.encoded(tmp_path / "a.png")) as original:
        images.save_like(original, larger, tmp_path / "b.png")
    with Image.open(tmp_path / "b.png") as saved:
        assert saved.size == (12, 16) and saved.info["icc_profile"] == profile
        assert saved.getexif() == {0x010E: "a leaf"}  # without the orientation: the pixels are upright
        gray = mode in ("L", "LA", "I;16", "1")
        assert saved.mode == ("L" if gray else "RGB") + "A" * mode.endswith("A")
        np.testing.assert_array_equal(np.asarray(saved.convert("RGB")), larger)
        if mode.endswith("A"):
            wanted = image.getchannel("A").rotate(-90, expand=True).resize((12, 16), Image.Resampling.BICUBIC)
            np.testing.assert_array_equal(np.asarray(saved.getchannel("A")), np.asarray(wanted))


def test_a_profile_of_other_channels_is_left_out(tmp_path):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 8, 3), "uint8"))
    image.convert("CMYK").save(tmp_path / "a.jpg", icc_profile=b"of ink")
    for file, pixels in (("a.jpg", np.asarray(image)), ("g.png", np.asarray(image))):
        if file == "g.png":
            image.convert("L").save(tmp_path / file, icc_profile=b"of gray")
        with images.opened(images.encoded(tmp_path / file)) as original:
            images.save_like(original, pixels, tmp_path / "b.png")
        with Image.open(tmp_path / "b.png") as saved:
            assert saved.mode == "RGB" and "icc_profile" not in saved.info


def test_exif_data_behind_the_pixels_are_kept(tmp_path):
    image, exif = Image.fromarray(np.zeros((4, 6, 3), "uint8")), Image.Exif()
    exif[0x010E] = "a leaf"
    image.save(tmp_path / "a.png", exif=exif)
    data = (tmp_path / "a.png").read_bytes()
    at = data.index(b"eXIf") - 4
    size = 12 + int.from_bytes(data[at : at + 4], "big")
    end = data.index(b"IEND") - 4
    (tmp_path / "a.png").write_bytes(data[:at] + data[at + size : end] + data[at : at + size] + data[end:])
    with images.opened(images.encoded(tmp_path / "a.png")) as original:
        images.save_like(original, np.asarray(image), tmp_path / "b.png")
    with Image.open(tmp_path / "b.png") as saved:
        assert saved.getexif() == {0x010E: "a leaf"}


@pytest.mark.parametrize("channels", [1, 3])
def test_few_rows_are_converted_at_a_time(channels, monkeypatch):
    whole = {name: images.plain_pixels(images.opened(data), channels) for name, data in KINDS.items()}
    monkeypatch.setattr(images, "STRIP", 3 * 4 * picturefiles.WIDTH)
    for name, data in KINDS.items():
        np.testing.assert_array_equal(images.plain_pixels(images.opened(data), channels), whole[name], name)
    monkeypatch.setattr(images, "STRIP", 2**16)
    picture = Image.new("RGB", (1500, 1000))
    picture.load()
    assert peak(lambda: images.plain_pixels(picture, channels)) < 1.2 * channels * 1500 * 1000 + 2**20


def test_large_images_are_decoded_one_at_a_time(tmp_path, monkeypatch):
    Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    inside, most = [], []

    def used(pixels):
        inside.append(pixels)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()

    for large, together in ((2**24, 4), (1000, 1)):
        monkeypatch.setattr(images, "LARGE", large)
        most.clear()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: images.read_pixels(tmp_path / "a.png", 3, used), range(4)))
        assert max(most) == together if together == 1 else max(most) > 1

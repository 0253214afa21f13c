import io
import os
import pathlib

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data  # noqa: E402
from keras_vit.data.augment import crops, cuts  # noqa: E402
from keras_vit.data.readers import decoding  # noqa: E402
from tests.marks import few  # noqa: E402

RNG = np.random.default_rng(0)
WAVES = np.sin(np.add.outer(np.arange(90) / 9, np.arange(120) / 14))[..., None] * [60, 40, 90] + [120, 90, 130]
PICTURE = np.clip(WAVES + RNG.normal(0, 5, (90, 120, 3)), 0, 255).astype("uint8")
INCEPTION = Augment(crop="inception")


def encoded(pixels=PICTURE, kind="PNG", mode=None, **settings):
    image, file = Image.fromarray(pixels), io.BytesIO()
    (image.convert(mode) if mode else image).save(file, kind, **settings)
    return tf.constant(file.getvalue())


def pillow(pixels, height, width, method="bilinear"):
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling[method.upper()])
    return np.asarray(image).astype("float32")


def training_image(item, *arguments):
    return crops.training_example({"images": item}, *arguments)["images"]


def inception_box(item, channels, area, numbers):
    shape, box = decoding.opened(item, channels)
    cut = cuts.draw_cut(shape, (8, 8, channels), Augment(crop="inception", crop_area=area), numbers)
    return box(cut.start, cut.extent)


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(24, 24, 3), (30, 17, 3), (100, 200, 3)])
def test_evaluation_resizes_the_whole_image_as_pillow_does(size, method):
    for item in (encoded(), tf.constant(PICTURE)):
        image = crops.evaluation_image(item, size, Data(method=method)).numpy()
        assert image.shape == size and image.dtype == np.float32
        np.testing.assert_allclose(image, pillow(PICTURE, *size[:2], method), atol=1.5)


@pytest.mark.parametrize(
    "size, resize, whole",
    [
        ((24, 24, 3), 28, (28, 37)),  # 90 x 120 to a shorter side of 28
        ((24, 24, 3), 24, (24, 32)),
        ((40, 20, 3), 30, (60, 80)),  # an oblong model: 60 x 30 fits inside
        ((20, 60, 3), 20, (45, 60)),
        ((24, 24, 3), (30, 28), (30, 28)),  # both sides
    ],
)
def test_evaluation_cuts_out_the_center(size, resize, whole):
    image = crops.evaluation_image(encoded(), size, Data(resize=resize)).numpy()
    top, left = ((w - s) // 2 for w, s in zip(whole, size))
    reference = pillow(PICTURE, *whole)[top : top + size[0], left : left + size[1]]
    np.testing.assert_allclose(image, reference, atol=1.01)


def test_without_antialias_pixels_are_passed_over():
    stripes = np.tile(np.array([0, 0, 0, 255], "uint8")[:, None, None], (20, 80, 3))
    smooth, rough = (
        crops.evaluation_image(tf.constant(stripes), (8, 8, 3), Data(antialias=antialias)).numpy()
        for antialias in (True, False)
    )
    assert np.abs(smooth - 255 / 4).max() < 10 and rough.min() == 0 and rough.max() > 120


@few(2)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("subsampling", [0, 2])
def test_a_cut_out_jpeg_is_what_cutting_out_of_the_whole_gives(mode, subsampling):
    jpeg = encoded(kind="JPEG", mode=mode, quality=90, **({} if mode == "L" else {"subsampling": subsampling}))
    whole = tf.image.decode_jpeg(jpeg, channels=3, dct_method="INTEGER_ACCURATE")
    for channels in (3, 1):
        pixels = whole if channels == 3 else tf.image.rgb_to_grayscale(whole)
        for numbers in RNG.random((5, 4)):
            numbers = tf.constant(numbers, "float32")
            cut = inception_box(jpeg, channels, 0.05, numbers).numpy().astype(int)
            reference = inception_box(pixels, channels, 0.05, numbers).numpy().astype(int)
            assert cut.shape == reference.shape
            difference = np.abs(cut - reference)
            assert difference.mean() < 0.6 and difference[2:-2, 2:-2].max(initial=0) <= 4  # color at the box's edge


@pytest.mark.parametrize("crop", ["inception", None])
@pytest.mark.parametrize("kind, mode", [("PNG", "RGB"), ("PNG", "P"), ("JPEG", "L"), ("JPEG", "CMYK"), ("BMP", "RGB")])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_kind_of_file_is_cut(crop, kind, mode, channels):
    settings, size = Augment(crop=crop), (32, 24, channels)
    image = training_image(encoded(kind=kind, mode=mode), size, Data(), settings, tf.fill([4], 0.3)).numpy()
    assert image.shape == size and image.dtype == np.float32 and image.min() >= 0 and image.max() <= 255
    assert image.std() > 5


def test_without_a_crop_training_sees_the_whole_image():
    image = training_image(encoded(), (24, 24, 3), Data(), Augment(), tf.zeros(4)).numpy()
    np.testing.assert_allclose(image, pillow(PICTURE, 24, 24), atol=1.01)


def test_cuts_are_shrunk_by_area_and_enlarged_bilinearly():
    for height, width, method in ((45, 60, "box"), (30, 24, "box"), (100, 200, "bilinear"), (100, 100, "plain")):
        image = crops._quick_resize(tf.constant(PICTURE), (height, width), True).numpy()
        if method == "plain":  # one side longer, the other shorter
            np.testing.assert_array_equal(image, crops._quick_resize(tf.constant(PICTURE), (height, width), False))
        else:
            np.testing.assert_allclose(image, pillow(PICTURE, height, width, method), atol=1.5)
        plain = crops._quick_resize(tf.constant(PICTURE), (height, width), False)
        np.testing.assert_array_equal(plain, tf.image.resize(PICTURE, (height, width)))


def test_cuts_are_flipped_by_their_last_number():
    settings = Augment(crop="inception", flip=True)
    flipped, kept = (
        training_image(encoded(), (32, 32, 3), Data(), settings, tf.constant([0.4, 0.7, 0.0, last])).numpy()
        for last in (0.49, 0.5)
    )
    np.testing.assert_allclose(flipped[:, ::-1], kept, atol=1e-3)
    assert np.abs(flipped - kept).mean() > 5


@pytest.mark.skipif("KERAS_VIT_IMAGES" not in os.environ, reason="KERAS_VIT_IMAGES is not set")
def test_real_photographs_are_cut_as_the_whole_ones_would_be():
    for path in sorted(pathlib.Path(os.environ["KERAS_VIT_IMAGES"]).rglob("*.JPEG"))[:10]:
        jpeg, numbers = tf.io.read_file(str(path)), tf.constant(RNG.random(4), "float32")
        cut, reference = (
            training_image(item, (64, 64, 3), Data(), INCEPTION, numbers).numpy()
            for item in (jpeg, decoding.decode(jpeg, 3))
        )
        assert np.abs(cut - reference).mean() < 0.5 and np.abs(cut - reference)[2:-2, 2:-2].max() < 4

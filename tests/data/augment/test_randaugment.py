"""Each operation is compared with Pillow, by the calls that timm makes."""

import functools
import math
import os
import pathlib

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
from PIL import Image, ImageEnhance, ImageOps  # noqa: E402

from keras_vit.data.augment.randaugment import OPERATIONS, randaugment  # noqa: E402
from keras_vit.data.draws import draws  # noqa: E402

RNG = np.random.default_rng(0)
SMOOTH = np.clip(
    np.add.outer(np.linspace(10, 200, 33), np.linspace(0, 50, 28))[..., None] + RNG.normal(0, 15, (33, 28, 3)), 0, 255
).astype("uint8")
NOISE = RNG.integers(0, 256, (33, 28, 3)).astype("uint8")
FLAT = np.full((9, 7, 3), 77, "uint8")
GRAY = (128, 128, 128)


def affine(image, matrix):
    return image.transform(image.size, Image.AFFINE, matrix, resample=Image.NEAREST, fillcolor=GRAY)


PILLOW = {
    "AutoContrast": lambda i, m, s: ImageOps.autocontrast(i),
    "Equalize": lambda i, m, s: ImageOps.equalize(i),
    "Invert": lambda i, m, s: ImageOps.invert(i),
    "Rotate": lambda i, m, s: i.rotate(s * 30 * m, resample=Image.NEAREST, fillcolor=GRAY),
    "Posterize": lambda i, m, s: i.point([v & ~(2 ** (8 - min(max(int(4 * m), 1), 8)) - 1) for v in range(256)] * 3),
    "Solarize": lambda i, m, s: ImageOps.solarize(i, int(256 * m)),
    "Color": lambda i, m, s: ImageEnhance.Color(i).enhance(0.1 + 1.8 * m),
    "Contrast": lambda i, m, s: ImageEnhance.Contrast(i).enhance(0.1 + 1.8 * m),
    "Brightness": lambda i, m, s: ImageEnhance.Brightness(i).enhance(0.1 + 1.8 * m),
    "Sharpness": lambda i, m, s: ImageEnhance.Sharpness(i).enhance(0.1 + 1.8 * m),
    "ShearX": lambda i, m, s: affine(i, (1, 0.3 * m * s, 0, 0, 1, 0)),
    "ShearY": lambda i, m, s: affine(i, (1, 0, 0, 0.3 * m * s, 1, 0)),
    "TranslateX": lambda i, m, s: affine(i, (1, 0, s * m * 100 / 224 * i.size[0], 0, 1, 0)),
    "TranslateY": lambda i, m, s: affine(i, (1, 0, 0, 0, 1, s * m * 100 / 224 * i.size[1])),
    "SolarizeAdd": lambda i, m, s: i.point([min(255, v + int(110 * m)) if v < 128 else v for v in range(256)] * 3),
}
MOVES = {"Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"}


def images():
    yield from (SMOOTH, NOISE, FLAT)
    folder = os.environ.get("KERAS_VIT_IMAGES")
    for path in sorted(pathlib.Path(folder).rglob("*.JPEG"))[:3] if folder else ():
        yield np.asarray(Image.open(path).convert("RGB").resize((96, 80)))


@pytest.mark.parametrize("name", PILLOW)
@pytest.mark.parametrize("magnitude", [0.0, 0.7, 1.5, 1.97])
def test_an_operation_is_pillows(name, magnitude):
    for pixels in images():
        for sign in (-1.0, 1.0) if name in MOVES else (1.0,):  # the others have none
            ours = OPERATIONS[name](tf.constant(pixels), magnitude, tf.constant(sign), tf.zeros(2)).numpy()
            theirs = np.asarray(PILLOW[name](Image.fromarray(pixels), magnitude, sign))
            assert ours.dtype == np.uint8 and ours.shape == theirs.shape
            differs = (ours.astype(int) != theirs).any(-1)
            if name in MOVES:  # a pixel may lie on the border of two
                assert differs.mean() < 0.01, (name, magnitude, differs.mean())
            else:
                difference = np.abs(ours.astype(int) - theirs).max()
                assert difference <= 1 and differs.mean() < 0.01, (name, magnitude, difference, differs.mean())


def test_posterize_is_pillows_own_from_one_bit_on():
    for bits in range(1, 9):
        ours = OPERATIONS["Posterize"](tf.constant(NOISE), bits / 4, None, None).numpy()
        np.testing.assert_array_equal(ours, np.asarray(ImageOps.posterize(Image.fromarray(NOISE), bits)))


def test_cutout_is_one_gray_square_cut_off_at_the_border():
    white = tf.fill((224, 224, 3), tf.constant(255, tf.uint8))
    for center, count in (((0.5, 0.5), 80 * 80), ((0.0, 0.5), 40 * 80), ((0.0, 0.0), 40 * 40)):
        cut = OPERATIONS["Cutout"](white, 1.0, None, tf.constant(center)).numpy()
        assert (cut == 128).all(-1).sum() == count and set(np.unique(cut)) == {128, 255}


@functools.cache
def compiled(count, magnitude):
    """RandAugment as a graph of (images, epoch, position): the pipeline has it in one, and it is many times faster."""
    return tf.function(lambda images, epoch, first: randaugment(images, count, magnitude, draws(1, epoch, first)))


def run(images, count, magnitude, epoch, first):
    return compiled(count, magnitude)(images, tf.constant(epoch, "int64"), tf.constant(first, "int64")).numpy()


def test_all_sixteen_are_drawn_alike_and_images_draw_for_themselves():
    assert len(OPERATIONS) == 16
    images = tf.cast(tf.tile(SMOOTH[None], (3000, 1, 1, 1)), "float32")
    changed = run(images, 1, 7.0, 0, 0)
    kinds = {}
    for image in changed:
        kinds[image.tobytes()] = kinds.get(image.tobytes(), 0) + 1
    several = [count for count in kinds.values() if count > 40]
    # 10 operations without a sign, 5 with one, each half as often; cutout is at another place each time
    assert len(several) == 20
    expected = 3000 / 16
    assert all(abs(c - expected) < 6 * math.sqrt(expected) or abs(c - expected / 2) < 6 * math.sqrt(expected / 2)
               for c in several)  # fmt: skip


def test_the_same_draws_give_the_same_images():
    images = tf.cast(RNG.integers(0, 256, (40, 16, 12, 1)), "float32")
    whole = run(images, 2, 9.0, 2, 0)
    np.testing.assert_array_equal(whole, run(images, 2, 9.0, 2, 0))
    np.testing.assert_array_equal(whole[30:], run(images[30:], 2, 9.0, 2, 30))
    assert (whole != run(images, 2, 9.0, 3, 0)).any(axis=(1, 2, 3)).mean() > 0.5

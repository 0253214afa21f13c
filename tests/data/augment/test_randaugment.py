import functools
import math

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.augment.operations import OPERATIONS  # noqa: E402
from keras_vit.data.augment.randaugment import randaugment  # noqa: E402
from keras_vit.data.draws import draws  # noqa: E402

RNG = np.random.default_rng(0)
SMOOTH = np.clip(
    np.add.outer(np.linspace(10, 200, 33), np.linspace(0, 50, 28))[..., None] + RNG.normal(0, 15, (33, 28, 3)), 0, 255
).astype("uint8")


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

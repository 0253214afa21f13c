import math

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.draws import draws  # noqa: E402
from keras_vit.data.operations import OPERATIONS  # noqa: E402
from keras_vit.data.randaugment import randaugment  # noqa: E402

RNG = np.random.default_rng(0)
SMOOTH = np.clip(
    np.add.outer(np.linspace(10, 200, 33), np.linspace(0, 50, 28))[..., None] + RNG.normal(0, 15, (33, 28, 3)), 0, 255
).astype("uint8")


def test_all_sixteen_are_drawn_alike_and_images_draw_for_themselves():
    assert len(OPERATIONS) == 16
    images = tf.cast(tf.tile(SMOOTH[None], (3000, 1, 1, 1)), "float32")
    changed = randaugment(images, 1, 7.0, draws(1, 0, 0)).numpy()
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
    whole = randaugment(images, 2, 9.0, draws(1, 2, 0)).numpy()
    np.testing.assert_array_equal(whole, randaugment(images, 2, 9.0, draws(1, 2, 0)).numpy())
    np.testing.assert_array_equal(whole[30:], randaugment(images[30:], 2, 9.0, draws(1, 2, 30)).numpy())
    assert (whole != randaugment(images, 2, 9.0, draws(1, 3, 0)).numpy()).any(axis=(1, 2, 3)).mean() > 0.5

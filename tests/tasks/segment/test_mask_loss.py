import keras
import numpy as np
import pytest
from scipy.special import expit

from keras_vit.tasks.segment import mask_loss

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def apart(logits, truth, entropy, dice):
    """The two losses of a pair of masks, by their definitions."""
    p = expit(logits.astype("float64"))
    cross = -np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p))
    return entropy * cross + dice * (1 - (2 * (p * truth).sum() + 1) / (p.sum() + truth.sum() + 1))


def test_all_pairs_and_those_at_one_index():
    masks, truth = RNG.normal(size=(2, 4, 15)).astype("float32"), RNG.integers(0, 2, (2, 3, 15)).astype("float32")
    want = np.array([[[apart(m, t, 3, 2) for m in image] for t in objects] for image, objects in zip(masks, truth)])
    found = keras.ops.convert_to_numpy(mask_loss.costs(masks, truth, 3.0, 2.0))
    np.testing.assert_allclose(found, want, rtol=1e-5)
    pairs = keras.ops.convert_to_numpy(mask_loss.paired(masks[:, :3], truth, 3.0, 2.0))
    np.testing.assert_allclose(pairs, np.diagonal(want, axis1=1, axis2=2), rtol=1e-5)


def test_a_cell_has_the_value_of_its_middle():
    maps = np.full((1, 6, 9, 1), -1, "int32")
    maps[0, :3, :], maps[0, 3:, 4:] = 1001, 7
    ids, truth = mask_loss.true_masks(maps, 6, 3)  # cells of 3 x 3 pixels
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(ids), [[1001, 7, -1]])
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(truth)[0, :2].reshape(2, 2, 3), [[[1, 1, 1], [0, 0, 0]], [[0, 0, 0], [0, 1, 1]]]
    )
    with pytest.raises(ValueError, match="images' aspect ratio, 6 to 9. Received: 5 cells"):
        mask_loss.true_masks(maps, 5, 3)


def test_the_largest_objects_come_first():
    values = np.array([[7, 7, 7, -1, -1, -1, -1, 3, 3, 2000, -4, -4], [-1] * 12])
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(mask_loss.largest(values, 2)), [[7, 3], [-1, -1]])
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(mask_loss.largest(values, 5)), [[7, 3, 2000, -1, -1], [-1] * 5]
    )

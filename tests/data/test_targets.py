"""A target is one row: each row has what its readers and the changes of its image need."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.config import Data  # noqa: E402
from keras_vit.data import sources, targets  # noqa: E402

RNG = np.random.default_rng(0)
BATCH = RNG.integers(0, 200, (12, 9, 7, 1)).astype("uint8")
IMAGES = np.zeros((2, 4, 4, 3), "uint8")
PICTURES = ("images", "references")  # of files alone, or made of the images
VALUES = {  # of two images
    "labels": [1, 0],
    "multilabels": [[1, 0], [1, 1]],
    "numbers": [[1.5], [2.5]],
    "texts": ["one", "two"],
    "bounding_boxes": [[[0, 0, 0.5, 0.5, 1]], [[0.5, 0.5, 1, 1, 0]]],
    "depths": np.ones((2, 4, 4, 1), "float32"),
    "segmentation_masks": np.ones((2, 4, 4, 1), "uint8"),
    "instance_masks": np.array([1001, -3, -1, 0] * 8, "int32").reshape(2, 4, 4, 1),
}


def stated(task):
    return task.targets if isinstance(task.targets, tuple) else ()  # of others an option decides


def test_a_row_is_complete():
    """What has a place in the image follows every change of place; tasks name no target without a row."""
    for name, kind in targets.KINDS.items():
        placed = [kind.flip, kind.shift, kind.warp]
        assert all(placed) or not any([*placed, kind.cut]), name
        assert kind.usual and (name in PICTURES or (kind.values and kind.array)), name
    tasks = [
        value for value in vars(keras_vit).values() if isinstance(value, type) and issubclass(value, keras_vit.Task)
    ]
    assert tasks and {name for task in tasks for name in stated(task)} <= {*targets.KINDS}


def test_classes_in_another_order_are_followed():
    for name in ("labels", "multilabels", "bounding_boxes"):

        class Own(keras_vit.Task):
            targets = (name,)

        source = sources.of_caller((IMAGES, VALUES[name]), Data(), Own(), (4, 4, 3), ("a", "b"))
        found = sources.aligned(source, ("b", "c", "a"))
        expected = {"labels": [0, 2], "multilabels": [[0, 0, 1], [1, 0, 1]], "bounding_boxes": [[0], [2]]}[name]
        value = found.targets[name]
        assert (value[..., 4] if name == "bounding_boxes" else value).tolist() == expected


@pytest.mark.parametrize("change", ["flip", "shift", "warp"])
def test_whole_pixels_move_exactly_and_255_is_outside(change):
    far = RNG.integers(-4, 5, (12, 2))
    arguments = {
        "flip": [tf.constant(RNG.random(12) < 0.5)],
        "shift": [3, tf.constant(RNG.integers(0, 7, (12, 2)), "int32")],
        "warp": [tf.constant([[1, 0, x, 0, 1, y, 0, 0] for y, x in far], "float32")],
    }[change]
    examples = {"images": tf.constant(BATCH, "float32"), "segmentation_masks": tf.constant(BATCH), "labels": far}
    examples["depths"] = examples["images"] + 1.5
    examples["instance_masks"] = tf.cast(BATCH, "int32") * 65537 + 1  # more than float32 tells apart
    moved = targets.moved(examples, change, *arguments)
    ones = targets.moved({"images": tf.ones_like(examples["images"])}, change, *arguments)["images"]
    masks = moved["segmentation_masks"].numpy()
    objects = moved["instance_masks"].numpy()
    assert objects.dtype == np.int32 and objects.max() > 2**23
    np.testing.assert_array_equal(objects, np.where(ones == 0, -1, moved["images"].numpy().astype("int32") * 65537 + 1))
    assert moved["labels"] is far and masks.dtype == np.uint8
    np.testing.assert_array_equal(masks == targets.OUTSIDE, ones == 0)
    np.testing.assert_array_equal(np.where(masks == targets.OUTSIDE, 0, masks), moved["images"])
    np.testing.assert_array_equal(moved["depths"], np.where(ones == 0, 0, moved["images"] + 1.5))
    assert (masks != BATCH).any() and ((masks == targets.OUTSIDE).any() != (change == "flip"))


def test_only_the_chosen_are_flipped():
    chosen = np.arange(12) % 3 == 0
    found = targets.moved({"images": tf.constant(BATCH)}, "flip", tf.constant(chosen))["images"].numpy()
    np.testing.assert_array_equal(found[chosen], BATCH[chosen, :, ::-1])
    np.testing.assert_array_equal(found[~chosen], BATCH[~chosen])

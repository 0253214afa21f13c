"""A box goes where its image goes: seen by rectangles that are drawn as images."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data  # noqa: E402
from keras_vit.data import targets  # noqa: E402
from keras_vit.data.augment import boxes, crops  # noqa: E402

RNG = np.random.default_rng(0)
SIDES = (60, 80)


def drawn(rows):
    """Returns an image of two channels, one for each of two boxes, and the boxes."""
    image = np.zeros((*SIDES, 3), "uint8")
    for channel, (top, left, bottom, right) in enumerate(rows):
        image[top:bottom, left:right, channel] = 255
    shares = np.array(rows) / np.tile(SIDES, 2)
    return image, np.concatenate([shares, [[4], [7]]], axis=1).astype("float32")


IMAGE, BOXES = drawn([(6, 20, 31, 50), (40, 8, 58, 30)])
BOXES = np.concatenate([BOXES[:1], [boxes.EMPTY], BOXES[1:]]).astype("float32")


def check(image, found, tolerance=1.5):
    """Checks boxes against what is lit in the image: dropped only if the center is outside, or nearly."""
    image, found = np.asarray(image), np.asarray(found)
    size = np.tile(image.shape[:2], 2)
    seen = 0
    for channel, (row, kind) in enumerate(((0, 4), (2, 7))):
        lit = np.argwhere(image[..., channel] > 127)
        if found[row, 4] == -1:
            assert tuple(found[row]) == boxes.EMPTY
            continue
        assert found[row, 4] == kind
        expected = np.concatenate([lit.min(0), lit.max(0) + 1])
        np.testing.assert_allclose(found[row, :4] * size, expected, atol=tolerance)
        seen += 1
    assert tuple(found[1]) == boxes.EMPTY
    return seen


@pytest.mark.parametrize(
    "size, crop",
    [
        ((48, 48, 3), {"crop": "inception", "crop_area": 0.3, "flip": True}),
        ((50, 100, 3), {"crop": "inception", "crop_area": 0.5}),
        ((40, 48, 3), {"crop": "window", "flip": True}),
        ((24, 50, 3), {"crop": None}),
        ((40, 40, 3), {"resize": 44}),
        ((90, 70, 3), {"resize": None}),
        ((40, 40, 3), {"resize": "pad"}),
        ((90, 70, 3), {"resize": "pad", "flip": True}),
    ],
)
def test_boxes_are_cut_where_their_image_is(size, crop):
    data = Data(resize=crop.get("resize"))
    settings, seen = None if [*crop] == ["resize"] else Augment(**{k: v for k, v in crop.items() if k != "resize"}), 0
    for numbers in RNG.random((12, 4)).astype("float32"):
        items = {"images": tf.constant(IMAGE), "bounding_boxes": tf.constant(BOXES)}
        if settings is None:
            found = crops.evaluation_example(items, size, data)
        else:
            found = crops.training_example(items, size, data, settings, tf.constant(numbers))
        seen += check(found["images"], found["bounding_boxes"])
    assert seen >= 8


@pytest.mark.parametrize("change", ["flip", "shift", "warp"])
def test_boxes_of_a_batch_move_with_their_images(change):
    angle = 0.0 if change != "warp" else 1.0
    scale = np.float32([[1.25, 0, -7, 0, 0.8, 4, 0, 0]] * 8)
    arguments = {
        "flip": (tf.constant([True, False] * 4),),
        "shift": (9, tf.constant(RNG.integers(0, 19, (8, 2)), "int32")),
        "warp": (tf.constant(scale + angle * RNG.normal(size=(8, 1)) * [0, 0, 3, 0, 0, 3, 0, 0], "float32"),),
    }[change]
    examples = {"images": tf.constant(np.tile(IMAGE[None], (8, 1, 1, 1)), "float32")}
    examples["bounding_boxes"] = tf.constant(np.tile(BOXES[None], (8, 1, 1)))
    found = targets.moved(examples, change, *arguments)
    counts = [check(*pair) for pair in zip(found["images"], found["bounding_boxes"])]
    assert sum(counts) >= 12
    if change == "flip":
        np.testing.assert_array_equal(found["bounding_boxes"][1::2], examples["bounding_boxes"][1::2])


def test_a_rotated_box_is_around_its_corners():
    quarter = np.float32([[0, 1, 10, -1, 0, 69, 0, 0]])  # (x, y) -> (y + 10, 69 - x)
    images, held = tf.constant(IMAGE[None], "float32"), tf.constant(BOXES[None])
    found = targets.moved({"images": images, "bounding_boxes": held}, "warp", tf.constant(quarter))
    assert check(found["images"][0], found["bounding_boxes"][0], 1e-3) >= 1


def test_a_box_is_dropped_when_its_center_leaves_and_cut_off_before():
    held = np.float32([[[0.0, 0.1, 0.2, 0.3, 1]]])
    right = [boxes.shift(held, 0, tf.constant([[0, pixels]]), (100, 100)).numpy()[0, 0] for pixels in (19, 21)]
    np.testing.assert_allclose(right, [[0, 0, 0.2, 0.11, 1], boxes.EMPTY], atol=1e-6)


def test_a_region_to_ignore_stays_as_long_as_it_is_seen():
    held = np.float32([[[0.0, 0.1, 0.2, 0.3, -3], [0.5, 0.1, 0.9, 0.2, 0]]])
    found = [boxes.shift(held, 0, tf.constant([[0, pixels]]), (100, 100)).numpy()[0] for pixels in (0, 29, 31)]
    np.testing.assert_allclose(found[0], held[0])
    np.testing.assert_allclose(found[1], [[0, 0, 0.2, 0.01, -3], boxes.EMPTY], atol=1e-6)
    np.testing.assert_allclose(found[2], [boxes.EMPTY] * 2)
    flipped = boxes.flip(held, tf.constant([True]), (100, 100)).numpy()[0]
    np.testing.assert_allclose(flipped[0], [0, 0.7, 0.2, 0.9, -3], atol=1e-6)

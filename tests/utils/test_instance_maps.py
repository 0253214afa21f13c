import io

import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit.models.outputs import ignored
from keras_vit.utils import images, instance_maps

WIDE = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]], bool)  # 8 pixels
TALL = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], bool)  # 3 pixels
FLAT = np.array([[0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]], bool)  # 3 pixels


def encoded(values, mode=None):
    file = io.BytesIO()
    Image.fromarray(values, mode).save(file, "PNG")
    return file.getvalue()


def test_the_smaller_mask_is_on_top_then_the_later_one():
    found = instance_maps.joined([TALL, WIDE, FLAT], [0, 2, 0])
    np.testing.assert_array_equal(found, [[2001, 1, 2001, 2001], [2001, 2, 2, 2], [-1, 1, -1, -1]])
    assert found.dtype == "int32" and keras_vit.instance_map is instance_maps.joined
    found = instance_maps.joined(np.array([FLAT, TALL], "uint8"), [0, 1])
    np.testing.assert_array_equal(found, [[-1, 1001, -1, -1], [-1, 1001, 1, 1], [-1, 1001, -1, -1]])


def test_regions_have_number_zero_and_those_to_ignore_a_value_of_their_class():
    found = instance_maps.joined([WIDE, TALL, FLAT], [5, ignored(7), 5], stuff=[5])
    np.testing.assert_array_equal(found, [[5000, -9, 5000, 5000], [5000, 5000, 5000, 5000], [-1, -9, -1, -1]])


def test_an_image_without_objects_and_a_mask_without_pixels():
    assert (instance_maps.joined(np.zeros((0, 3, 4), bool), []) == -1).all()
    found = instance_maps.joined([WIDE & False, TALL], [0, 0])
    assert np.unique(found).tolist() == [-1, 2]


@pytest.mark.parametrize(
    "arguments, pattern",
    [
        (([WIDE[:2], TALL], [0, 0]), "masks` must be one array. Received: items of different shapes"),
        (([WIDE * 1.0], [0]), "booleans, or 0 and 1.*dtype=float64"),
        (([WIDE * 255], [0]), "Received: shape=.1, 3, 4., dtype=int64, values from 0 to 255"),
        ((WIDE, [0]), r"Received: shape=\(3, 4\)"),
        (([WIDE], [0, 1]), "1 masks and 2 classes"),
        (([WIDE], [0.0]), "`classes` must be a vector of integers.*float64"),
        (([WIDE], [-1]), "or -2 - index, below 1023, of what is ignored; all below 16776. Received: -1"),
        (([WIDE], [16776]), "Received: 16776"),
        (([WIDE], [-1025]), "Received: -1025"),
        (([WIDE], [0], [-2]), "`stuff` must be indices of classes; all below 16776. Received: -2"),
        ((np.ones((1000, 1, 1), bool), [3] * 1000), "at most 999 objects of one class. Received: 1000 of class 3"),
    ],
)
def test_what_is_no_mask_or_class_is_refused(arguments, pattern):
    with pytest.raises(ValueError, match=pattern):
        instance_maps.joined(*arguments)


def test_a_thousand_masks_of_a_region_are_one_segment():
    assert instance_maps.joined(np.ones((1000, 1, 1), bool), [3] * 1000, [3]).item() == 3000
    assert instance_maps.joined(np.ones((999, 1, 1), bool), [3] * 999).item() == 3999


def test_every_value_is_written_and_read():
    values = np.array([[-1024, -1, -2], [0, 1001, 2**24 - 1025]])
    data = instance_maps.png(values)
    np.testing.assert_array_equal(instance_maps.pixels(data), values)
    assert instance_maps.pixels(data).dtype == "int32"
    assert instance_maps.png(values[..., None].astype("int32")) == data == instance_maps.png(values.T.copy().T)
    np.testing.assert_array_equal(instance_maps.pixels(instance_maps.png(values.T[::-1])), values.T[::-1])
    np.testing.assert_array_equal(instance_maps.pixels(values[..., None]), values)
    colors = np.asarray(Image.open(io.BytesIO(data)), "int64")
    np.testing.assert_array_equal(colors @ [1, 256, 65536], values + 1024)


def test_large_maps_are_written_and_read_in_strips(monkeypatch):
    values = np.random.default_rng(0).integers(-1024, 2**24 - 1024, (13, 7))
    whole = instance_maps.png(values)
    monkeypatch.setattr(images, "STRIP", 5 * 4 * 7)  # five rows
    np.testing.assert_array_equal(instance_maps.pixels(instance_maps.png(values)), values)
    np.testing.assert_array_equal(instance_maps.pixels(whole), values)


def test_the_last_classes_are_written_and_read():
    last, ignore = instance_maps.CLASSES - 1, instance_maps.IGNORED - 1
    found = instance_maps.joined(np.concatenate([[WIDE], [TALL] * 999]), [ignored(ignore)] + [last] * 999)
    np.testing.assert_array_equal(instance_maps.pixels(instance_maps.png(found)), found)
    assert found.max() == 1000 * last + 999 and found.min() == -2 - ignore == -1024


@pytest.mark.parametrize(
    "function, item, pattern",
    [
        (instance_maps.png, np.full((1, 1), -1025), "from -1024 to 16776191. Received: -1025 to -1025"),
        (instance_maps.png, np.full((1, 1), 2**24), "Received: 16777216"),
        (instance_maps.png, np.zeros((1, 1)), "must be integers.*float64"),
        (instance_maps.pixels, np.zeros((2, 3, 3), int), r"Received: shape=\(2, 3, 3\)"),
        (instance_maps.pixels, np.full((1, 1), 2**32), "Received: 4294967296"),
        (instance_maps.pixels, [[1], [1, 2]], "items of different shapes"),
        (instance_maps.pixels, encoded(np.zeros((2, 2), "uint8")), "Received: PNG of mode 'L'"),
        (instance_maps.pixels, encoded(np.zeros((2, 2, 4), "uint8")), "Received: PNG of mode 'RGBA'"),
    ],
)
def test_what_is_no_map_is_refused(function, item, pattern):
    with pytest.raises(ValueError, match=pattern):
        function(item)

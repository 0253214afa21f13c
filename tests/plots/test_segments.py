import numpy as np
import pytest

from keras_vit.plots import masks
from keras_vit.plots.segments import between, segmented

IMAGE = np.full((300, 400, 3), 100.0)
NAMES = ("a", "b", "Background")
SEGMENTS = [{"id": 0, "class": 1}, {"id": 1, "class": 1}, {"id": 2, "class": 0}]


def test_segments_have_the_colors_of_their_classes_and_objects_of_one_class_a_line_between_them():
    ids = np.full((3, 4), -1, "int32")
    ids[:2] = [0, 1, 2, 2]
    ids = ids.repeat(100, 0).repeat(100, 1)
    drawn = segmented(IMAGE, ids, SEGMENTS, NAMES)
    assert drawn.shape == (300, 400, 3) and drawn.dtype == np.uint8
    colors = np.rint(50 + masks.colors(3) / 2)
    for column, color in ((50, colors[1]), (150, colors[1]), (250, colors[0]), (199, colors[1]), (200, colors[0])):
        np.testing.assert_array_equal(drawn[100, column], color)  # no line between two classes
    assert (drawn[201:] == 100).all()
    np.testing.assert_array_equal(drawn[100, 98:103, 0], [colors[1, 0], 255, 0, 255, colors[1, 0]])  # white, black
    np.testing.assert_array_equal(drawn[199:201, 100, 0], [0, 100])  # the line ends where the objects do


def test_lines_are_wider_in_larger_pictures_and_small_images_are_enlarged():
    ids = np.array([[0, 1]]).repeat(600, 0).repeat(400, 1)
    drawn = segmented(np.full((600, 800, 1), 100.0), ids, SEGMENTS, NAMES)
    assert (drawn[300, :, 0] == 0).sum() == 2 and (drawn[300, :, 0] == 255).sum() == 4
    small = segmented(np.full((30, 40, 3), 100.0), np.array([[0, 1]]), SEGMENTS, NAMES)  # a map of another size
    assert small.shape == (270, 360, 3) and (small[100, :, 0] == 0).sum() == 1
    assert (small[0, 0] == small[269, 359]).all() and small[0, 0].tolist() != [100] * 3


def test_background_numbers_of_nothing_and_empty_maps_stay_unpainted():
    ids = np.array([[0, 5], [-1, -1]])
    assert (segmented(IMAGE, ids, [{"id": 0, "class": 2}], NAMES) == 100).all()
    assert (segmented(IMAGE, ids - 9, [], NAMES) == 100).all()


def test_lines_are_between_segments_of_one_class():
    ids = np.array([[0, 0, 1], [2, 2, 1], [-1, 3, 3]])
    classes = np.array([[4, 4, 4], [5, 5, 4], [-1, 5, 5]])
    np.testing.assert_array_equal(between(ids, classes), [[0, 0, 1], [0, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    "ids, segments, message",
    [
        (np.zeros((2, 2)), [], "`ids` must be integers.*dtype=float64"),
        (np.zeros((2, 2, 1), int), [], r"Received: shape=\(2, 2, 1\)"),
        (np.zeros((2, 2), int), [{"id": 0, "class": 3}], "classes from 0 to 2. Received: 3"),
        (np.zeros((2, 2), int), [{"id": 0, "class": -1}], "Received: -1"),
    ],
)
def test_bad_arguments_are_named(ids, segments, message):
    with pytest.raises(ValueError, match=message):
        segmented(IMAGE, ids, segments, NAMES)

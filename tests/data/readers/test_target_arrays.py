import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers import arrays as made


def test_numbers_are_those_of_float32():
    images = np.zeros((2, 4, 4, 1), "uint8")
    read = lambda values: made.from_arrays((images, values), ("numbers",), (4, 4, 1))  # noqa: E731
    assert read([1, 2.5]).targets["numbers"].tolist() == [[1], [2.5]]
    for wrong, message in (
        ([1, np.nan], "nan of image 1"),
        ([1e300, 1], "finite, in float32. Received: 1e\\+300 of image 0"),
    ):
        with pytest.raises(ValueError, match=message):
            read(wrong)


def test_several_labels_are_checked():
    images = np.zeros((2, 4, 4, 1), "uint8")
    read = lambda values: made.from_arrays((images, values), ("multilabels",), (4, 4, 1), ("a", "b", "c"))  # noqa: E731
    expected = [[1, 0, -1], [0, 1, 1]]
    for values in (expected, np.int8(expected), np.float32([[1, 0, np.nan], [0, 1, 1]])):
        found = read(values).targets["multilabels"]
        assert found.dtype == np.int8 and found.tolist() == expected
    assert read(np.eye(2, 3, dtype=bool)).targets["multilabels"].tolist() == [[1, 0, 0], [0, 1, 0]]
    for values, message in (
        ([0, 1], r"of the shape \(2, 3\): a column for each class. Received: shape=\(2,\)"),
        ([[1, 0], [0, 1]], r"Received: shape=\(2, 2\)"),
        ([[1, 0, 0], [0, 0.3, 1]], "NaN or -1 where unknown. Received: 0.3 of image 1"),
        ([[1, 0, 0], [0, 2, 1]], "Received: 2 of image 1"),
        ([[1, 0, np.inf], [0, 0, 1]], "Received: inf of image 0"),
    ):
        with pytest.raises(ValueError, match=message):
            read(values)


def test_boxes_are_checked():
    images = np.zeros((2, 4, 4, 1), "uint8")
    boxes = np.array([[[0, 0.25, 0.5, 1, 2], [0, 0, 0, 0, -1]], [[0.5, 0.5, 0.75, 0.75, 0], [0.1, 0.1, 0.2, 0.2, 1]]])
    read = lambda values, names=tuple("abc"): made.from_arrays((images, values), ("bounding_boxes",), (4, 4, 1), names)  # noqa: E731
    found = read(boxes).targets["bounding_boxes"]
    assert found.dtype == np.float32 and np.array_equal(found, boxes.astype("float32"))
    assert read(boxes, ()).class_names == ()
    crowd = np.where(np.arange(5) == 4, np.where(boxes[..., 4:] == 2, -4, boxes), boxes)  # class 2 is to be ignored
    assert np.array_equal(read(crowd).targets["bounding_boxes"], crowd.astype("float32"))
    for values, names, message in (
        (boxes[:1], "abc", r"shape \(2, most, 5\): .* Received: shape=\(1, 2, 5\)"),
        (boxes[..., :4], "abc", r"Received: shape=\(2, 2, 4\)"),
        (boxes, "ab", r"a class from 0 to 1. Received: \[0.0, 0.25, 0.5, 1.0, 2.0\] of image 0"),
        (crowd, "ab", r"a class from 0 to 1. Received: .* -4.0\] of image 0"),
        (boxes * [1, 1, 1, 1, 0.5], "abc", "of image 0"),
        (boxes * [1, 1, 0.5, 1, 1], "abc", r"Received: \[0.5, 0.5, 0.375, 0.75, 0.0\] of image 1"),
        (boxes * [4, 4, 4, 4, 1], "abc", "0 <= top < bottom <= 1"),
        (boxes * np.nan, "abc", "of image 0"),
    ):
        with pytest.raises(ValueError, match=message):
            read(values, tuple(names))


def test_instance_masks_are_checked():
    images = np.zeros((2, 4, 4, 1), "uint8")
    maps = np.array([1001, 2000, -1, -4] * 8).reshape(2, 4, 4)
    read = lambda values, names=tuple("abc"): made.from_arrays((images, values), ("instance_masks",), (4, 4, 1), names)  # noqa: E731
    for values in (maps, maps[..., None], maps.astype("int16"), maps.tolist()):
        found = read(values).targets["instance_masks"]
        assert found.dtype == np.int32 and np.array_equal(found[..., 0], maps)
    assert read(maps, ()).class_names == () and read(maps, ()).stuff == ()
    for values, names, message in (
        (maps[:1], "abc", r"shape \(2, 4, 4\), .* a `keras_vit.instance_map` each. Received: shape=\(1, 4, 4, 1\)"),
        (maps.astype("float32"), "abc", "dtype=float32"),
        (maps, "ab", "Instance mask 0: the values must be .* a class from 0 to 1, or -1, or .*: -4 to 2000"),
        (np.maximum(maps, -3), "ab", "Received: -3 to 2000"),
        (np.minimum(maps, 1999), "ab", "Received: -4 to 1999"),
        (maps * 2**40, "abc", "Instance mask 0"),
        (maps * 2**40, "", "Instance mask 0: .* from 0 to 16775"),
    ):
        with pytest.raises(ValueError, match=message):
            read(values, tuple(names))


def labels(values, names=tuple("abc")):
    images = np.zeros((len(values), 4, 4, 1), "uint8")
    return made.from_arrays((images, values), ("labels",), (4, 4, 1), names).labels.tolist()


def test_labels_are_taken_in_arrays_as_in_lists():
    for values in (
        ["c", "a", "b"],
        np.array(["c", "a", "b"]),
        np.array(["c", "a", "b"], object),
        np.array([[b"c"], [b"a"], [b"b"]]),
        np.array([2.0, 0.0, 1.0]),
        np.array([2, 0, 1], object),
    ):
        assert labels(values) == [2, 0, 1]
    assert labels(np.array([True, False])) == [1, 0] == labels([True, False])
    assert labels(["cafe\u0301"], ("caf\u00e9",)) == [0]
    for values, message in (
        (["c", "x"], "Received: 'x' in example 1"),
        ([1.0, np.nan], "Received: nan in example 1"),
        ([1, None], "Received: None in example 1"),
        (["a", None], "Received: None in example 1"),
        ([0.5, 1], "must be a vector of integers"),
        (["a", "b\nc"], "Label 1: .* one line of UTF-8"),
    ):
        with pytest.raises(ValueError, match=message):
            labels(np.array(values, object) if None in values else values)

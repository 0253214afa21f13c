import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.readers import arrays, box_arrays  # noqa: E402

IMAGES = np.zeros((2, 40, 80, 3), "uint8")
PIXELS = np.array([[8, 4, 24, 36], [0, 0, 80, 40]], "float32")  # left, top, right, bottom
SHARES = np.array([[0.1, 0.1, 0.9, 0.3], [0, 0, 1, 1]], "float32")  # top, left, bottom, right


def read(boxes, labels, form="xyxy", **more):
    values = {"boxes": boxes, "labels": labels, "bounding_box_format": form, **more}
    return arrays.from_arrays((IMAGES, values), ("bounding_boxes",), (40, 80, 3), ("cat", "dog")).targets[
        "bounding_boxes"
    ]


@pytest.mark.parametrize("form", box_arrays.FORMATS)
def test_all_formats_of_keras(form):
    given = keras.utils.bounding_boxes.convert_format(PIXELS, "xyxy", form, height=40, width=80)
    found = read([np.asarray(given), np.zeros((0, 4))], [[1, 0], []], form.upper())
    np.testing.assert_allclose(found[0], np.hstack([SHARES, [[1], [0]]]), atol=1e-6)
    assert found.shape == (2, 2, 5) and found.dtype == np.float32 and (found[1, :, 4] == -1).all()


@pytest.mark.parametrize("kind", ["lists", "padded", "ragged", "dense"])
def test_all_kinds_of_arrays(kind):
    boxes, labels = [PIXELS.tolist(), PIXELS[:1].tolist()], [[1, 0], [0]]
    if kind == "padded":
        boxes = np.stack([PIXELS, [PIXELS[0], [-1] * 4]])
        labels = np.array([[1, 0], [0, -1]])
    elif kind == "ragged":
        boxes, labels = tf.ragged.constant(boxes, inner_shape=(4,)), tf.ragged.constant(labels)
    elif kind == "dense":
        boxes, labels = keras.ops.stack([PIXELS, PIXELS]), np.array([[1.0, 0.0], [0.0, -1.0]])
    found = read(boxes, labels)
    assert found[..., 4].tolist() == [[1, 0], [0, -1]]
    np.testing.assert_allclose(found[1, 0, :4], SHARES[0], atol=1e-6)


def test_no_boxes_at_all():
    assert read([[], []], [[], []]).tolist() == [[list(box_arrays.EMPTY)]] * 2


def test_classes_of_keras_cv():
    values = {"boxes": [PIXELS, PIXELS], "classes": [[1, 0], [0, 0]], "bounding_box_format": "xyxy"}
    assert box_arrays.from_dictionary(values, IMAGES).shape == (2, 2, 5)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"bounding_box_format": None}, "`bounding_box_format` must be one of 'xyxy', .* Received: None"),
        ({"bounding_box_format": "coco"}, "Received: 'coco'"),
        ({"scores": [[1]]}, "must have bounding_box_format, boxes, labels.* Received: .*scores"),
        ({"boxes": [PIXELS]}, "Each image must have boxes and labels. Received: 2 images, boxes of 1, labels of 2"),
        ({"boxes": [PIXELS, PIXELS[:1]]}, r"Received: shapes \(1, 4\) and \(2,\), of float32 and int64, for image 1"),
        ({"boxes": [PIXELS[:, :3], PIXELS]}, r"for image 0"),
        ({"boxes": [PIXELS[:, ::-1], PIXELS]}, r"'xyxy' must have an area, inside .* of 80 x 40 .*, box 0 of image 0"),
        ({"boxes": [PIXELS, PIXELS + [[0], [9]]]}, r"Received: \[9.0, 9.0, 89.0, 49.0\], box 1 of image 1"),
        ({"boxes": [PIXELS, PIXELS * np.nan]}, "box 0 of image 1"),
        ({"boxes": [PIXELS / 80] * 2}, "'xyxy' must be in pixels. Received: numbers up to 1, which look like shares"),
        ({"bounding_box_format": "rel_xyxy"}, r"'rel_xyxy' must .* \[8.0, 4.0, 24.0, 36.0\], box 0 of image 0"),
        ({"labels": [[0, 2], [0, 0]]}, "a class from 0 to 1. Received: .* of image 0"),
        ({"labels": [["cat", "dog"]] * 2}, "must be numbers"),
        ({"labels": 1}, "boxes and labels as arrays or lists. Received: 'int' object is not iterable"),
        ({"boxes": [[[1, 2], [3]], []]}, "boxes and labels as arrays or lists. Received: setting an array element"),
    ],
)  # fmt: skip
def test_wrong_dictionaries(change, said):
    values = {"boxes": [PIXELS, PIXELS], "labels": [[1, 0], [0, 0]], "bounding_box_format": "xyxy"}
    with pytest.raises(ValueError, match=said):
        read(**{"form" if key == "bounding_box_format" else key: value for key, value in {**values, **change}.items()})


def test_a_missing_format_is_not_guessed():
    with pytest.raises(
        ValueError, match="The format, such as 'xyxy', says what the numbers are. Received: boxes, labels"
    ):
        box_arrays.from_dictionary({"boxes": [], "labels": []}, IMAGES)

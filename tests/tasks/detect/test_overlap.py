import keras
import numpy as np
import pytest

from keras_vit.tasks.detect.overlap import area, generalized_iou, iou

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)


def boxes(*shape):
    corners = RNG.random((*shape, 2, 2))
    return np.concatenate([corners.min(-2), corners.max(-2)], axis=-1).astype("float32")


def test_of_whole_pixels_they_count_pixels():
    """Against a picture: boxes are filled, and pixels counted."""
    a, b = np.round(boxes(6) * 30), np.round(boxes(5) * 30)
    rows, columns = np.mgrid[:30, :30]

    def filled(box):
        return (rows >= box[0]) & (columns >= box[1]) & (rows < box[2]) & (columns < box[3])

    shares, general = (np.asarray(function(a, b)) for function in (iou, generalized_iou))
    assert shares.shape == general.shape == (6, 5)
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            first, second = filled(one), filled(other)
            union, around = (
                (first | second).sum(),
                np.concatenate([np.minimum(one, other)[:2], np.maximum(one, other)[2:]]),
            )
            share = (first & second).sum() / union
            np.testing.assert_allclose(shares[i, j], share, atol=1e-6)
            np.testing.assert_allclose(general[i, j], share - 1 + union / filled(around).sum(), atol=1e-6)


def test_leading_axes_are_images():
    a, b = boxes(2, 3), boxes(2, 4)
    found = np.asarray(generalized_iou(a, b))
    assert found.shape == (2, 3, 4)
    for i in range(2):
        np.testing.assert_allclose(found[i], np.asarray(generalized_iou(a[i], b[i])), atol=1e-7)


def test_a_box_is_itself_and_far_boxes_are_nearly_minus_one():
    one, far = np.float32([[0, 0, 1, 2]]), np.float32([[0, 1e4, 1, 1e4 + 1]])
    np.testing.assert_allclose(np.asarray(generalized_iou(one, one)), [[1]])
    np.testing.assert_allclose(np.asarray(generalized_iou(one, far)), [[-1]], atol=1e-3)
    assert float(area(one)[0]) == 2


def test_boxes_without_area_have_finite_values_and_gradients():
    nothing = np.zeros((1, 4), "float32")
    assert float(iou(nothing, nothing)[0, 0]) == float(generalized_iou(nothing, nothing)[0, 0]) == 0
    layer = keras.layers.Dense(4, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((3,)), layer])
    model.compile("sgd", lambda y, x: -generalized_iou(x[:, None], y[:, None])[:, 0, 0])
    model.fit(np.ones((4, 3)), np.zeros((4, 4)), verbose=0)
    assert np.isfinite(np.asarray(layer.kernel)).all()

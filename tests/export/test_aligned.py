import keras
import numpy as np
import pytest

from keras_vit.export.aligned import agreement, aligned, largest
from keras_vit.tasks import Detect, Restore

MODEL = Detect(classes=("a", "b"), most=5, head={"kind": "points", "width": 4}).model(variant="mu/8", image_size=16)
ROWS = np.array(
    [[0.1, 0.1, 0.5, 0.5, 0.9, 0.0], [0.1, 0.1, 0.5, 0.6, 0.0, 0.8], [0.6, 0.6, 1.0, 1.0, 0.3, 0.0],
     [0.2, 0.0, 0.3, 1.0, 0.15, 0.0], [0.3, 0.3, 0.4, 0.4, 0.05, 0.0]],
    "float32",
)  # fmt: skip


def test_boxes_in_another_order_do_not_differ():
    ours, theirs = aligned(MODEL, ROWS[None, [2, 0, 1, 4, 3]], ROWS[None])
    np.testing.assert_array_equal(ours, theirs)
    assert (theirs.argmax(-1)[0, :3] == [4, 5, 4]).all()  # the classes
    np.testing.assert_allclose(theirs[0, 0], [0.045, 0.045, 0.225, 0.225, 0.9, 0], rtol=1e-6)
    np.testing.assert_allclose(theirs[0, 3], ROWS[3] * [0.075, 0.075, 0.075, 0.075, 1, 1] / 2, rtol=1e-5)
    assert not theirs[0, 4].any()


def test_another_box_or_no_number_differs():
    wrong = ROWS.copy()
    wrong[1, 3] = 0.7
    ours, theirs = aligned(MODEL, wrong[None], ROWS[None])
    assert np.abs(ours - theirs).max() == pytest.approx(0.04, rel=1e-4)
    wrong[1, 5] = np.nan
    assert np.isnan(np.abs(np.subtract(*aligned(MODEL, wrong[None], ROWS[None]))).max())


def test_other_outputs_stay():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    assert aligned(model, ROWS, ROWS[:1])[0] is ROWS


def test_a_single_logit_agrees_by_its_sign():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    assert agreement(model, np.array([[1.0], [-2.0], [3.0], [0.1]]), np.array([[2.0], [-1.0], [3.0], [-0.1]])) == 0.75


def test_one_box_in_five_hundred_that_count_may_be_another():
    expected, outputs = np.zeros((10, 100, 6)), np.zeros((10, 100, 6))
    expected[:, :60, 4] = 0.5
    outputs[:, :60, 4] = 0.5001
    assert largest(MODEL, outputs, expected) == pytest.approx(1e-4)
    outputs[3, 4, 4] = 0  # one of 600
    assert largest(MODEL, outputs, expected) == pytest.approx(1e-4)
    outputs[7, 8, 4] = 0
    assert largest(MODEL, outputs, expected) == 0.5
    assert largest(MODEL, outputs[:8, :3], expected[:8, :3]) == pytest.approx(1e-4)
    assert largest(MODEL, outputs[3:4, :5], expected[3:4, :5]) == 0.5  # few boxes: none may
    assert largest(MODEL, outputs[:, 60:], expected[:, 60:]) == 0
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    assert largest(other, outputs, expected) == 0.5
    outputs[7, 8, 4], outputs[3, 4, 4] = 0.5, np.nan  # one of 600, but no number
    assert np.isnan(largest(MODEL, outputs, expected))


def test_of_images_all_pixels_are_one_vector_and_equal_values_count():
    model = Restore(noise=1.0).model(variant="mu/4", stem=((4, 1),), patch_size=4, image_size=8)
    expected = np.random.default_rng(0).uniform(0, 255, (2, 8, 8, 3))
    outputs = expected.copy()
    outputs[0, :4] += 1
    ours, theirs = aligned(model, outputs, expected)
    assert ours.shape == (2, 192) and largest(model, ours, theirs) == pytest.approx(1)
    assert agreement(model, ours, theirs) == 0.75
    classifier = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    assert agreement(classifier, np.eye(2), np.array([[1, 0], [1, 0]])) == 0.5

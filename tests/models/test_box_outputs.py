import numpy as np
import pytest

from keras_vit.models.box_outputs import aligned, largest, named, packed

ROWS = np.array(
    [[0.1, 0.1, 0.5, 0.5, 0.9, 0.0], [0.1, 0.1, 0.5, 0.6, 0.0, 0.8], [0.6, 0.6, 1.0, 1.0, 0.3, 0.0],
     [0.2, 0.0, 0.3, 1.0, 0.15, 0.0], [0.3, 0.3, 0.4, 0.4, 0.05, 0.0]],
    "float32",
)  # fmt: skip


def test_boxes_in_another_order_do_not_differ():
    ours, theirs = aligned(ROWS[None, [2, 0, 1, 4, 3]], ROWS[None])
    np.testing.assert_array_equal(ours, theirs)
    assert (theirs.argmax(-1)[0, :3] == [4, 5, 4]).all()  # the classes
    np.testing.assert_allclose(theirs[0, 0], [0.045, 0.045, 0.225, 0.225, 0.9, 0], rtol=1e-6)
    np.testing.assert_allclose(theirs[0, 3], ROWS[3] * [0.075, 0.075, 0.075, 0.075, 1, 1] / 2, rtol=1e-5)
    assert not theirs[0, 4].any()


def test_another_box_or_no_number_differs():
    wrong = ROWS.copy()
    wrong[1, 3] = 0.7
    ours, theirs = aligned(wrong[None], ROWS[None])
    assert np.abs(ours - theirs).max() == pytest.approx(0.04, rel=1e-4)
    wrong[1, 5] = np.nan
    assert np.isnan(np.abs(np.subtract(*aligned(wrong[None], ROWS[None]))).max())


def test_one_box_in_five_hundred_that_count_may_be_another():
    expected, outputs = np.zeros((10, 100, 6)), np.zeros((10, 100, 6))
    expected[:, :60, 4] = 0.5
    outputs[:, :60, 4] = 0.5001
    assert largest(outputs, expected) == pytest.approx(1e-4)
    outputs[3, 4, 4] = 0  # one of 600
    assert largest(outputs, expected) == pytest.approx(1e-4)
    outputs[7, 8, 4] = 0
    assert largest(outputs, expected) == 0.5
    assert largest(outputs[:8, :3], expected[:8, :3]) == pytest.approx(1e-4)
    assert largest(outputs[3:4, :5], expected[3:4, :5]) == 0.5  # few boxes: none may
    assert largest(outputs[:, 60:], expected[:, 60:]) == 0
    outputs[7, 8, 4], outputs[3, 4, 4] = 0.5, np.nan  # one of 600, but no number
    assert np.isnan(largest(outputs, expected))


def test_a_file_has_boxes_in_pixels_and_scores():
    outputs = named(ROWS, (10, 20), False)
    np.testing.assert_allclose(outputs["boxes"][0], [1, 2, 5, 10], rtol=1e-6)
    np.testing.assert_allclose(packed(outputs, (10, 20)), ROWS, rtol=1e-6)

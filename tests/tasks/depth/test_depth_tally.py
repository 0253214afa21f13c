import numpy as np
import pytest

from keras_vit.tasks.depth.depth_loss import RelativeError
from keras_vit.tasks.depth.depth_tally import DepthTally, fitted
from keras_vit.utils.depth_maps import npy_bytes

RNG = np.random.default_rng(0)
DEPTH = RNG.uniform(1, 5, (3, 12, 10)).astype("float32")


def test_fitting_is_least_squares():
    x, y = RNG.normal(size=(2, 50))
    y = y + x
    slope, shift = np.polyfit(x, y, 1)
    np.testing.assert_allclose(fitted(x, y), slope * x + shift)
    np.testing.assert_allclose(fitted(np.ones(4), np.array([1.0, 2, 3, 6])), 3)


def test_what_is_right_up_to_scale_and_shift_is_right():
    tally = DepthTally()
    scores = tally.add({"depths": [npy_bytes(one) for one in DEPTH]}, 3 / DEPTH[..., None] - 0.1)
    assert tally.result()["delta1"] == 1 and tally.result()["abs_rel"] < 1e-5 and scores.shape == (3,)


def test_near_is_not_far():
    """A map that is turned round is no better than one that says nothing: its scale is not negative."""
    turned, flat = DepthTally(), DepthTally()
    turned.add({"depths": DEPTH}, -1 / DEPTH[..., None])
    flat.add({"depths": DEPTH}, np.ones((3, 12, 10, 1)))
    assert turned.result() == pytest.approx(flat.result())
    metric, inverse = RelativeError(inverse=True), (1 / DEPTH)[..., None]
    metric.update_state(inverse, -inverse)
    assert float(metric.result()) == pytest.approx(flat.result()["abs_rel"], rel=1e-4)


def test_the_mean_alone_by_hand():
    """A map that is the same everywhere is fitted by the mean of the inverse depth."""
    tally = DepthTally()
    tally.add({"depths": DEPTH[:1]}, np.ones((1, 12, 10, 1)))
    guess = 1 / (1 / DEPTH[0]).mean()
    ratio = np.maximum(guess / DEPTH[0], DEPTH[0] / guess)
    wanted = {"abs_rel": (np.abs(guess - DEPTH[0]) / DEPTH[0]).mean(), "delta1": (ratio < 1.25).mean()}
    assert tally.result() == pytest.approx(wanted)


def test_meters_and_disparity():
    tally = DepthTally(inverse=False, unit=0.001)
    tally.add({"depths": 1000 * DEPTH}, 1.1 * DEPTH[..., None])
    assert tally.result() == pytest.approx({"abs_rel": 0.1, "delta1": 1})
    tally = DepthTally(disparity=True)
    tally.add({"depths": 40 / DEPTH}, 1 / DEPTH[..., None])
    assert tally.result()["abs_rel"] < 1e-5


def test_maps_are_scored_at_their_own_size_and_holes_left_out():
    smooth = 2 + np.mgrid[:24, :20][0] / 12
    depth = smooth.copy()
    depth[:6, :6] = 0
    tally = DepthTally(inverse=False)
    tally.add({"depths": [depth]}, [smooth[1::2, 1::2, None]])
    assert tally.result()["abs_rel"] < 0.03


def test_it_is_the_metric_of_training():
    inverse = (1 / DEPTH)[..., None]
    found = inverse + RNG.normal(0, 0.05, inverse.shape).astype("float32")
    metric, tally = RelativeError(inverse=True), DepthTally()
    metric.update_state(inverse, found)
    tally.add({"depths": DEPTH}, found)
    assert tally.result()["abs_rel"] == pytest.approx(float(metric.result()), rel=1e-4)

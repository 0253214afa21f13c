import keras
import numpy as np
import pytest
from keras import ops

from keras_vit.tasks.depth.depth_loss import DepthLoss, MetersLoss, RelativeError

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
TRUE = RNG.uniform(0.2, 2, (2, 8, 6, 1)).astype("float32")
FOUND = np.abs(TRUE + RNG.normal(0, 0.2, TRUE.shape)).astype("float32")


def number(loss, truth, found):
    return ops.convert_to_numpy(loss.call(ops.convert_to_tensor(truth), ops.convert_to_tensor(found)))


def test_relative_depth_by_hand():
    """Equations 5 to 7 of the paper, and 11, written out."""

    def aligned(x):
        t = np.sort(x)[(len(x) - 1) // 2]
        return (x - t) / np.abs(x - t).mean()

    error = [aligned(f.ravel()) - aligned(t.ravel()) for f, t in zip(FOUND, TRUE)]
    wanted = np.array([np.abs(each).mean() / 2 for each in error])
    np.testing.assert_allclose(number(DepthLoss(gradients=0), TRUE, FOUND), wanted, rtol=1e-3)
    steps = np.zeros(2)
    for i, each in enumerate(error):
        for k in (1, 2, 4, 8):
            some = each.reshape(8, 6)[::k, ::k]
            steps[i] += (np.abs(np.diff(some, axis=0)).sum() + np.abs(np.diff(some, axis=1)).sum()) / some.size
    np.testing.assert_allclose(number(DepthLoss(gradients=0.5), TRUE, FOUND), wanted + 0.5 * steps, rtol=1e-3)


def test_scale_and_shift_do_not_count():
    loss = DepthLoss()
    np.testing.assert_allclose(number(loss, TRUE, 7 * FOUND + 3), number(loss, TRUE, FOUND), rtol=5e-3)
    np.testing.assert_allclose(number(loss, TRUE, 7 * TRUE - 3), 0, atol=5e-3)
    np.testing.assert_allclose(number(loss, 50 * TRUE, FOUND), number(loss, TRUE, FOUND), rtol=5e-3)
    assert (number(loss, TRUE, -FOUND) > 2 * number(loss, TRUE, FOUND)).all()  # far is not near


def test_the_median_is_of_known_pixels():
    """Where two of five pixels are known, as in sparse data, the others change neither scale nor shift."""
    sparse = np.where(RNG.uniform(size=TRUE.shape) < 0.4, TRUE, 0).astype("float32")
    known = sparse[0] > 0
    alone = [x[0][known].reshape(1, 1, -1, 1) for x in (TRUE, FOUND)]
    found = number(DepthLoss(gradients=0), sparse[:1], FOUND[:1])
    np.testing.assert_allclose(found, number(DepthLoss(gradients=0), *alone), rtol=1e-3)


@pytest.mark.parametrize("loss", [DepthLoss(), MetersLoss()])
def test_holes_count_nowhere(loss):
    holes = TRUE.copy()
    holes[:, :3] = 0
    wanted = number(loss, holes, FOUND)
    other = FOUND.copy()
    other[:, :3] = 99
    np.testing.assert_allclose(number(loss, holes, other), wanted, rtol=1e-5)
    assert np.isfinite(number(loss, 0 * TRUE, FOUND)).all()


def test_meters_by_hand():
    ratio = np.log(FOUND) - np.log(TRUE)
    wanted = np.sqrt((ratio**2).mean((1, 2, 3)) - 0.85 * ratio.mean((1, 2, 3)) ** 2)
    np.testing.assert_allclose(number(MetersLoss(), TRUE, FOUND), wanted, rtol=1e-4)


def test_gradients_are_finite_and_lead_to_the_truth():
    """Also of a map that is the same everywhere, and of one that is 0, as a ReLU begins."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("one backend is enough")
    import tensorflow as tf

    for start in (FOUND, np.ones_like(FOUND), np.zeros_like(FOUND)):
        for loss in (DepthLoss(), MetersLoss()):
            x = tf.Variable(start)
            with tf.GradientTape() as tape:
                value = tf.reduce_mean(loss.call(TRUE, x))
            assert np.isfinite(tape.gradient(value, x)).all()
    x, optimizer = tf.Variable(FOUND), keras.optimizers.Adam(0.01)
    for _ in range(60):
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(DepthLoss().call(TRUE, x))
        optimizer.apply([tape.gradient(value, x)], [x])
    assert float(value) < 0.5 * number(DepthLoss(), TRUE, FOUND).mean()


@pytest.mark.parametrize("inverse", [False, True])
def test_relative_error(inverse):
    metric = RelativeError(inverse)
    truth = 1 / TRUE if inverse else TRUE
    given, found = (1 / truth, 5 * (1 / truth) + 2) if inverse else (truth, truth * 1.25)
    metric.update_state(given, found)
    np.testing.assert_allclose(float(metric.result()), 0 if inverse else 0.25, atol=1e-4)
    holes = given.copy()
    holes[0] = 0  # an image without depth does not count
    again = RelativeError.from_config(RelativeError(inverse).get_config())
    again.update_state(holes, np.where(holes > 0, found, 77), sample_weight=np.ones(2))
    np.testing.assert_allclose(float(again.result()), float(metric.result()), atol=1e-4)
    for one in (DepthLoss(0.25), MetersLoss(0.5)):
        assert type(one).from_config(one.get_config()).get_config() == one.get_config()

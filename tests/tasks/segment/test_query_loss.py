import keras
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, log_softmax, softmax

from keras_vit.tasks.segment.query_loss import QueryLoss
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend
UNITS, ROWS, COLUMNS = 3, 4, 6
RNG = np.random.default_rng(0)


def maps():
    """Two images of 8 x 12: three objects, a crowd and no object; then one object."""
    y = np.full((2, 8, 12, 1), -1, "int32")
    y[0, :4, :5] = 1001
    y[0, 4:, :3] = 1002
    y[0, 2:, 7:] = 0
    y[0, :2, 7:] = -2 - 2  # a crowd of class 2
    y[1, 3:6, 2:11] = 2007
    return y


def predicted(stages=2, queries=5):
    return RNG.normal(size=(2, stages, queries, UNITS + 1 + ROWS * COLUMNS)).astype("float32")


def cross_entropy(logits, truth):
    p = expit(logits.astype("float64"))
    return -np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p))


def dice(logits, truth):
    p = expit(logits.astype("float64"))
    return 1 - (2 * (p * truth).sum() + 1) / (p.sum() + truth.sum() + 1)


def by_hand(y_true, y_pred, masks=5.0):
    """The loss of a batch at one stage, with scipy's assignment."""
    cells = y_true[:, 1::2, 1::2, 0].reshape(len(y_true), -1)  # a cell of 2 x 2 pixels is that after its center
    entropy, weights, apart, count = 0.0, 0.0, 0.0, 0
    for here, image in zip(cells, y_pred):
        ids = np.unique(here[here >= 0])
        logits, drawn = image[:, : UNITS + 1].astype("float64"), image[:, UNITS + 1 :]
        labels = np.full(len(image), UNITS)
        truth = [here == i for i in ids]
        cost = [
            [masks * cross_entropy(m, t) + 5 * dice(m, t) - 2 * softmax(c)[i // 1000] for c, m in zip(logits, drawn)]
            for i, t in zip(ids, truth)
        ]
        for i, j in zip(*linear_sum_assignment(np.array(cost))):
            labels[j] = ids[i] // 1000
            apart += masks * cross_entropy(drawn[j], truth[i]) + 5 * dice(drawn[j], truth[i])
            count += 1
        share = np.where(labels == UNITS, 0.1, 1.0)
        entropy -= (share * log_softmax(logits, -1)[np.arange(len(image)), labels]).sum()
        weights += share.sum()
    return 2 * entropy / weights + apart / count


@slow_on_jax
def test_each_stage_is_matched_by_itself():
    y_true, y_pred = maps(), predicted()
    want = sum(by_hand(y_true, y_pred[:, stage]) for stage in (0, 1))
    loss = keras.ops.convert_to_numpy(QueryLoss(UNITS).call(y_true, keras.ops.convert_to_tensor(y_pred)))
    assert loss.shape == (2,)
    np.testing.assert_allclose(loss.mean(), want, rtol=1e-5)
    want = sum(by_hand(y_true, y_pred[:, stage], masks=1.0) for stage in (0, 1))
    loss = QueryLoss(UNITS, masks=1.0)(y_true, keras.ops.convert_to_tensor(y_pred))
    np.testing.assert_allclose(float(loss), want, rtol=1e-5)
    again = keras.losses.deserialize(keras.losses.serialize(QueryLoss(7, dice=1.0)))
    assert (again.units, again.classes, again.masks, again.dice) == (7, 2, 5, 1)


def test_no_objects_and_no_certainty_give_finite_numbers():
    y_pred = predicted()
    y_pred[:, 0] *= 1000
    for y_true in (maps(), np.full((2, 8, 12, 1), -1, "int32")):
        assert np.isfinite(keras.ops.convert_to_numpy(QueryLoss(UNITS).call(y_true, y_pred))).all()


@slow_on_jax
def test_masks_that_are_right_have_almost_no_loss():
    y_true, y_pred = maps(), np.zeros((2, 1, 5, UNITS + 1 + ROWS * COLUMNS), "float32")
    y_pred[..., UNITS] = 20
    y_pred[..., UNITS + 1 :] = -20
    cells = y_true[:, 1::2, 1::2, 0].reshape(2, -1)
    for image in (0, 1):
        for query, value in enumerate(np.unique(cells[image][cells[image] >= 0])):
            y_pred[image, 0, query + 1, : UNITS + 1] = -20
            y_pred[image, 0, query + 1, value // 1000] = 20
            y_pred[image, 0, query + 1, UNITS + 1 :] = np.where(cells[image] == value, 20, -20)
    assert keras.ops.convert_to_numpy(QueryLoss(UNITS).call(y_true, y_pred)).max() < 1e-5


def test_of_more_objects_than_queries_the_largest_count():
    y_pred = predicted(stages=1, queries=2)
    assert np.isfinite(keras.ops.convert_to_numpy(QueryLoss(UNITS).call(maps(), y_pred))).all()


def test_another_aspect_ratio_is_refused():
    with pytest.raises(ValueError, match="images' aspect ratio, 8 to 12. Received: 25 cells"):
        QueryLoss(UNITS).call(maps(), np.zeros((2, 1, 5, UNITS + 1 + 25), "float32"))

import keras
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from keras_vit.tasks.detect.group_loss import GroupLoss
from tests.marks import slow_on_jax
from tests.tasks.detect.test_set_loss import BOXES, giou, l1

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def predicted(stages=2, queries=12, classes=2):
    low = RNG.uniform(-0.1, 0.6, (2, stages, queries, 2))
    high = low + RNG.uniform(0.05, 0.4, low.shape)
    return np.concatenate([low, high, RNG.normal(size=(2, stages, queries, classes))], -1).astype("float32")


def iou(a, b):
    common = np.prod(np.maximum(np.minimum(a, b)[2:] - np.maximum(a, b)[:2], 0))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def by_hand(truth, found):
    """RF-DETR's loss of one group, not divided, with scipy's assignment."""
    truth = truth[truth[:, 4] >= 0]
    p = 1 / (1 + np.exp(-found[:, 4:].astype("float64")))
    focal = 0.25 * (1 - p) ** 2 * -np.log(p) - 0.75 * p**2 * -np.log(1 - p)
    loss, matched = 0.0, np.zeros(p.shape, bool)
    if len(truth):
        cost = [[2 * f[int(t[4])] + 5 * l1(t, b) - 2 * giou(t[:4], b[:4]) for f, b in zip(focal, found)] for t in truth]
        for i, j in zip(*linear_sum_assignment(np.array(cost))):
            label, t, b = int(truth[i, 4]), truth[i], found[j]
            target = max(p[j, label] ** 0.25 * iou(t[:4], b[:4]) ** 0.75, 0.01)
            loss -= target * np.log(p[j, label]) + (1 - target) * np.log(1 - p[j, label])
            loss += 5 * l1(t, b) + 2 * (1 - giou(t[:4], b[:4]))
            matched[j, label] = True
    return loss - (p**2 * np.log(1 - p))[~matched].sum()


@slow_on_jax
def test_each_group_is_matched_by_itself():
    y = predicted()
    want = sum(by_hand(t, group) for t, image in zip(BOXES, y) for stage in image for group in np.split(stage, 3))
    objects = (BOXES[..., 4] >= 0).sum()
    loss = np.asarray(GroupLoss(4).call(BOXES, keras.ops.convert_to_tensor(y)))
    assert loss.shape == (2,)
    np.testing.assert_allclose(loss.mean(), want / objects / 3, rtol=1e-5)
    alone = np.asarray(GroupLoss(12).call(BOXES, keras.ops.convert_to_tensor(y))).mean()
    want = sum(by_hand(t, stage) for t, image in zip(BOXES, y) for stage in image)
    np.testing.assert_allclose(alone, want / objects, rtol=1e-5)
    again = keras.losses.deserialize(keras.losses.serialize(GroupLoss(4, l1=1.0)))
    assert (again.queries, again.l1, again.giou) == (4, 1, 2)


def test_no_objects_and_no_certainty_give_finite_numbers():
    nothing = np.full((2, 3, 5), -1, "float32")
    y = predicted()
    y[..., 4:] *= 1000
    assert np.isfinite(np.asarray(GroupLoss(12).call(nothing, keras.ops.convert_to_tensor(y[:, :, :12])))).all()
    y[..., 2:4] = y[..., :2]  # no area
    assert np.isfinite(np.asarray(GroupLoss(4).call(BOXES, keras.ops.convert_to_tensor(y)))).all()

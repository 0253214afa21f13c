import keras
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from keras_vit.tasks.detect.set_loss import SetLoss
from tests.marks import slow, slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
BOXES = np.array(
    [[[0, 0, 0, 0, -1], [0.1, 0.1, 0.9, 0.7, 0], [0.3, 0.3, 0.6, 0.5, 1], [0, 0, 0, 0, -1]], [[0, 0, 0, 0, -1]] * 4],
    "float32",
)


def predicted(blocks=2, queries=6, classes=2):
    low = RNG.uniform(0, 0.6, (2, blocks, queries, 2))
    high = low + RNG.uniform(0.05, 0.4, low.shape)
    return np.concatenate([low, high, RNG.normal(size=(2, blocks, queries, classes + 1))], -1).astype("float32")


def giou(a, b):
    low, high = np.maximum(a, b)[:2], np.minimum(a, b)[2:]
    common = np.prod(np.maximum(high - low, 0))
    union = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common
    around = np.prod(np.maximum(a, b)[2:] - np.minimum(a, b)[:2])
    return common / union - (around - union) / around


def l1(a, b):
    return sum(abs((a[i] + a[i + 2] - b[i] - b[i + 2]) / 2) + abs(a[i + 2] - a[i] - b[i + 2] + b[i]) for i in (0, 1))


def by_hand(truth, found):
    """DETR's loss of one image and one block, with scipy's assignment."""
    truth = truth[truth[:, 4] >= 0]
    shares = np.exp(found[:, 4:]) / np.exp(found[:, 4:]).sum(-1, keepdims=True)
    labels = np.full(len(found), shares.shape[1] - 1)
    pairs = [], []
    if len(truth):
        cost = [
            [5 * l1(t, f) - 2 * giou(t[:4], f) - s[int(t[4])] for f, s in zip(found[:, :4], shares)]
            for t in truth[:, :5]
        ]
        pairs = linear_sum_assignment(np.array(cost))
        labels[pairs[1]] = truth[pairs[0], 4].astype(int)
    weights = np.where(labels == shares.shape[1] - 1, 0.1, 1)
    entropy = -(weights * np.log(shares[np.arange(len(found)), labels])).sum() / weights.sum()
    apart = [5 * l1(truth[i], found[j]) + 2 * (1 - giou(truth[i][:4], found[j][:4])) for i, j in zip(*pairs)]
    return entropy + sum(apart) / max(len(truth), 1)


@slow_on_jax
def test_the_loss_is_detrs_over_all_blocks():
    y = predicted()
    want = [sum(by_hand(truth, block) for block in blocks) for truth, blocks in zip(BOXES, y)]
    loss = SetLoss()
    np.testing.assert_allclose(np.asarray(loss.call(BOXES, keras.ops.convert_to_tensor(y))), want, rtol=1e-4)
    again = keras.losses.deserialize(keras.losses.serialize(SetLoss(l1=1.0, giou=3.0)))
    assert (again.l1, again.giou) == (1, 3)


@slow_on_jax
def test_rows_may_be_more_than_queries_if_objects_are_not():
    y = predicted(queries=2)
    want = [sum(by_hand(truth, block) for block in blocks) for truth, blocks in zip(BOXES, y)]
    np.testing.assert_allclose(np.asarray(SetLoss().call(BOXES, keras.ops.convert_to_tensor(y))), want, rtol=1e-4)


@slow
def test_queries_learn_a_set_in_a_compiled_step():
    from keras_vit.layers import SetBoxes, SetHead

    inputs = keras.Input((1,))
    tokens = keras.layers.Reshape((1, 5, 16))(keras.layers.Dense(80)(inputs))
    learner = keras.Model(inputs, SetHead(2)(tokens))
    learner.compile(keras.optimizers.Adam(0.02), SetLoss())
    x = np.array([[1.0], [-1.0]], "float32")
    for _ in range(200):
        learner.train_on_batch(x, BOXES)
    got = np.asarray(SetBoxes()(learner(x)))
    likely = got[0][got[0, :, 4:].max(-1) > 0.5]
    assert len(likely) == 2 and got[1, :, 4:].max() < 0.5
    for row in likely:
        np.testing.assert_allclose(row[:4], BOXES[0, 1 + row[4:].argmax(), :4], atol=0.05)

import keras
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

from keras_vit.tasks.detect.open_loss import OpenLoss
from tests.marks import slow_on_jax
from tests.tasks.detect.test_set_loss import BOXES, giou, l1

pytestmark = pytest.mark.backend
TRUTH = np.concatenate([BOXES, [[[0.5, 0.2, 0.9, 0.4, 1], [0, 0, 0, 0, -3], [0.2, 0.1, 0.4, 0.3, 1], [0] * 4 + [-1]]]])


def predicted(patches=9, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-0.1, 0.6, (3, patches, 2))
    high = low + rng.uniform(0.05, 0.4, low.shape)
    return np.concatenate([low, high, rng.normal(size=(3, patches, classes))], -1).astype("float32")


def by_hand(truth, found):
    """OWL-ViT's loss of one image, with scipy's assignment; and the patches of its objects."""
    truth = truth[truth[:, 4] >= 0]
    p, labels = expit(found[:, 4:].astype("float64")), truth[:, 4].astype(int)
    true, false = -0.3 * (1 - p) ** 2 * np.log(p), -0.7 * p**2 * np.log(1 - p)
    cost = [[true[j, t] - false[j, t] + l1(box, found[j]) - giou(box[:4], found[j, :4]) for j in range(len(p))]
            for t, box in zip(labels, truth)]  # fmt: skip
    objects, patches = linear_sum_assignment(np.array(cost).reshape(len(truth), len(p)))
    target = np.zeros(p.shape)
    target[patches, labels[objects]] = 1
    apart = [l1(truth[i], found[j]) + 1 - giou(truth[i, :4], found[j, :4]) for i, j in zip(objects, patches)]
    return ((target * true + (1 - target) * false).sum() + sum(apart)) / max(len(truth), 1), patches


@slow_on_jax
def test_each_object_is_matched_with_a_patch_and_each_image_divided_by_its_objects():
    y = predicted()
    want = [by_hand(*pair)[0] for pair in zip(TRUTH, y)]
    loss = np.asarray(OpenLoss().call(TRUTH, keras.ops.convert_to_tensor(y)))
    np.testing.assert_allclose(loss, want, rtol=1e-5)
    assert len({*by_hand(TRUTH[0], y[0])[1]}) == 2
    alone = np.asarray(OpenLoss().call(TRUTH[:1], keras.ops.convert_to_tensor(y[:1])))
    np.testing.assert_allclose(alone, want[:1], rtol=1e-5)  # whatever is in the batch


def test_no_certainty_and_more_objects_than_patches_give_finite_numbers():
    y = predicted()
    y[..., 4:] *= 1000
    assert np.isfinite(np.asarray(OpenLoss().call(TRUTH, keras.ops.convert_to_tensor(y)))).all()
    assert np.isfinite(np.asarray(OpenLoss().call(TRUTH, keras.ops.convert_to_tensor(y[:, :1])))).all()
    again = keras.losses.deserialize(keras.losses.serialize(OpenLoss(l1=3.0)))
    assert (again.cost, again.l1, again.giou) == (1, 3, 1)

import keras
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from keras_vit.tasks.segment.instance_loss import InstanceLoss, true_boxes
from tests.marks import slow_on_jax
from tests.tasks.detect.test_group_loss import iou
from tests.tasks.detect.test_set_loss import giou, l1
from tests.tasks.segment.test_mask_loss import apart
from tests.tasks.segment.test_query_loss import COLUMNS, ROWS, UNITS, maps

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def predicted(stages=2, groups=3, queries=4):
    low = RNG.uniform(-0.1, 0.6, (2, stages, groups, queries, 2))
    high = low + RNG.uniform(0.05, 0.4, low.shape)
    more = RNG.normal(size=(2, stages, groups, queries, UNITS + ROWS * COLUMNS))
    return np.concatenate([low, high, more], -1).astype("float32")


def objects_of(values):
    """The objects of a map: value, box as shares of the image, class, and mask in cells of 2 x 2 pixels."""
    for value in np.unique(values[values >= 0]):
        rows, columns = np.nonzero(values == value)
        ends = rows.min(), columns.min(), rows.max() + 1, columns.max() + 1
        box = np.array([*(end / side for end, side in zip(ends, values.shape * 2)), value // 1000])
        yield box, (values == value)[1::2, 1::2].ravel()


def by_hand(values, found, entropy=5.0, dice=5.0):
    """The loss of one group, not divided, with scipy's assignment."""
    objects = [*objects_of(values)]
    logits, masks = found[:, 4 : 4 + UNITS].astype("float64"), found[:, 4 + UNITS :]
    p = 1 / (1 + np.exp(-logits))
    focal = 0.25 * (1 - p) ** 2 * -np.log(p) - 0.75 * p**2 * -np.log(1 - p)
    loss, matched = 0.0, np.zeros(p.shape, bool)
    if objects:
        cost = [
            [
                2 * f[int(t[4])] + 5 * l1(t, b) - 2 * giou(t[:4], b[:4]) + apart(m, mask, entropy, dice)
                for f, b, m in zip(focal, found, masks)
            ]
            for t, mask in objects
        ]
        for i, j in zip(*linear_sum_assignment(np.array(cost))):
            (t, mask), b = objects[i], found[j]
            label = int(t[4])
            target = max(p[j, label] ** 0.25 * iou(t[:4], b[:4]) ** 0.75, 0.01)
            loss -= target * np.log(p[j, label]) + (1 - target) * np.log(1 - p[j, label])
            loss += 5 * l1(t, b) + 2 * (1 - giou(t[:4], b[:4])) + apart(masks[j], mask, entropy, dice)
            matched[j, label] = True
    return loss - (p**2 * np.log(1 - p))[~matched].sum()


@slow_on_jax
def test_each_group_is_matched_by_itself_by_boxes_and_masks():
    y_true, y_pred = maps(), predicted()
    for weights in ({}, {"masks": 1.0, "dice": 20.0}):
        want = sum(
            by_hand(values[..., 0], group, *weights.values())
            for values, image in zip(y_true, y_pred)
            for stage in image
            for group in stage
        )
        loss = np.asarray(InstanceLoss(UNITS, **weights).call(y_true, keras.ops.convert_to_tensor(y_pred)))
        assert loss.shape == (2,)
        np.testing.assert_allclose(loss.mean(), want / 4 / 3, rtol=1e-5)  # four objects, three groups
    again = keras.losses.deserialize(keras.losses.serialize(InstanceLoss(7, dice=1.0, l1=2.0)))
    assert (again.units, again.masks, again.dice, again.l1, again.giou) == (7, 5, 1, 2, 2)


def test_boxes_are_those_around_the_pixels():
    boxes = keras.ops.convert_to_numpy(true_boxes(maps(), np.array([[0, 1001, -1], [2007, -1, -1]])))
    np.testing.assert_allclose(boxes[0, 0], [2 / 8, 7 / 12, 1, 1], atol=1e-6)
    np.testing.assert_allclose(boxes[0, 1], [0, 0, 4 / 8, 5 / 12], atol=1e-6)
    np.testing.assert_allclose(boxes[1, 0], [3 / 8, 2 / 12, 6 / 8, 11 / 12], atol=1e-6)
    assert np.isfinite(boxes).all()


def test_no_objects_and_no_certainty_give_finite_numbers():
    y_pred = predicted()
    y_pred[..., 4:] *= 1000
    y_pred[..., 2:4] = y_pred[..., :2]  # no area
    for y_true in (maps(), np.full((2, 8, 12, 1), -1, "int32")):
        assert np.isfinite(np.asarray(InstanceLoss(UNITS).call(y_true, keras.ops.convert_to_tensor(y_pred)))).all()


@slow_on_jax
def test_of_more_objects_than_queries_the_largest_count():
    y_true, y_pred = maps(), predicted(stages=1, groups=1, queries=2)
    few = y_true.copy()
    few[0][few[0] == 1002] = -1  # the smallest in cells
    loss = np.asarray(InstanceLoss(UNITS).call(y_true, keras.ops.convert_to_tensor(y_pred)))
    want = np.asarray(InstanceLoss(UNITS).call(few, keras.ops.convert_to_tensor(y_pred)))
    np.testing.assert_allclose(loss, want, rtol=1e-6)


def test_another_aspect_ratio_is_refused():
    with pytest.raises(ValueError, match="images' aspect ratio, 8 to 12. Received: 25 cells"):
        InstanceLoss(UNITS).call(maps(), np.zeros((2, 1, 1, 5, 4 + UNITS + 25), "float32"))

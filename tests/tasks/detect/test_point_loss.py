import keras
import numpy as np
import pytest

from keras_vit.tasks.detect.point_loss import PointLoss, targets

pytestmark = [pytest.mark.backend, pytest.mark.compiled]

SIZE = (12, 16)
BOXES = np.array(
    [
        [[0.1, 0.1, 0.9, 0.7, 0], [0.3, 0.3, 0.6, 0.5, 2], [0, 0, 0, 0, -1]],
        [[0, 0, 0, 0, -1]] * 3,
    ],
    "float32",
)


def bell(low, high, side):
    center, deviation = np.floor((low + high) / 2 * side), (high - low) * side * 0.54 / 6
    return np.exp(-(((np.arange(side) - center) / deviation) ** 2) / 2)


def bells(box):
    return bell(box[0], box[2], SIZE[0])[:, None] * bell(box[1], box[3], SIZE[1])


def test_targets_are_gaussians_and_the_edges_of_the_smallest_object():
    heat, edges, weights = map(np.asarray, targets(BOXES, SIZE, 3))
    large, small = map(bells, BOXES[0, :2])
    np.testing.assert_allclose(heat[0, ..., 0], large, atol=1e-6)
    np.testing.assert_allclose(heat[0, ..., 2], small, atol=1e-6)
    assert not heat[0, ..., 1].any() and not heat[1].any() and not weights[1].any()
    assert (heat == 1).sum() == 2
    inside, around = small > np.exp(-4.5), large > np.exp(-4.5)
    np.testing.assert_allclose(edges[0][inside], np.tile(BOXES[0, 1, :4], (inside.sum(), 1)))
    only = around & ~inside
    np.testing.assert_allclose(edges[0][only], np.tile(BOXES[0, 0, :4], (only.sum(), 1)))
    assert weights[0][inside].sum() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(weights[0][only], large[only] / large[around].sum(), rtol=1e-4)
    assert not weights[0][~(inside | around)].any()


def test_objects_that_are_small_or_without_area_give_finite_targets():
    boxes = np.array([[[0.5, 0.5, 0.5001, 0.5001, 0], [0.999, 0.999, 1, 1, 0], [0, 0, 0, 0, 0]]], "float32")
    found = [np.asarray(each) for each in targets(boxes, SIZE, 1)]
    assert all(np.isfinite(each).all() for each in found) and found[0].max() == 1


def test_the_loss_is_that_of_the_formulas():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(2, *SIZE, 7)).astype("float32")
    heat, edges, weights = map(np.asarray, targets(BOXES, SIZE, 3))
    share = 1 / (1 + np.exp(-y[..., 4:].astype("float64")))
    focal = np.where(heat == 1, (1 - share) ** 2 * np.log(share), (1 - heat) ** 4 * share**2 * np.log(1 - share))
    middle = np.stack(np.meshgrid((np.arange(12) + 0.5) / 12, (np.arange(16) + 0.5) / 16, indexing="ij"), -1)
    away = np.exp(y[..., :4]) / (12, 16, 12, 16)
    found = np.concatenate([middle - away[..., :2], middle + away[..., 2:]], -1)
    low, high = np.maximum(found, edges)[..., :2], np.minimum(found, edges)[..., 2:]
    common = np.prod(np.maximum(high - low, 0), -1)
    area = [np.prod(each[..., 2:] - each[..., :2], -1) for each in (found, edges)]
    union = area[0] + area[1] - common
    around = np.prod(np.maximum(found, edges)[..., 2:] - np.minimum(found, edges)[..., :2], -1)
    giou = common / union - (around - union) / around
    want = (-focal.sum((1, 2, 3)) + 5 * (weights * (1 - giou)).sum((1, 2))) / (2, 1)
    loss = PointLoss()
    np.testing.assert_allclose(np.asarray(loss.call(BOXES, keras.ops.convert_to_tensor(y))), want, rtol=1e-4)
    assert float(loss(BOXES, y)) == pytest.approx(want.mean(), rel=1e-4)
    again = keras.losses.deserialize(keras.losses.serialize(PointLoss(2.0)))
    assert again.box_weight == 2


def test_a_map_learns_the_boxes_in_a_compiled_step():
    from keras_vit.layers import PointBoxes

    inputs = keras.Input((1,))
    found = keras.layers.Reshape((*SIZE, 7))(keras.layers.Dense(12 * 16 * 7)(inputs))
    learner = keras.Model(inputs, found)
    learner.compile(keras.optimizers.Adam(0.1), PointLoss())
    x = np.array([[1.0], [-1.0]], "float32")
    for _ in range(150):
        learner.train_on_batch(x, BOXES)
    got = np.asarray(PointBoxes(most=10)(learner(x)))
    order = np.argsort(-got[0, :2, 4:].max(-1), kind="stable")
    assert sorted(got[0, order, 4:].argmax(-1)) == [0, 2] and got[0, 1, 4:].max() > 0.8
    for row in got[0, :2]:
        want = BOXES[0, 0 if row[4:].argmax() == 0 else 1, :4]
        np.testing.assert_allclose(row[:4], want, atol=0.03)
    assert got[0, 2:, 4:].max() < 0.2 and got[1, :, 4:].max() < 0.2


def test_a_region_to_ignore_has_no_loss_of_its_class():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(2, *SIZE, 7)).astype("float32")
    crowd = np.array(BOXES)
    crowd[1, 1] = (0.25, 0.5, 0.75, 1, -2 - 1)  # rows 3 to 8, columns 8 to 15, class 1
    loss = lambda truth, y: np.asarray(PointLoss()(truth, y))  # noqa: E731
    inside = np.zeros(y.shape, bool)
    inside[1, 3:9, 8:, 5] = True
    moved = np.where(inside, y + 3, y)
    assert loss(crowd, moved) == pytest.approx(loss(crowd, y), rel=1e-6)
    assert loss(BOXES, moved) > loss(BOXES, y) + 1
    for place in ((1, 2, 8, 5), (1, 3, 7, 5), (1, 3, 8, 4), (0, 3, 8, 5)):  # beside it, of another class or image
        moved = y.copy()
        moved[place] += 5
        assert loss(crowd, moved) != pytest.approx(loss(crowd, y), rel=1e-6)

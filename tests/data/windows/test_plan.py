import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.windows import plan

SHAPES = [(100, 300), (64, 50)]


def numbers(count, seed=0):
    return np.random.default_rng(seed).uniform(size=(count, plan.NUMBERS))


def test_anywhere_every_place_is_as_likely():
    made = plan.anywhere((60, 100), SHAPES, 5)
    assert made.quotas.tolist() == [5, 5]
    starts = made.starts(np.zeros(20_000, int), numbers(20_000))
    for axis, room in ((0, 40), (1, 200)):
        counts = np.bincount(starts[:, axis], minlength=room + 1)
        assert len(counts) == room + 1 and counts.min() > 0.5 * 20_000 / (room + 1)  # the last row and column too
    assert made.starts(np.ones(50, int), numbers(50))[:, 1].tolist() == [0] * 50  # a picture that is narrower


def test_the_ends_of_the_random_numbers():
    """albumentations#342: the start was drawn from one place too many."""
    made = plan.anywhere((60, 100), SHAPES, 5)
    last = 1 - 2.0**-24  # the largest number that is drawn
    assert made.starts(np.array([0, 0]), np.array([[0] * 4, [last] * 4])).tolist() == [[0, 0], [40, 200]]


def test_objects_are_whole_inside_at_any_place():
    small, large = np.array([[50.5, 20.0, 60.2, 40.0]]), np.array([[10.0, 10.0, 90.0, 290.0]])
    made = plan.around((60, 100), SHAPES, 10, [[small, large], [small[:0], large[:0]]], [[1, 1], [0, 0]], share=0.0)
    assert made.quotas.tolist() == [20, 0]  # nothing is in the second picture
    starts = made.starts(np.zeros(4000, int), numbers(4000))
    around_small = starts[:, 1] <= 20
    inside = (starts[around_small] <= [50, 20]).all(1) & (starts[around_small] + [60, 100] >= [61, 40]).all(1)
    of_large = (starts >= [10, 10]).all(1) & (starts + [60, 100] <= [90, 290]).all(1)
    assert (of_large[~around_small]).all()
    assert inside[~of_large[around_small]].all()
    assert len(np.unique(starts[around_small][:, 0])) > 30  # not always in the middle


def test_each_kind_is_drawn_equally_often():
    shapes = [(1000, 1000)] * 4
    regions = [[np.array([[y, 10 * k, y + 1, 10 * k + 1]]) for k in range(3)] for y in (100, 300, 500, 700)]
    weights = np.array([[1000, 1, 0], [1000, 0, 0], [1000, 0, 5], [1000, 0, 0]])
    for i, row in enumerate(weights):
        regions[i] = [edges[: min(count, 1)] for edges, count in zip(regions[i], row)]
    made = plan.around((2, 2), shapes, 300, regions, weights, share=0.1)
    assert made.quotas.sum() == 1200
    assert made.quotas.tolist() == [30 + 90 + 360, 30 + 90, 30 + 90 + 360, 30 + 90]
    pictures = np.repeat(np.arange(4), made.quotas)
    starts = made.starts(pictures, numbers(1200))
    for kind, places in enumerate(((0, 1, 2, 3), (0,), (2,))):
        there = np.array([regions[i][kind][0, :2] if len(regions[i][kind]) else (-9, -9) for i in range(4)])[pictures]
        around = (np.abs(starts + 0.5 - there) <= 1).all(axis=1)
        assert 330 <= around.sum() <= 390  # 360, by chance
        assert set(pictures[around]) == {*places}


def test_a_kind_of_no_picture_changes_nothing():
    one, none = np.array([[5.0, 5, 6, 6]]), np.zeros((0, 4))
    made = plan.around((4, 4), [(20, 20)], 50, [[one, none, none]], [[3, 0, 0]], share=0.0)
    starts = made.starts(np.zeros(500, int), numbers(500))
    assert ((starts <= 5) & (starts >= 2)).all()
    assert plan.around((4, 4), [(20, 20)], 50, [[none]], [[0]], share=0.0).quotas.tolist() == [50]  # anywhere


def test_quotas_add_up():
    random = np.random.default_rng(3)
    for _ in range(50):
        weights = random.integers(0, 5, (7, 3))
        regions = [[np.zeros((count, 4)) for count in row] for row in weights]
        made = plan.around((4, 4), [(20, 20)] * 7, 13, regions, weights, share=random.uniform())
        assert made.quotas.sum() == 91 and made.quotas.min() >= 0


def test_a_grid_covers_all_by_as_few_as_can():
    for shape in ((100, 300), (60, 100), (61, 99), (1, 1)):
        starts = plan.grid(shape, (60, 100))
        seen = np.zeros(shape, int)
        for top, left in starts:
            assert top + 60 <= max(shape[0], 60) and left + 100 <= max(shape[1], 100)
            seen[top : top + 60, left : left + 100] += 1
        assert seen.min() == 1
        assert len(starts) == -(-shape[0] // 60) * -(-shape[1] // 100)

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.windows import boxes

SHAPE, SIZE = (1000, 2000), (100, 200)


def rows(*pixels):
    """Returns boxes of top, left, bottom, right and class in pixels of the picture, and an empty row."""
    found = np.array([*pixels, (0, 0, 0, 0, -1)], "float32").reshape(-1, 5)
    found[:, :4] /= (*SHAPE, *SHAPE)
    return found


def cut(objects, start=(100, 200), visible=0.5):
    return boxes.cut(objects, SHAPE, start, SIZE, visible)


def test_boxes_inside_are_in_shares_of_the_crop():
    found = cut(rows((110, 220, 150, 300, 3)))
    np.testing.assert_allclose(found, [[0.1, 0.1, 0.5, 0.5, 3]], rtol=1e-5)


def test_what_remains_of_an_object_decides():
    left_half = (110, 150, 150, 250, 3)  # half of it is left of the crop
    np.testing.assert_allclose(cut(rows(left_half)), [[0.1, 0, 0.5, 0.25, 3]], rtol=1e-5)
    np.testing.assert_allclose(cut(rows(left_half), visible=0.51)[:, 4], [-5])  # ignored, neither right nor wrong
    assert len(cut(rows((110, 100, 150, 200, 3)))) == 0  # it ends where the crop begins


def test_a_whole_object_is_visible_whatever_the_rounding():
    """albumentations#875: with the least share 1, boxes that are whole inside were dropped."""
    random = np.random.default_rng(0)
    for _ in range(200):
        top, left = random.uniform(100, 150), random.uniform(200, 300)
        whole = (top, left, top + random.uniform(1, 50), left + random.uniform(1, 100), 0)
        assert cut(rows(whole), visible=1.0)[:, 4].tolist() == [0]


def test_shares_stay_inside_the_crop():
    """ultralytics#22818: labels of tiles exceeded 0 to 1."""
    random = np.random.default_rng(1)
    edges = np.sort(random.uniform(0, 1, (500, 2, 2)), axis=1).reshape(500, 4) * (*SHAPE, *SHAPE)
    found = cut(rows(*np.c_[edges, np.zeros(500)]), visible=0.01)
    assert len(found) and found[:, :4].min() >= 0 and found[:, :4].max() <= 1
    assert (found[:, :2] < found[:, 2:4]).all()


def test_regions_to_ignore_are_cut_too():
    """mmdetection#2810: `gt_bboxes_ignore` was not cut with the image."""
    np.testing.assert_allclose(cut(rows((0, 0, 1000, 2000, -4))), [[0, 0, 1, 1, -4]])
    assert len(cut(rows((0, 0, 50, 50, -4)))) == 0


def test_no_crop_has_more_boxes_than_said():
    random = np.random.default_rng(2)
    for size, side in ((SIZE, 20), (SIZE, 400), ((37, 51), 30), (SHAPE, 10), ((1500, 90), 60)):
        tops, lefts = random.uniform(0, 980, 300), random.uniform(0, 1980, 300) ** 2 / 1980
        objects = rows(*np.c_[tops, lefts, np.minimum(tops + side, 1000), np.minimum(lefts + side, 2000), tops * 0])
        starts = np.stack([random.integers(0, max(s - c, 0) + 1, 500) for s, c in zip(SHAPE, size)], axis=1)
        most = max(len(boxes.cut(objects, SHAPE, start, size, 0.5)) for start in starts)
        said = boxes.most_in_crop(objects, SHAPE, size)
        assert most <= said <= 300
        assert said < 2 * most  # close enough: rows of padding cost time


def test_padding():
    array = boxes.padded([np.ones((2, 5), "float32"), np.zeros((0, 5), "float32")], 3)
    assert array[:, :, 4].tolist() == [[1, 1, -1], [-1, -1, -1]]
    assert boxes.padded([np.zeros((0, 5))], 0).shape == (1, 1, 5)

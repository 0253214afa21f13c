import importlib.util

import numpy as np
import pytest

from keras_vit.tasks import average_precision
from keras_vit.utils.run_lengths import run_lengths

pytest.importorskip("pycocotools")

IMAGES = [{"id": i, "height": 6, "width": 8} for i in range(2)]


def box(left, image=0, label=0, **more):
    """Returns an object of 2 x 2 pixels, by its left edge."""
    mask = np.zeros((6, 8), bool)
    mask[:2, left : left + 2] = True
    shape = {"bbox": [float(left), 0.0, 2.0, 2.0], "segmentation": run_lengths(mask)}
    names = dict(zip(("bbox", "segm"), shape))
    return lambda kind: {"image_id": image, "category_id": label, names[kind]: shape[names[kind]], **more}


def true(*arguments, crowd=0):
    return box(*arguments, iscrowd=crowd, area=4)


def measured(kind, truth, found, classes=2):
    return average_precision.precision_of(kind, IMAGES, classes, [t(kind) for t in truth], [f(kind) for f in found])


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_precision_of_a_right_a_wrong_and_a_right_one(kind):
    """Up to half of the recall precision is 1, then two of three."""
    found = [box(0, score=0.9), box(6, score=0.8), box(2, 1, score=0.7), box(4, 1, 1, score=0.6)]
    precision = measured(kind, [true(0), true(2, 1)], found)
    assert precision.shape == (10, 101, 2)
    np.testing.assert_allclose(precision[:, :, 0], [[1] * 51 + [2 / 3] * 50] * 10)
    assert (precision[..., 1] == -1).all()  # no true object
    mean = (51 + 50 * 2 / 3) / 101
    scores = average_precision.scores(precision, ["a", "b"], "mean", "half")
    assert scores == pytest.approx({"mean": mean, "half": mean, "ap50 a": mean})
    assert len(average_precision.figures(precision, ["a", "b"])) == 1


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_what_is_in_a_crowd_is_neither_right_nor_wrong(kind):
    found = [box(6, score=0.9), box(0, score=0.8)]
    np.testing.assert_allclose(measured(kind, [true(0), true(6, crowd=1)], found)[..., 0], 1)
    wrong = measured(kind, [true(0), true(6, 1, crowd=1)], found)[..., 0]  # the crowd is in another image
    np.testing.assert_allclose(wrong, 0.5)


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_nothing_true_or_nothing_found(kind):
    nothing = measured(kind, [], [box(0, score=0.9)])
    assert (nothing == -1).all() and average_precision.figures(nothing, ["a", "b"]) == {}
    assert average_precision.scores(nothing, ["a", "b"], "mean", "half") == {"mean": 0, "half": 0}
    missed = measured(kind, [true(0)], [])
    assert average_precision.scores(missed, ["a", "b"], "mean", "half") == {"mean": 0, "half": 0, "ap50 a": 0}


def test_f1_leaves_out_what_is_in_a_region_to_ignore():
    shares, ignore = np.array([[0.9, 0.0], [0.6, 0.2], [0.0, 0.7]]), np.array([False, True])
    assert average_precision.f1(shares, np.array([0.5, 0.9, 0.8]), ignore) == pytest.approx(
        2 / 3
    )  # the second is first
    assert average_precision.f1(shares[[0, 2]], np.ones(2), ignore) == 1
    assert average_precision.f1(shares[:2], np.ones(2), ~ignore) == 0  # the first is one to ignore, the second none
    assert average_precision.f1(np.zeros((0, 0)), np.zeros(0), np.zeros(0, bool)) == 1
    assert shares[1, 0] == 0.6


def test_says_what_must_be_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="COCO's average precision needs pycocotools. Install it: pip .*detection"):
        average_precision.need()

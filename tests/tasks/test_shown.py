import numpy as np
import pytest

from keras_vit.config import Classify, Contrast, Depth, Detect, Regress, Restore, Segment
from keras_vit.tasks.shown import percent, words


def test_a_heading_has_the_likeliest_class():
    task = Classify(classes=("cat", "dog"))
    output = np.log([0.2, 0.8])
    assert task.heading(output) == "dog (80%)" and [*task.bars(output)] == ["dog", "cat"]
    assert task.said(task.answer(output)) == "dog 80.0%, cat 20.0%" and task.legend() == {}


def test_what_is_near_none_is_not_called_none():
    assert words([("a", 0.99951), ("b", 0.0004), ("c", 0.0)]) == "a above 99.9%, b below 0.1%, c 0.0%"
    assert words([("a", 0.99951), ("b", 0.0004)], certain=False) == "a 0.9995, b 0.0004"


def test_a_heading_has_all_labels_that_hold():
    task = Classify(classes=("cat", "dog", "owl"), multilabel=True, thresholds=(0.5, 0.9, 0.1))
    assert task.heading(np.array([2.0, 2.0, -2.0])) == "cat 88.1%, owl 11.9%"
    assert [*task.bars(np.array([2.0, 2.0, -2.0]))] == ["[cat]", "[owl]", "dog"]
    assert task.heading(np.array([-3.0, 0.0, -5.0])) == "no label"


def test_numbers_are_no_shares():
    """Those from 0 to 1 have no per cent, and all are named, however few are asked for."""
    task = Regress(names=("age", "height", "width", "depth"))
    output = np.array([0.25, 0.5, 0.75, 1.0])
    assert task.heading(output) == "age 0.25, height 0.5, width 0.75, depth 1"
    assert task.bars(output) == {} and len(task.listed(output, 1)) == 4


@pytest.mark.parametrize(
    "found, heading",
    [
        ([(0, 0.75), (0, 0.4), (1, 0.98), (0, 0.1)], "1 WBC, 2 RBC"),
        ([(0, 0.31)], "1 RBC"),
        ([(0, 0.2)], "nothing"),
    ],
)
def test_objects_are_counted_without_a_share(found, heading):
    task = Detect(classes=("RBC", "WBC"))
    output = np.zeros((9, 6), "float32")
    for i, (kind, score) in enumerate(found):
        output[i] = [0.1, 0.1, 0.3, 0.3, 0, 0]
        output[i, 4 + kind] = score
    assert task.heading(output) == task.said(dict(task.listed(output, 1))) == heading
    assert task.bars(output) == {} and [*task.legend()] == ["RBC", "WBC"]


def test_areas_are_of_what_is_painted():
    task = Segment(classes=("background", "nucleus", "cell", "wall", "rim"))
    classes = np.repeat([0, 1, 2, 3, 4], [60, 5, 20, 10, 5])
    output = np.eye(5)[classes].reshape(10, 10, 5)
    assert task.heading(output) == "cell: 20.0%, wall: 10.0%, nucleus: 5.0% of the area"
    assert task.heading(np.eye(5)[np.zeros((4, 4), int)]) == "background: 100.0% of the area"
    assert task.bars(output) == {} and [*task.legend()] == ["nucleus", "cell", "wall", "rim"]
    assert [percent(share) for share in (0, 0.0004, 0.9996, 1)] == ["0.0%", "below 0.1%", "above 99.9%", "100.0%"]


def test_depth_has_its_unit():
    values = np.array([0.25, 1906.3], "float32").reshape(1, 2, 1)
    assert Depth().heading(values) == "relative inverse depth 0.25 to 1,906: no unit, large is near"
    assert Depth(largest=10.0).heading(values / 200) == "depth 0.00125 to 9.53 m"
    assert Depth().shows(values) == "from left to right: image, predicted"


def test_a_cosine_is_no_share():
    task = Contrast(width=2)
    pair = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert task.heading(pair) == "similarity 0.60" and task.bars(pair) == {}


def test_a_restored_image_is_beside_what_was_given():
    assert Restore(scale=2).heading(np.zeros((4, 6, 3))) == "6 x 4 pixels"
    assert Restore(scale=2).shows(None) == "from left to right: enlarged by cubic convolution, restored"
    assert Restore(noise=9.0).shows(None) == "from left to right: as it is, restored"

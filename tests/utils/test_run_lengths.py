import json

import numpy as np
import pytest

from keras_vit.utils import run_lengths

coco = pytest.importorskip("pycocotools.mask")

MASK = np.array([[0, 1, 1], [0, 1, 0]], bool)


def test_runs_go_down_the_columns():
    runs = run_lengths.run_lengths(MASK)
    assert runs["size"] == [2, 3]
    wanted = coco.frPyObjects({"size": [2, 3], "counts": [2, 3, 1]}, 2, 3)  # none, then three, then one without
    assert runs["counts"] == wanted["counts"]
    np.testing.assert_array_equal(coco.decode(run_lengths.run_lengths(MASK.astype(float))), MASK)


def test_of_each_number_of_a_map():
    numbers = np.random.default_rng(0).integers(-1, 4, (7, 5)).astype("int32")
    for number, runs in zip((3, 0, 9), run_lengths.of_map(numbers, (3, 0, 9)), strict=True):
        np.testing.assert_array_equal(coco.decode(runs), numbers == number)


def test_json_holds_them():
    text = json.dumps(run_lengths.written(run_lengths.run_lengths(MASK)))
    np.testing.assert_array_equal(coco.decode(json.loads(text)), MASK)

from functools import partial

import numpy as np
import pytest

from keras_vit.checkpoints import adapt
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend

KERNEL = np.random.default_rng(0).normal(size=(2, 2, 3, 4)).astype("float32")


def test_channels():
    assert adapt.channels(KERNEL, 3) is KERNEL
    np.testing.assert_allclose(adapt.channels(KERNEL, 1), KERNEL.sum(2, keepdims=True))
    np.testing.assert_allclose(adapt.channels(KERNEL, 7), KERNEL[:, :, [0, 1, 2, 0, 1, 2, 0]] * (3 / 7), rtol=1e-6)
    assert adapt.channels(KERNEL, 7).dtype == "float32"
    with pytest.raises(ValueError, match="3 channels adapt to 1. Received: weights for 2"):
        adapt.channels(KERNEL[:, :, :2], 1)


def test_statistics():
    assert adapt.statistics(0.5, 1) == 0.5 and adapt.statistics([0.1, 0.2, 0.3], 3) == [0.1, 0.2, 0.3]
    assert adapt.statistics([0.1, 0.2, 0.3], 1) == pytest.approx(0.2)


COVERED = [
    (dict(count=197, prefix=1, registers=0), (1, (14, 14))),
    (dict(count=196, prefix=1, registers=0), (0, (14, 14))),
    (dict(count=198, prefix=2, registers=0), (2, (14, 14))),
    (dict(count=196, prefix=0, registers=0), (0, (14, 14))),
    (dict(count=197, prefix=5, registers=4), (1, (14, 14))),  # DINOv2's own files: registers have no position
    (dict(count=196, prefix=5, registers=4), (0, (14, 14))),
    (dict(count=201, prefix=5, registers=4), (5, (14, 14))),
    (dict(count=281, prefix=1, registers=0, grid=(14, 20)), (1, (14, 20))),
    (dict(count=280, prefix=1, registers=0, grid=(14, 20)), (0, (14, 20))),
    (dict(count=281, prefix=1, registers=0, likely=(14, 20)), (1, (14, 20))),
    (dict(count=225, prefix=1, registers=0, likely=(14, 16)), (1, (14, 16))),
    (dict(count=225, prefix=1, registers=0, likely=(7, 7)), (0, (15, 15))),
    (dict(count=225, prefix=1, registers=0, likely=(14, 16), class_position=False), (0, (15, 15))),
    (dict(count=197, prefix=1, registers=0, likely=(14, 14), class_position=True), (1, (14, 14))),
]
NO_GRID = [
    (dict(count=281, prefix=1, registers=0), r"281 positions.*no square grid.*grid=\(rows, columns\)"),
    (dict(count=197, prefix=1, registers=0, grid=(7, 7)), "no grid of 7 x 7"),
    (dict(count=197, prefix=1, registers=0, likely=(7, 28)), "both a square grid and one of 7 x 28"),
    (dict(count=50, prefix=1, registers=0, likely=(5, 10)), "both a square grid and one of 5 x 10"),  # B/32's at 224
    (dict(count=225, prefix=1, registers=0, class_position=True), "no square grid"),
    (dict(count=3, prefix=1, registers=0), "no square grid"),
]


def test_which_tokens_a_table_covers():
    wrong = [arguments for arguments, expected in COVERED if adapt.covered(**arguments) != expected]
    assert not wrong


def test_tables_that_fit_no_grid():
    assert not unexpected((partial(adapt.covered, **arguments), pattern) for arguments, pattern in NO_GRID)


def test_statistics_that_are_not_numbers():
    bad = [None, ["a", 1, 2], [0.1, float("nan"), 0.1], [[0.1]]]
    assert not unexpected((partial(adapt.statistics, values, 3), "must be finite numbers. Received") for values in bad)


def test_table():
    array = np.random.default_rng(0).normal(size=(1, 1 + 9, 4)).astype("float32")
    own, patches = adapt.table(array, 3, 1, (3, 3), (3, 3), "bicubic")
    np.testing.assert_array_equal(own, np.concatenate([array[:, :1], np.zeros((1, 2, 4))], 1))
    np.testing.assert_array_equal(patches, array[:, 1:])
    assert adapt.table(array, 3, 1, (3, 3), (2, 6), "bicubic")[1].shape == (1, 12, 4)

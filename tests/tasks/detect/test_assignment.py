import functools

import keras
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from keras_vit.tasks.detect.assignment import assign
from tests.marks import few

pytestmark = [pytest.mark.backend, pytest.mark.compiled]

MAKERS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "ties": lambda rng, shape: rng.integers(0, 3, shape),
    "constant": lambda rng, shape: np.ones(shape),
    "equal rows": lambda rng, shape: np.repeat(rng.integers(-9, 9, (shape[0], 1, shape[2])), shape[1], axis=1),
    "equal columns": lambda rng, shape: np.repeat(rng.integers(-9, 9, (*shape[:2], 1)), shape[2], axis=2),
    "product": lambda rng, shape: rng.integers(1, 40, (*shape[:2], 1)) * rng.integers(1, 40, (shape[0], 1, shape[2])),
    "large": lambda rng, shape: rng.integers(-1000, 1000, shape) * 100,
}


@few(14)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("rows, columns", [(1, 1), (8, 20), (1, 9), (5, 5), (20, 24)])
def test_sums_are_those_of_scipy(maker, rows, columns):
    rng = np.random.default_rng(rows)
    costs = MAKERS[maker](rng, (300, rows, columns)).astype("float32")
    counts = rng.integers(0, rows + 1, 300)
    found = solve(costs, counts)
    for cost, count, chosen in zip(costs, counts, found):
        assert (chosen[count:] == -1).all() and len(set(chosen[:count])) == count
        best = cost[:count][linear_sum_assignment(cost[:count])].sum(dtype="float64")
        total = cost[np.arange(count), chosen[:count]].sum(dtype="float64")
        np.testing.assert_allclose(total, best, rtol=0, atol=0 if maker != "normal" else 1e-4)


def solve(costs, counts):
    """Runs `assign` compiled by XLA, once for each shape."""
    return np.asarray(compiled()(costs, counts))


@functools.cache
def compiled():
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(assign)
    import tensorflow as tf

    return tf.function(assign, jit_compile=True)


def test_not_a_number_is_the_highest_cost():
    costs = np.array([[[np.nan, 1.0, np.inf], [0.0, 0.5, 2.0]]], "float32")
    np.testing.assert_array_equal(solve(costs, np.array([2])), [[1, 0]])


def test_more_rows_than_columns_are_named():
    with pytest.raises(ValueError, match="Received: 3 rows and 2 columns"):
        assign(np.zeros((1, 3, 2), "float32"), np.array([2]))

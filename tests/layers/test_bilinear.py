import numpy as np
import pytest
from keras import ops

from keras_vit.explain.relevance import gradients
from keras_vit.layers import bilinear as sampling

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def bilinear(values, x, y):
    """Returns what a map, `(rows, columns, channels)`, has at a place in cells, zero outside: one term a cell."""
    rows, columns, channels = values.shape
    total = np.zeros(channels)
    for i in range(rows):
        for j in range(columns):
            total += max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j)) * values[i, j]
    return total


def test_gradients():
    arrays = RNG.normal(size=(2, 3, 4, 2, 5)), RNG.uniform(-1.5, 4.5, (2, 6, 2, 3, 2)), RNG.uniform(size=(2, 6, 2, 3))
    arrays, upstream = [a.astype("float32") for a in arrays], RNG.normal(size=(2, 6, 2, 5)).astype("float32")

    def by_products(values, places, weights):  # every cell with its share
        return ops.einsum("bhqrc,brchd->bqhd", sampling.shares_of_cells(places, weights, 3, 4), values)

    def slopes(form):
        return gradients(lambda tensors: ops.sum(form(*tensors) * upstream), arrays)

    for found, wanted in zip(slopes(sampling.sampled), slopes(by_products), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_formula():
    values, places = RNG.normal(size=(2, 3, 4, 2, 5)), RNG.uniform(-1.5, 4.5, (2, 6, 2, 3, 2))
    weights = RNG.uniform(size=(2, 6, 2, 3))
    found = sampling.sampled(*(ops.convert_to_tensor(a.astype("float32")) for a in (values, places, weights)))
    for b, q, h in np.ndindex(2, 6, 2):
        terms = (weights[b, q, h, p] * bilinear(values[b, :, :, h], *places[b, q, h, p]) for p in range(3))
        np.testing.assert_allclose(np.asarray(found)[b, q, h], sum(terms), atol=1e-5)


def test_a_place_that_is_no_number_gives_no_number_and_one_far_away_zero():
    values, places = np.ones((1, 2, 2, 1, 1), "float32"), np.array([[np.nan, 0], [1e30, 0], [-np.inf, 1]], "float32")
    found = sampling.sampled(
        ops.convert_to_tensor(values), places.reshape(1, 3, 1, 1, 2), np.ones((1, 3, 1, 1), "float32")
    )
    assert np.isnan(np.asarray(found)[0, 0]).all() and np.asarray(found)[0, 1, 0, 0] == 0

import numpy as np
import pytest

from keras_vit.models.dit import INPUTS
from keras_vit.models.sampler import by_steps, drawn
from tests.generation import small
from tests.marks import first_everywhere, once

pytestmark = pytest.mark.backend

NOISE = np.random.default_rng(2).normal(size=(3, 8, 12, 1)).astype("float32")
LABELS = np.array([0, 2, 3])


def velocity(model, x, time, labels, guidance):
    """Returns the guided velocity, by two calls."""

    def of(labels):
        times = np.full(len(x), time, "float32")
        return np.asarray(model(dict(zip(INPUTS, (x.astype("float32"), times, labels.astype("int32"))))))

    none = of(np.full(len(x), 3))
    return none + guidance * (of(labels) - none)


@pytest.mark.parametrize("guidance", first_everywhere(2.5, 1.0))
def test_euler_is_the_sum_of_its_steps(guidance):
    model, x = small(), NOISE
    for i in range(3):
        x = x + velocity(model, x, i / 3, LABELS, guidance) / 3
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 3, guidance), x, atol=2e-4)
    in_python = by_steps(lambda given: model(given), 3, NOISE, LABELS, 3, guidance)
    np.testing.assert_allclose(in_python, x, atol=2e-4)


@once
def test_heun_corrects_all_steps_but_the_last():
    model, x = small(), NOISE
    for i in range(2):
        first = velocity(model, x, i / 3, LABELS, 2.0)
        second = velocity(model, x + first / 3, (i + 1) / 3, LABELS, 2.0)
        x = x + (first + second) / 6
    x = x + velocity(model, x, 2 / 3, LABELS, 2.0) / 3
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 3, 2.0, "heun"), x, atol=2e-4)
    path = drawn(model, NOISE, LABELS, 3, 2.0, "heun", path=True)
    assert path.shape == (3, 4, 8, 12, 1)
    np.testing.assert_array_equal(path[:, 0], NOISE)
    np.testing.assert_allclose(path[:, -1], x, atol=2e-4)


@once
def test_any_number_of_images_in_batches():
    model = small()
    whole = drawn(model, NOISE, LABELS, 2, 2.0)
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 2, 2.0, batch_size=2), whole, atol=1e-5)
    one = NOISE + velocity(model, NOISE, 0, LABELS, 1.0)
    np.testing.assert_allclose(drawn(model, NOISE, LABELS, 1, 1.0), one, atol=2e-4)


@once
def test_the_variance_of_published_models_is_left_out():
    model = small(out_channels=2)
    assert drawn(model, NOISE, LABELS, 2, 2.0).shape == NOISE.shape

import numpy as np
import pytest

from keras_vit.tasks.pretrain.teacher_schedules import momentum, temperature

pytestmark = pytest.mark.backend


def theirs(base, last, steps):
    """The paper's cosine schedule, written from its formula."""
    return np.array([last - (last - base) * (1 + np.cos(np.pi * i / steps)) / 2 for i in range(steps)])


def test_the_momentum_is_a_cosine_to_one():
    found = [float(momentum(step, 8, 0.996)) for step in range(9)]
    np.testing.assert_allclose(found[:8], theirs(0.996, 1, 8), atol=1e-7)
    assert found[8] == 1 == float(momentum(20, 8, 0.996)) and float(momentum(-1, 8, 0.5)) == 0.5
    assert float(momentum(3, 0, 0.5)) == 1  # of a run without a plan


def test_the_temperature_grows_linearly():
    found = [float(temperature(step, 4, 0.04, 0.07)) for step in range(6)]
    np.testing.assert_allclose(found, [0.04, 0.0475, 0.055, 0.0625, 0.07, 0.07], rtol=1e-5)
    assert float(temperature(0, 0, 0.04, 0.07)) == np.float32(0.07)

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.training import ema

pytestmark = pytest.mark.backend


def compiled(**settings):
    model = vit("mu/4", image_size=8, num_classes=3, depth=1)
    model.compile(keras.optimizers.SGD(0.25, **settings), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def numbers(variables):
    return [keras.ops.convert_to_numpy(v).copy() for v in variables]


def test_the_average_takes_the_weights_place_and_gives_it_back_exactly():
    model = compiled(use_ema=True)
    averages = model.optimizer._model_variables_moving_average
    for average in averages:
        average.assign(np.random.default_rng(0).normal(size=average.shape) * 1e-3)
    weights, means = numbers(model.trainable_variables), numbers(averages)
    with ema.averaged(model):
        for found, mean in zip(numbers(model.trainable_variables), means):
            np.testing.assert_array_equal(found, mean)
    for found, expected in zip(numbers(model.trainable_variables) + numbers(averages), weights + means):
        np.testing.assert_array_equal(found, expected)


def test_without_an_average_nothing_moves():
    model = compiled()
    weights = numbers(model.weights)
    with ema.averaged(model), ema.averaged(vit("mu/4", image_size=8)):
        for a, b in zip(numbers(model.weights), weights):
            np.testing.assert_array_equal(a, b)

"""What the tests of `training` do not see; a whole run is tested there."""

import csv

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.training import callbacks

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
    with callbacks.averaged(model):
        for found, mean in zip(numbers(model.trainable_variables), means):
            np.testing.assert_array_equal(found, mean)
    for found, expected in zip(numbers(model.trainable_variables) + numbers(averages), weights + means):
        np.testing.assert_array_equal(found, expected)


def test_without_an_average_nothing_moves():
    model = compiled()
    weights = numbers(model.weights)
    with callbacks.averaged(model), callbacks.averaged(vit("mu/4", image_size=8)):
        for a, b in zip(numbers(model.weights), weights):
            np.testing.assert_array_equal(a, b)


def test_the_learning_rate_is_found_under_a_scaled_loss():
    model = compiled()
    assert callbacks.learning_rate(model) == 0.25
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5)), "mse")
    assert callbacks.learning_rate(model) == 0.5


def test_history_is_written_anew_and_then_line_by_line(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("epoch,loss\n0,9\n1,8\n2,7\n")
    callbacks.write_history(tmp_path, [{"epoch": 0, "loss": 0.5}])
    callbacks.append_row(tmp_path, {"epoch": 1, "loss": 0.25})
    with open(path, newline="") as file:
        assert list(csv.DictReader(file)) == [{"epoch": "0", "loss": "0.5"}, {"epoch": "1", "loss": "0.25"}]


def test_the_pace_is_told(monkeypatch):
    clock = iter([100.0, 101.0, 102.0, 110.0])
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: next(clock))
    pace = callbacks.Pace(images=10, steps=4, epochs=4)
    pace.set_model(compiled())
    pace.on_epoch_begin(0)
    pace.on_train_batch_end(0)
    pace.on_train_batch_end(1)
    logs = {}
    pace.on_epoch_end(0, logs)
    # 20 images from 100 s to 102 s; two steps of four took 10 s with the evaluation, and three epochs are left
    assert logs == {"learning_rate": 0.25, "images_per_second": 10.0, "minutes_left": 1.0}

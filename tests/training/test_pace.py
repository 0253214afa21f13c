import types

import keras
import pytest

from keras_vit import config, vit
from keras_vit.training import pace

pytestmark = pytest.mark.backend
RECIPE = config.Recipe(name="x", model={}, data=config.Data(batch_size=10), optim=config.Optim(epochs=4))


def compiled(**settings):
    model = vit("mu/4", image_size=8, num_classes=3, depth=1)
    model.compile(keras.optimizers.SGD(0.25, **settings), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def test_the_learning_rate_is_found_under_a_scaled_loss():
    model = compiled()
    assert pace.learning_rate(model) == 0.25
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5)), "mse")
    assert pace.learning_rate(model) == 0.5


def test_the_pace_is_told(monkeypatch):
    clock = iter([100.0, 101.0, 102.0, 110.0])
    monkeypatch.setattr(pace.time, "monotonic", lambda: next(clock))
    timed = pace.Pace(types.SimpleNamespace(recipe=RECIPE, steps=4))
    timed.set_model(compiled())
    timed.on_epoch_begin(0)
    timed.on_train_batch_end(0)
    timed.on_train_batch_end(1)
    logs = {}
    timed.on_epoch_end(0, logs)
    # 20 images from 100 s to 102 s; two steps of four took 10 s with the evaluation, and three epochs are left
    assert logs == {"learning_rate": 0.25, "images_per_second": 10.0, "minutes_left": 1.0}

"""Configurations of losses and metrics, and those in files of earlier versions."""

import json
import pathlib

import keras
import numpy as np
import pytest

import keras_vit  # noqa: F401  # registers them
from keras_vit.utils.configured import ImageMean, Loss, arguments_of

pytestmark = pytest.mark.backend

OLD = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "losses.json").read_text())


@pytest.mark.parametrize("plain", OLD, ids=lambda plain: plain["class_name"])
def test_files_of_earlier_versions_are_read(plain):
    loss = keras.saving.deserialize_keras_object(plain)
    again = keras.saving.serialize_keras_object(loss)
    assert again["config"] == plain["config"] and again["registered_name"] == plain["registered_name"]


class Scaled(Loss):
    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, y_true, y_pred):
        return self.factor * keras.ops.mean(keras.ops.square(y_pred - y_true), axis=-1)


class Moved(Scaled):
    def __init__(self, *, shift=1.0, **kwargs):
        super().__init__(**kwargs)
        self.shift = shift


def test_a_loss_has_its_arguments_and_those_it_inherits():
    loss = Moved(shift=3.0, factor=0.5, dtype="float64", reduction="sum")
    config = loss.get_config()
    assert config == {"name": "loss", "reduction": "sum", "dtype": "float64", "shift": 3.0, "factor": 0.5}
    assert Moved.from_config(config).get_config() == config
    assert arguments_of(Moved, Loss) == ["shift", "factor"] and arguments_of(Loss, Loss) == []
    assert float(Scaled()(np.zeros((1, 2)), np.ones((1, 2)))) == 2.0


class Share(ImageMean):
    def __init__(self, above=0.5, name="share", dtype=None):
        super().__init__(name, dtype)
        self.above = above


def test_a_metric_has_its_arguments():
    config = Share(0.25).get_config()
    assert config["above"] == 0.25 and config["name"] == "share"
    assert Share.from_config(config).get_config() == config

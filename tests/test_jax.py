"""What needs TensorFlow says so, where it cannot be imported."""

import os

import keras
import numpy as np
import pytest

import keras_vit

pytestmark = [
    pytest.mark.backend,
    pytest.mark.skipif("KERAS_VIT_HIDE_TENSORFLOW" not in os.environ, reason="of a run on JAX without TensorFlow"),
]


def test_a_model_trains_on_arrays():
    model = keras_vit.from_recipe("digits")
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    history = model.fit(np.zeros((8, 8, 8, 1), "uint8"), np.zeros(8, "int32"), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_what_needs_tensorflow_says_so():
    model = keras_vit.from_recipe("digits")
    for call in (
        lambda: keras_vit.fit("digits"),
        lambda: keras_vit.datasets("digits"),
        lambda: keras_vit.evaluate("digits"),
        lambda: keras_vit.export_saved_model(model, "x"),
        lambda: keras_vit.export_tflite(model, "x.tflite"),
    ):
        with pytest.raises((ImportError, RuntimeError), match="TensorFlow"):
            call()

import warnings

import keras
import numpy as np
import pytest

from keras_vit import vit

MESSAGE = "The loss is not scaled.* 'outer' has the policy 'float32'"
IMAGES, LABELS = np.ones((2, 16, 16, 3), "float32"), np.array([0, 1])


def outer(dtype, settle=None, optimizer="sgd"):
    """Returns a compiled model of Keras's own around a ViT of this policy."""
    inner = vit("Ti/8", image_size=16, width=16, depth=1, num_heads=2, mlp_dim=32, num_classes=0, dtype=dtype)
    head = keras.layers.Dense(2, dtype="float32")
    model = keras.Model(inner.input, head(inner.output), name="outer")
    if settle is not None:
        model.dtype_policy = settle
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, jit_compile=False, run_eagerly=True)
    return model


def test_training_float16_without_a_scaled_loss_is_said():
    model = outer("mixed_float16")
    with pytest.warns(UserWarning, match=MESSAGE):
        model.train_on_batch(IMAGES, LABELS)


@pytest.mark.parametrize(
    "settings",
    [
        dict(dtype="mixed_float16", settle="mixed_float16"),
        dict(dtype="mixed_float16", optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())),
        dict(dtype="mixed_bfloat16"),
    ],
)
def test_nothing_is_said_of_a_scaled_loss_or_other_training(settings):
    with warnings.catch_warnings(action="error"):
        outer(**settings).train_on_batch(IMAGES, LABELS)


def test_nothing_is_said_of_inference():
    with warnings.catch_warnings(action="error"):
        outer("mixed_float16").predict_on_batch(IMAGES)

import contextlib

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.models.remat import rematerialized
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (6, 8, 8, 3)).astype("float32"), np.arange(6) % 3


def built(scope):
    keras.utils.set_random_seed(0)
    with scope:
        model = vit("mu/4", image_size=8, num_classes=3, depth=2, stochastic_depth=0.5, dropout=0.2,
                    block={"attention_dropout": 0.1})  # fmt: skip
    model.get_layer("head").kernel.assign(np.linspace(-1, 1, 96).reshape(32, 3))
    return model


@slow_on_jax
def test_training_is_the_same():
    """With every kind of random draw on: both passes must draw the same, once a step."""
    losses, ends, paths = [], [], []
    for scope in (contextlib.nullcontext(), rematerialized()):
        model = built(scope)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=True)
        losses.append([float(model.train_on_batch(IMAGES, LABELS)) for _ in range(3)])
        ends.append([keras.ops.convert_to_numpy(v) for v in model.variables])  # seeds included
        paths.append([v.path for v in model.weights])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6) and paths[0] == paths[1]
    for expected, found in zip(*ends, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)

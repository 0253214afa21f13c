import pickle

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.layers.functional import Model
from tests.marks import once

pytestmark = pytest.mark.backend

SMALL = dict(image_size=16, width=16, depth=1, num_heads=2, mlp_dim=32, num_classes=3, dtype="mixed_float16")


def scaled(model):
    model.compile("adam", "mse")
    return isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


@once
def test_every_copy_scales_its_loss(tmp_path):
    model = vit("Ti/8", **SMALL)
    model.save(tmp_path / "model.keras")
    copies = {
        "built": model,
        "loaded": keras.models.load_model(tmp_path / "model.keras"),
        "cloned": keras.models.clone_model(model),
        "configured": type(model).from_config(model.get_config()),
        "pickled": pickle.loads(pickle.dumps(model)),
    }
    assert {name: scaled(copy) for name, copy in copies.items()} == dict.fromkeys(copies, True)


@once
def test_a_compiled_file_keeps_its_optimizer(tmp_path):
    model = vit("Ti/8", **SMALL)
    assert scaled(model)
    model.train_on_batch(np.ones((2, 16, 16, 3), "float32"), np.ones((2, 3), "float32"))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for old, new in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_policy_is_that_of_the_blocks_or_keras_own():
    assert vit("Ti/8", **{**SMALL, "dtype": "mixed_bfloat16"}).dtype_policy.name == "mixed_bfloat16"
    pixels = keras.Input((4,))
    assert Model(pixels, keras.layers.Dense(2)(pixels)).dtype_policy.name == "float32"


def test_two_models_of_one_name_fit_into_one(tmp_path):
    first, second = (vit("Ti/8", **SMALL) for _ in range(2))
    images = keras.Input((16, 16, 3))
    both = keras.Model(images, first(images) + second(images))
    assert (first.name, second.name) == ("vit_Ti_8", "vit_Ti_8_1")
    first(images)
    second(keras.Input((16, 16, 3)))
    assert (first.name, second.name) == ("vit_Ti_8", "vit_Ti_8_1")
    both.save(tmp_path / "both.keras")
    copies = keras.models.load_model(tmp_path / "both.keras"), keras.models.clone_model(both)
    assert [[layer.name for layer in copy.layers[1:3]] for copy in copies] == [["vit_Ti_8", "vit_Ti_8_1"]] * 2


def test_two_copies_of_a_file_fit_into_one(tmp_path):
    vit("Ti/8", **SMALL).save(tmp_path / "model.keras")
    copies = [keras.models.load_model(tmp_path / "model.keras") for _ in range(3)]
    images = keras.Input((16, 16, 3))
    mean = keras.layers.Average()([copy(images) for copy in copies])
    assert keras.Model(images, mean)(np.zeros((1, 16, 16, 3), "float32")).shape == (1, 3)

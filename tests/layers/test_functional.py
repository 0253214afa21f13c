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


def test_two_models_in_one_have_names_of_their_own(tmp_path):
    images = keras.Input((16, 16, 3))
    first, second, third = vit("Ti/8", **SMALL), vit("Ti/8", **SMALL), vit("Ti/8", name="other", **SMALL)
    with pytest.raises(ValueError, match='The name "vit_Ti_8" is used 2 times'):
        keras.Model(images, first(images) + second(images))
    both = keras.Model(images, first(images) + third(images))
    both.save(tmp_path / "both.keras")
    copy = keras.models.load_model(tmp_path / "both.keras")
    assert [layer.name for layer in copy.layers[1:3]] == ["vit_Ti_8", "other"]

import keras
import numpy as np
import pytest

from keras_vit import attention_maps, features
from tests.explain.models import IMAGES, KINDS, PREFIX, shared, tiny
from tests.marks import few, slow_on_jax


@few(4)
@pytest.mark.parametrize("kind", KINDS)
def test_maps_are_the_blocks_own_patches(kind):
    model = shared(kind)
    found = features(model, [0, -1])(IMAGES)
    assert list(found) == ["block_0", "block_2"]
    tokens = keras.Model(model.input, model.get_layer("block_2").output)(IMAGES)
    assert found["block_2"].shape == (3, 3, 2, 32)
    patches = keras.ops.convert_to_numpy(tokens)[:, PREFIX[kind] :]
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(found["block_2"]).reshape(3, 6, 32), patches)


@pytest.mark.backend
def test_all_tokens_and_the_norm():
    model = tiny(tokens={"registers": 1})
    found = features(model, reshape=False, norm=True)(IMAGES)
    assert list(found) == ["block_0", "block_1", "block_2"] and found["block_0"].shape == (3, 8, 32)
    normed = keras.Model(model.input, model.get_layer("norm").output)(IMAGES)
    np.testing.assert_allclose(np.asarray(found["block_2"]), np.asarray(normed), atol=1e-5)


@slow_on_jax
@pytest.mark.backend
def test_it_is_saved_trained_and_shares_its_weights(tmp_path):
    model = tiny()
    taken = features(model, [1])
    assert model.get_layer("block_1").norm1.gamma is taken.get_layer("block_1").norm1.gamma
    taken.save(tmp_path / "features.keras")
    loaded = keras.models.load_model(tmp_path / "features.keras")
    np.testing.assert_allclose(np.asarray(loaded(IMAGES)["block_1"]), np.asarray(taken(IMAGES)["block_1"]), atol=1e-6)
    outputs = keras.layers.Conv2D(4, 1)(taken(model.input)["block_1"])
    dense = keras.Model(model.input, outputs)
    dense.compile("sgd", "mse", run_eagerly=True)
    before = np.asarray(model.get_layer("block_1").norm1.gamma)
    dense.train_on_batch(IMAGES, np.ones((3, 3, 2, 4)))
    assert (np.asarray(model.get_layer("block_1").norm1.gamma) != before).any()
    assert attention_maps(model, IMAGES).shape == (3, 3, 2, 7, 7)  # the model is as before


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"from 0 to 2 in .* Received: layers=\[3\]"):
        features(tiny(), [3])
    for layers in ([], 3, [1.0], "1"):
        with pytest.raises(ValueError, match="must be a list of block indices"):
            features(tiny(), layers)
    with pytest.raises(ValueError, match="must have a norm before the pooling"):
        features(tiny(pooling="gap", final_norm="after"), norm=True)

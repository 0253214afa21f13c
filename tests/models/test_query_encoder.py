import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.models.kinds import kind_of, name_of
from keras_vit.models.query_encoder import query_encoder
from tests import masks
from tests.marks import slow

pytestmark = pytest.mark.backend


def images(model, count=2):
    return np.random.default_rng(1).uniform(0, 255, (count, *model.input_shape[1:])).astype("float32")


def test_queries_come_before_the_last_blocks():
    model = masks.small()
    names = [layer.name for layer in model.layers]
    assert names == ["images", "rescale", "patches", "encoder", "block_0", "block_1", "queries", "block_2", "norm",
                     "pool", "head"]  # fmt: skip
    assert model.output_shape == (None, 4, 3 + 1 + 8 * 8) and name_of(model) == "segments"
    assert model.get_layer("block_2").output.shape[1] == 4 + 2 + 16 == 6 + model.get_layer("encoder").patches
    assert keras_vit.class_names(masks.build(), list("abc")) == ("a", "b", "c")
    assert kind_of(model).classes(model) == 3


def test_patches_see_queries_and_are_seen():
    """The first blocks are those of a `vit`, and a change of one query moves the mask of another."""
    model = masks.build()
    plain = keras_vit.vit(None, **masks.SIZES | {"depth": 2}, image_size=16, pooling="none", num_classes=0)
    plain.get_layer("encoder").set_weights(model.get_layer("encoder").get_weights())
    for i in (0, 1):
        plain.get_layer(f"block_{i}").set_weights(model.get_layer(f"block_{i}").get_weights())
    x = images(model)
    inner = keras.Model(model.input, model.get_layer("queries").input)
    outer = keras.Model(plain.input, plain.get_layer("block_1").output)
    np.testing.assert_allclose(np.asarray(inner(x)), np.asarray(outer(x)), atol=1e-5)
    before, tokens = np.asarray(model(x)), model.get_layer("queries").tokens
    tokens.assign(keras.ops.convert_to_numpy(tokens) * (np.arange(4) < 3)[:, None])
    assert np.abs(np.asarray(model(x))[:, 0] - before[:, 0]).max() > 1e-4


def test_stochastic_depth_rises_over_all_blocks():
    model = query_encoder(4, 1, image_size=8, stochastic_depth=0.4, **masks.SIZES)
    rates = [model.get_layer(f"block_{i}").stochastic_depth for i in range(3)]
    np.testing.assert_allclose(rates, [0, 0.2, 0.4])


def test_bfloat16_stays_finite_and_near():
    model, half = masks.small(), masks.build(dtype="mixed_bfloat16")
    x = images(model)
    wanted, found = (keras.ops.convert_to_numpy(each(x)) for each in (model, half))
    assert found.dtype == "float32" and np.isfinite(found).all()
    assert np.abs(found - wanted).max() < 0.1 * np.ptp(wanted)


@slow
def test_it_is_saved_and_adapted(tmp_path):
    model = masks.small()
    model.save(tmp_path / "model.keras")
    x, wanted = images(model), np.asarray(model(images(model)))
    np.testing.assert_array_equal(np.asarray(keras.models.load_model(tmp_path / "model.keras")(x)), wanted)
    same = keras_vit.from_checkpoint(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(same(x)), wanted)
    other = keras_vit.from_checkpoint(tmp_path / "model.keras", image_size=32)
    assert other.output_shape == (None, 4, 3 + 1 + 16 * 16)
    encoder = keras_vit.from_checkpoint(tmp_path / "model.keras", num_classes=0, pooling="token")
    assert encoder.output_shape == (None, 8)


@pytest.mark.parametrize(
    "look",
    [
        lambda model: keras_vit.attention_maps(model, images(model)),
        lambda model: keras_vit.attention_rollout(model, images(model)),
        lambda model: keras_vit.features(model, [0]),
        lambda model: keras_vit.merge_tokens(model, 1),
    ],
)
def test_blocks_see_other_tokens(look):
    with pytest.raises(ValueError, match="All blocks must see the same tokens.*with 'queries' before its last blocks"):
        look(masks.small())


@pytest.mark.parametrize("last", [0, 3])
def test_refused(last):
    with pytest.raises(ValueError, match=f"after the first, of 3. Received: last={last}"):
        query_encoder(4, last, image_size=8, **masks.SIZES)

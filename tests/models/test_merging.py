import functools

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import explain, merge_tokens
from keras_vit.models import counting
from tests.marks import few, first_everywhere, once, slow, slow_on_jax

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3)).astype("uint8")


def random_vit(**arguments):
    model = keras_vit.vit("mu/4", **{"image_size": 16, "num_classes": 5, "depth": 3, **arguments})
    rng = np.random.default_rng(1)
    for layer in model.layers:
        weights = layer.get_weights() if layer.name != "rescale" else []
        layer.set_weights([w + rng.normal(size=w.shape, scale=0.1) if w.dtype.kind == "f" else w for w in weights])
    return model


plain = functools.cache(random_vit)


def tokens_of(model):
    blocks = [layer for layer in model.layers if isinstance(layer, keras_vit.MergingBlock)]
    return [keras.tree.flatten(block.input)[0].shape[1] for block in blocks]


@few(4)
@slow_on_jax
@pytest.mark.parametrize(
    "arguments",
    first_everywhere(
        {"tokens": {"distilled": True}, "image_size": (16, 24)},
        {},
        {"pooling": "gap"},
        {"pooling": "token+gap"},
        {"pooling": "map"},
        {"pooling": "last"},
        {"pooling": "none", "num_classes": 0},
        {"tokens": {"registers": 4}},
        {"block": {"qk_norm": True, "layer_scale": 0.1, "swiglu": True}},
    ),
    ids=str,
)
def test_every_kind_of_model(arguments):
    model = random_vit(**arguments)
    before = [w.copy() for w in model.get_weights()]
    x = np.random.default_rng(0).uniform(0, 255, (3, *model.input_shape[1:])).astype("float32")
    expected, same, fast = (np.asarray(m(x)) for m in (model, merge_tokens(model, 0), merge_tokens(model, 3)))
    np.testing.assert_allclose(same, expected, atol=1e-5)
    assert fast.shape == expected.shape and np.isfinite(fast).all()
    assert 1e-4 < abs(fast - expected).max() < abs(expected).max()
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))


def test_the_schedule():
    model = random_vit()
    assert tokens_of(merge_tokens(model, 3)) == [17, 14, 11]
    assert tokens_of(merge_tokens(model, [0, 4])) == [17, 17, 13]
    assert tokens_of(merge_tokens(model, 100)) == [17, 9, 5]  # half of 16 patches, then of 8


def test_multiply_adds_are_of_the_tokens_that_are_left():
    model = random_vit(depth=2)
    by_name = lambda model: {row.name: row.macs for row in counting.by_layer(model)}  # noqa: E731
    plain, merged = by_name(model), by_name(merge_tokens(model, 4))
    qkv_and_proj, attention, mlp = 4 * 32**2, 2 * 32, 8 * 32**2  # a token; a pair of tokens; a token
    assert plain["block_0"] == 17 * (qkv_and_proj + mlp) + 17**2 * attention
    matching = lambda half: half**2 * 16 + half * (2 * half - 4) * 32  # noqa: E731
    assert merged["block_0"] == 17 * qkv_and_proj + 17**2 * attention + 13 * mlp + matching(8)
    assert merged["block_1"] == 13 * qkv_and_proj + 13**2 * attention + 9 * mlp + matching(6)


@slow_on_jax
def test_it_is_saved_and_loaded(tmp_path):
    merged = merge_tokens(random_vit(pooling="gap"), 3)
    merged.save(tmp_path / "merged.keras")
    loaded = keras.models.load_model(tmp_path / "merged.keras")
    np.testing.assert_array_equal(loaded.predict(IMAGES, verbose=0), merged.predict(IMAGES, verbose=0))
    assert tokens_of(loaded) == [16, 13, 10]


@slow
@once
def test_nested_models_and_heads_on_several_blocks():
    inner = random_vit(num_classes=0)
    outer = keras.Sequential([keras.Sequential([keras.layers.Resizing(16, 16), inner]), keras.layers.Dense(2)])
    outer.build((None, 20, 20, 3))
    merged = merge_tokens(outer, 3)
    x = np.random.default_rng(0).uniform(0, 255, (2, 20, 20, 3)).astype("float32")
    expected = np.asarray(outer(x))
    assert abs(np.asarray(merged(x)) - expected).max() > 1e-5
    np.testing.assert_allclose(merge_tokens(outer, 0)(x), expected, atol=1e-5)

    task = keras_vit.Segment(classes=("a", "b"), head={"kind": "dpt", "width": 8})
    model = task.model(variant="mu/4", image_size=16, depth=4)
    merged = merge_tokens(model, 3)
    assert merged(IMAGES).shape == (3, 16, 16, 2)
    np.testing.assert_allclose(merge_tokens(model, 0)(IMAGES), model(IMAGES), atol=1e-5)


@once
def test_attention_is_that_of_the_patches():
    model = random_vit()
    merged = merge_tokens(model, 3)
    maps = keras_vit.attention_maps(merged, IMAGES)
    assert maps.shape == (3, 3, model.get_layer("block_0").num_heads, 17, 17)
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(maps[0], keras_vit.attention_maps(model, IMAGES)[0], atol=1e-5)  # before any merging
    assert (np.unique(maps[2, 0, 0].round(6), axis=0).shape[0]) == 11  # patches of a token attend alike
    assert keras_vit.attention_rollout(merged, IMAGES).shape == (3, 4, 4)
    assert keras_vit.features(merged, [-1])(IMAGES)["block_2"].shape == (3, 4, 4, model.get_layer("encoder").width)
    assert explain.token_norms(merged, IMAGES).shape == (4, 3, 17)


@few(1)
@once
@pytest.mark.parametrize("pooling", ["token", "gap", "map"])
def test_everything_explained_is_equal_without_merging(pooling):
    model = random_vit(pooling=pooling)
    same = merge_tokens(model, 0)
    for function in (
        keras_vit.attention_maps,
        keras_vit.attention_rollout,
        keras_vit.attention_relevance,
        explain.token_similarity,
    ):
        np.testing.assert_allclose(function(same, IMAGES), function(model, IMAGES), atol=1e-4, err_msg=str(function))
    for r in (3, 100):
        relevance = keras_vit.attention_relevance(merge_tokens(model, r), IMAGES)
        assert relevance.shape == (3, 4, 4) and relevance.max() > 0 and np.isfinite(relevance).all()


def test_bfloat16():
    model = random_vit(dtype="mixed_bfloat16")
    merged = merge_tokens(model, 3)
    assert (
        merged.dtype_policy.name == "mixed_bfloat16" and merged.get_layer("block_1").dtype_policy == model.dtype_policy
    )
    assert np.isfinite(merged.predict(IMAGES, verbose=0)).all()


@once
@pytest.mark.parametrize("r", [-1, 1.5, True, "3", None, [1, 2, 3, 4], [1, -1], [[1]]], ids=str)
def test_a_wrong_number_is_named(r):
    with pytest.raises(ValueError, match="`r` must be a number of tokens"):
        merge_tokens(plain(), r)


@once
def test_models_that_cannot_merge_are_refused():
    with pytest.raises(ValueError, match="which merges tokens"):
        merge_tokens(merge_tokens(random_vit(), 1), 1)
    with pytest.raises(ValueError, match="Merged tokens have no position"):
        merge_tokens(random_vit(rotary="dinov3", position=None), 1)
    with pytest.raises(ValueError, match="Merged tokens have no position"):
        merge_tokens(random_vit(position="relative"), 1)
    with pytest.raises(ValueError, match="Merged tokens have no position.*block_positions"):
        merge_tokens(random_vit(tokens={"block_positions": True}), 1)
    inputs = keras.Input((17, 32))
    block = keras_vit.TransformerBlock(2, 64)
    with pytest.raises(ValueError, match="exactly one PatchEncoder layer"):
        merge_tokens(keras.Model(inputs, block(inputs)), 1)
    causal = keras.Model(inputs, keras_vit.TransformerBlock(2, 64)(inputs, use_causal_mask=True))
    with pytest.raises(ValueError, match="with tokens alone"):
        merge_tokens(causal, 1)
    with pytest.raises(ValueError, match="has LoRA"):
        merge_tokens(keras_vit.add_lora(random_vit(), 2), 1)


def test_a_sequence_of_layers_merges_too():
    layers = [keras_vit.Rescale(), keras_vit.Patches(4), keras_vit.PatchEncoder(16)]
    layers += [keras_vit.TransformerBlock(2, 32), keras_vit.TransformerBlock(2, 32), keras_vit.TokenPool("gap")]
    model = keras.Sequential([keras.Input((16, 16, 3)), *layers, keras.layers.Dense(2)])
    np.testing.assert_allclose(
        merge_tokens(model, 0).predict(IMAGES, verbose=0), model.predict(IMAGES, verbose=0), atol=1e-5
    )
    assert merge_tokens(model, 4).predict(IMAGES, verbose=0).shape == (3, 2)

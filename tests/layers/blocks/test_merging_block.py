import contextlib

import keras
import numpy as np
import pytest

from keras_vit import MergingBlock, TransformerBlock, Unmerge
from tests.layers.blocks.test_token_matching import groups_of
from tests.marks import slow, slow_on_jax

pytestmark = pytest.mark.backend
X = np.random.default_rng(0).normal(size=(3, 11, 16)).astype("float32")


def random_weights(layer):
    rng = np.random.default_rng(1)
    layer.set_weights([rng.normal(size=w.shape, scale=0.3) for w in layer.get_weights()])


@slow_on_jax
def test_it_is_the_published_block_step_by_step():
    plain, first, second = (
        TransformerBlock(2, 32),
        MergingBlock(2, 32, merged=3, num_prefix=1),
        MergingBlock(2, 32, merged=2, num_prefix=1),
    )
    plain(X)
    random_weights(plain)
    for block in (first, second):
        block.build(X.shape)
        block.set_weights(plain.get_weights())
    x, sources = first(X)
    y, after, scores = second(x, sources, return_attention_scores=True)
    for image in range(3):
        tokens, members = X[image], [[i] for i in range(11)]
        for r in (3, 2):
            attended, keys, shares = _attention(plain, tokens, np.array([len(m) for m in members]))
            tokens = tokens + attended
            groups = groups_of(keys, r, 1)
            weights = [[len(members[i]) for i in group] for group in groups]
            tokens = np.stack([np.average(tokens[g], axis=0, weights=w) for g, w in zip(groups, weights)])
            members = [[one for i in group for one in members[i]] for group in groups]
            tokens = tokens + np.asarray(plain.mlp(plain.norm2(tokens[None])))[0]
        np.testing.assert_allclose(np.asarray(y)[image], tokens, atol=1e-5)
        np.testing.assert_allclose(np.asarray(scores)[image], shares, atol=1e-5)
        for place, group in enumerate(members):
            assert (np.asarray(after)[image][group] == place).all()


def _attention(block, tokens, sizes):
    """Proportional attention in NumPy: returns its output, the mean keys over heads, and the scores."""
    weights = [np.asarray(w) for w in (block.attention.qkv.kernel, block.attention.qkv.bias)]
    normed = np.asarray(block.norm1(tokens[None]))[0]
    query, key, value = (p.reshape(-1, 2, 8).swapaxes(0, 1) for p in np.split(normed @ weights[0] + weights[1], 3, -1))
    scores = np.exp(query @ key.swapaxes(1, 2) / 8**0.5) * sizes
    scores = scores / scores.sum(-1, keepdims=True)
    heads = (scores @ value).swapaxes(0, 1).reshape(len(tokens), -1)
    return np.asarray(block.attention.proj(heads)), key.mean(0), scores


def test_without_merging_it_is_the_plain_block():
    block, plain = MergingBlock(2, 32, merged=0), TransformerBlock(2, 32)
    plain(X), block.build(X.shape)
    block.set_weights(plain.get_weights())
    np.testing.assert_allclose(np.asarray(block(X)[0]), np.asarray(plain(X)), atol=1e-6)
    assert block.compute_output_shape(X.shape) == ((3, 11, 16), (3, 11, 1))


@slow
def test_shapes_saving_and_training(tmp_path):
    inputs = keras.Input((11, 16))
    x, sources = MergingBlock(2, 32, merged=4, num_prefix=2)(inputs)
    x, sources = MergingBlock(2, 32, merged=9, num_prefix=2)(x, sources)  # 2 of the 5 patches' tokens
    assert x.shape == (None, 5, 16) and sources.shape == (None, 11, 1)
    model = keras.Model(inputs, Unmerge()(x, sources))
    assert model.output_shape == (None, 11, 16)
    model.save(tmp_path / "model.keras")
    before = model.predict(X, verbose=0)
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras").predict(X, verbose=0), before)
    model.compile("adam", "mse")
    model.fit(X, X, verbose=0)
    after = model.predict(X, verbose=0)
    assert np.isfinite(after).all() and not np.array_equal(after, before)


@slow
def test_rematerialization_changes_nothing():
    def gradient(scope):
        keras.utils.set_random_seed(0)
        with scope:
            inputs = keras.Input((11, 16))
            x, sources = MergingBlock(2, 32, merged=3, num_prefix=1, stochastic_depth=0.3, name="block")(inputs)
            model = keras.Model(inputs, MergingBlock(2, 32, merged=3, num_prefix=1, name="block_2")(x, sources)[0])
            model.compile(keras.optimizers.SGD(0.1), "mse")
            model.fit(X, X[:, :5], verbose=0)
        return model.get_weights()

    scope = keras.RematScope("list_of_layers", layer_names=["block", "block_2"])
    for a, b in zip(gradient(contextlib.nullcontext()), gradient(scope), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@slow_on_jax
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(dtype):
    block = MergingBlock(2, 32, merged=4, num_prefix=1, dtype=dtype)
    x, sources = block(X * 1000)
    x, _ = block(x, sources)
    assert keras.backend.standardize_dtype(x.dtype) == dtype.removeprefix("mixed_")
    assert np.isfinite(np.asarray(keras.ops.cast(x, "float32"))).all() and x.shape == (3, 4, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"merged": -1}, "Received: merged=-1"),
        ({"merged": 1.5}, "Received: merged=1.5"),
        ({"merged": 1, "num_prefix": -2}, "Received: num_prefix=-2"),
        ({"merged": 1, "relative": {"grid": (3, 3)}}, "Merged tokens have no position.*'grid'"),
        ({"merged": 1, "parallel": True}, "Tokens cannot be merged in a parallel block. Received: parallel=True"),
        ({"merged": 1, "rotary": {"grid": (3, 3)}}, "Merged tokens have no position.*'grid'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        MergingBlock(2, 32, **arguments)

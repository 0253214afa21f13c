import keras
import numpy as np
import pytest

from keras_vit import PatchEncoder, TokenPool, vit
from tests.harness import run_layer_test
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

TOKENS = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")


@pytest.mark.parametrize("pooling", ["token", "gap", "token+gap", "first", "last", "none"])
def test_layer(pooling, tmp_path):
    shape = {"none": TOKENS.shape, "token+gap": (2, 16)}.get(pooling, (2, 8))
    run_layer_test(lambda dtype: TokenPool(pooling, num_prefix=2, dtype=dtype), TOKENS.shape, shape, tmp_path=tmp_path)


@slow_on_jax
def test_attention_pool_layer(tmp_path):
    run_layer_test(
        lambda dtype: TokenPool("map", num_prefix=1, num_heads=2, mlp_dim=16, dtype=dtype),
        TOKENS.shape,
        (2, 8),
        ["attention", "norm", "mlp"],
        tmp_path,
    )


@pytest.mark.parametrize(
    "pooling, expected",
    [
        ("token", TOKENS[:, 0]),
        ("gap", TOKENS[:, 2:].mean(axis=1)),
        ("token+gap", np.concatenate([TOKENS[:, 0], TOKENS[:, 2:].mean(axis=1)], axis=-1)),
        ("first", TOKENS[:, 2]),
        ("last", TOKENS[:, -1]),
        ("none", TOKENS),
    ],
)
def test_takes_the_right_tokens(pooling, expected):
    np.testing.assert_allclose(np.asarray(TokenPool(pooling, num_prefix=2)(TOKENS)), expected, atol=1e-6)


@pytest.mark.parametrize("over_prefix", [False, True])
def test_attention_pool_is_probe_attention_and_an_mlp(over_prefix):
    pool = TokenPool("map", num_prefix=2, num_heads=2, over_prefix=over_prefix)
    found = pool(TOKENS)
    probe = keras.ops.repeat(keras.ops.convert_to_tensor(pool.probe), 2, axis=0)
    x = pool.attention(probe, TOKENS if over_prefix else TOKENS[:, 2:])
    x = x + pool.mlp(pool.norm(x))
    np.testing.assert_allclose(np.asarray(found), np.asarray(x)[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(pooling="mean"), "'mean'"),
        (dict(pooling="token", num_prefix=0), "num_prefix=0"),
        (dict(pooling="token+gap", num_prefix=0), r"pooling='token\+gap' needs a class token"),
        (dict(pooling="gap", num_prefix=-1), "num_prefix=-1"),
        (dict(pooling="gap", num_prefix=6), "patch tokens.* Received: 6 tokens, num_prefix=6"),
        (dict(pooling="map"), "Pooling .map. has heads: state `num_heads`"),
        (dict(over_prefix=1), "over_prefix=1"),
        (dict(pooling="map", num_prefix=1, num_heads=3), "width of 8 cannot be split into 3 heads"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TokenPool(**options)(TOKENS)


@pytest.mark.parametrize(
    "theirs, ours", [("avg", "gap"), ("mean", "gap"), ("GAP", "gap"), ("cls", "token"), ("attention", "map")]
)
def test_words_of_others_are_answered_with_ours(theirs, ours):
    for make in (lambda: TokenPool(theirs), lambda: vit("mu/4", image_size=8, pooling=theirs)):
        with pytest.raises(ValueError, match=f"Received: pooling='{theirs}', which is '{ours}' here"):
            make()


def test_one_layer_pools_tokens_with_one_prefix():
    tokens = [PatchEncoder(8, class_token=token)(keras.Input((4, 3))) for token in (True, True, False)]
    pool = TokenPool("gap", name="mine")
    assert [pool(each).shape for each in tokens[:2]] == [(None, 8)] * 2
    with pytest.raises(ValueError, match="`mine` was called with 1 prefix tokens before: .* Received: 0"):
        pool(tokens[2])
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
        TokenPool("gap", num_prefix=0)(keras.Input((8,)))

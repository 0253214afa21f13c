import keras
import numpy as np
import pytest

from keras_vit import TransformerBlock
from tests.harness import run_layer_test
from tests.marks import few

pytestmark = pytest.mark.backend

TOKENS = np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")
PARTS = ["norm1", "attention", "qkv", "proj", "norm2", "mlp", "fc1", "fc2"]


@few(1)
@few(2)
@pytest.mark.parametrize(
    "options, parts",
    [
        (dict(norm_order="post", gelu="exact"), PARTS),
        (dict(norm_order="res-post", sub_norm="mlp"), PARTS),
        (dict(rms_norm=True, sub_norm="both", qk_norm=True, qkv_bias=False, proj_bias=False, swiglu=True), PARTS),
        (dict(sub_norm="both", relative={"grid": [1, 5]}), [*PARTS, "norm", "distances"]),
        (
            dict(layer_scale=0.1, stochastic_depth=0.1, dropout=0.1, qk_norm=True, swiglu=True),
            [*PARTS, "scale1", "scale2", "path1"],
        ),
        (
            dict(parallel=True, layer_scale=0.1, stochastic_depth=0.1, qk_norm=True, qkv_bias=False, rms_norm=True),
            [*(part for part in PARTS if part != "norm2"), "scale1", "path1"],
        ),
    ],
)
def test_layer(options, parts, tmp_path):
    run_layer_test(
        lambda dtype: TransformerBlock(3, 24, **options, dtype=dtype), TOKENS.shape, TOKENS.shape, parts, tmp_path
    )


@pytest.mark.parametrize("order", ["pre", "post", "res-post"])
def test_is_two_residual_branches(order):
    block = TransformerBlock(3, 24, norm_order=order, layer_scale=0.5)
    found = block(TOKENS)
    x, norm1, norm2 = keras.ops.convert_to_tensor(TOKENS), block.norm1, block.norm2
    if order == "res-post":
        x = x + 0.5 * norm1(block.attention(x))
        x = x + 0.5 * norm2(block.mlp(x))
    elif order == "pre":
        x = x + 0.5 * block.attention(norm1(x))
        x = x + 0.5 * block.mlp(norm2(x))
    else:
        x = norm1(x + 0.5 * block.attention(x))
        x = norm2(x + 0.5 * block.mlp(x))
    np.testing.assert_allclose(np.asarray(found), np.asarray(x), atol=1e-5)


@pytest.mark.parametrize("order", ["pre", "post", "res-post"])
def test_parallel_is_one_residual_branch(order):
    block = TransformerBlock(3, 24, norm_order=order, parallel=True, layer_scale=0.5)
    found, scores = block(TOKENS, return_attention_scores=True)
    x, norm = keras.ops.convert_to_tensor(TOKENS), block.norm1
    if order == "pre":
        x = x + 0.5 * (block.attention(norm(x)) + block.mlp(norm(x)))
    elif order == "res-post":
        x = x + 0.5 * norm(block.attention(x) + block.mlp(x))
    else:
        x = norm(x + 0.5 * (block.attention(x) + block.mlp(x)))
    np.testing.assert_allclose(np.asarray(found), np.asarray(x), atol=1e-5)
    assert scores.shape == (2, 3, 5, 5)
    assert not [v.path for v in block.weights if "norm2" in v.path or "scale2" in v.path]


def test_masks_scores_and_their_bias_reach_the_attention():
    block = TransformerBlock(3, 24)
    bias = np.random.default_rng(1).normal(size=(2, 3, 5, 5)).astype("float32")
    block.build(TOKENS.shape)
    x = TOKENS + block.attention(block.norm1(TOKENS), scores_offset=bias)
    np.testing.assert_allclose(block(TOKENS, scores_offset=bias), x + block.mlp(block.norm2(x)), atol=1e-5)
    tokens, scores = block(TOKENS, use_causal_mask=True, return_attention_scores=True)
    np.testing.assert_array_equal(np.triu(np.asarray(scores)[0, 0], 1), np.zeros((5, 5)))
    changed = TOKENS.copy()
    changed[:, -1] += 1
    np.testing.assert_allclose(
        np.asarray(block(changed, use_causal_mask=True))[:, :-1], np.asarray(tokens)[:, :-1], atol=1e-6
    )
    symbolic = block(keras.KerasTensor((None, 5, 12)), return_attention_scores=True)
    assert symbolic[1].shape == (None, 3, 5, 5)


def test_nothing_is_shifted_without_biases():
    block = TransformerBlock(3, 24, rms_norm=True, qkv_bias=False, proj_bias=False, qk_norm=True, sub_norm="both")
    block(TOKENS)
    assert {v.path.rsplit("/")[-1] for v in block.weights} == {"kernel", "scale"}
    np.testing.assert_array_equal(np.asarray(block(0 * TOKENS)), 0)


@pytest.mark.parametrize("parallel", [False, True])
def test_stochastic_depth_drops_both_branches(parallel):
    block = TransformerBlock(3, 24, stochastic_depth=0.999, parallel=parallel)
    np.testing.assert_array_equal(np.asarray(block(TOKENS, training=True)), TOKENS)

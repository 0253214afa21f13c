import numpy as np
import pytest

from keras_vit.layers import AdaptiveBlock
from tests.harness import Apart, run_layer_test
from tests.marks import first_everywhere

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
X, CONDITION = RNG.normal(size=(2, 5, 8)).astype("float32"), RNG.normal(size=(2, 6)).astype("float32")


def shaken(block):
    block(X, CONDITION)
    for weight in block.weights:
        weight.assign(RNG.normal(size=weight.shape))
    return block


@pytest.mark.parametrize("options", first_everywhere({}, {"qk_norm": True, "swiglu": True, "mlp_epsilon": 1e-5}))
def test_layer(options, tmp_path):
    make = lambda dtype: AdaptiveBlock(2, 12, dtype=dtype, **options)  # noqa: E731
    inside = ("norm1", "attention", "norm2", "mlp", "modulation")
    run_layer_test(make, Apart([(2, 5, 8), (2, 6)]), (2, 5, 8), inside, tmp_path)


def test_is_the_formula_of_adaln_zero():
    block = shaken(AdaptiveBlock(2, 12, epsilon=1e-3, mlp_epsilon=1e-2))
    kernel, bias = (np.asarray(weight) for weight in block.modulation.weights)
    shift1, scale1, gate1, shift2, scale2, gate2 = np.split((CONDITION @ kernel + bias)[:, None], 6, axis=-1)

    def normed(x, epsilon):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)

    x = X + gate1 * np.asarray(block.attention(normed(X, 1e-3) * (1 + scale1) + shift1))
    x = x + gate2 * np.asarray(block.mlp(np.float32(normed(x, 1e-2) * (1 + scale2) + shift2)))
    np.testing.assert_allclose(np.asarray(block(X, CONDITION)), x, rtol=2e-4, atol=2e-4)
    assert {weight.path.split("/")[-2] for weight in block.weights} == {"qkv", "proj", "fc1", "fc2", "modulation"}


def test_begins_as_the_identity_and_returns_scores():
    block = AdaptiveBlock(2, 12)
    np.testing.assert_array_equal(np.asarray(block(X, CONDITION)), X)
    x, scores = block(X, CONDITION, return_attention_scores=True)
    assert tuple(scores.shape) == (2, 2, 5, 5) and tuple(x.shape) == X.shape
    assert not block.norm1.weights
    of_rms = AdaptiveBlock(2, 12, rms_norm=True)
    of_rms(X, CONDITION)
    assert [weight.name for weight in of_rms.norm1.weights] == ["scale"]


def test_bad_arguments():
    with pytest.raises(ValueError, match="norm_order must be 'pre', layer_scale None, .* Received: norm_order='post'"):
        AdaptiveBlock(2, 12, norm_order="post")
    with pytest.raises(ValueError, match="parallel False. Received: .* parallel=True"):
        AdaptiveBlock(2, 12, parallel=True)
    with pytest.raises(ValueError, match="Received: norm_order='pre', layer_scale=0.1"):
        AdaptiveBlock(2, 12, layer_scale=0.1)
    with pytest.raises(ValueError, match="`mlp_epsilon` must be a finite number above 0. Received: mlp_epsilon=0"):
        AdaptiveBlock(2, 12, mlp_epsilon=0)


CONTEXT = RNG.normal(size=(2, 3, 4)).astype("float32")
MASK = np.array([[True, True, False], [True, False, False]])[:, None, None]


def test_with_a_context(tmp_path):
    make = lambda dtype: AdaptiveBlock(2, 12, dtype=dtype)  # noqa: E731
    inside = ("norm1", "attention", "norm3", "cross", "norm2", "mlp", "modulation")
    run_layer_test(make, Apart([(2, 5, 8), (2, 6), (2, 3, 4)]), (2, 5, 8), inside, tmp_path)


def test_a_context_is_a_third_branch_between_the_two():
    block = AdaptiveBlock(2, 12, epsilon=1e-3)
    block(X, CONDITION, CONTEXT, MASK)
    for weight in block.weights:
        weight.assign(RNG.normal(size=weight.shape))
    kernel, bias = (np.asarray(weight) for weight in block.modulation.weights)
    numbers = np.split((CONDITION @ kernel + bias)[:, None], 9, axis=-1)
    branches = (block.attention, lambda y: block.cross(y, CONTEXT, MASK), block.mlp)
    x = X
    for branch, first in zip(branches, (0, 6, 3)):
        shift, scale, gate = numbers[first : first + 3]
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
        x = x + gate * np.asarray(branch(np.float32(y * (1 + scale) + shift)))
    np.testing.assert_allclose(
        np.asarray(block(X, CONDITION, CONTEXT, MASK)), x, rtol=5e-4, atol=5e-4 * np.abs(x).max()
    )
    other = np.where(MASK[:, 0, 0, :, None], CONTEXT, 7.0).astype("float32")
    np.testing.assert_array_equal(block(X, CONDITION, other, MASK), block(X, CONDITION, CONTEXT, MASK))
    assert np.abs(np.asarray(block(X, CONDITION, other)) - np.asarray(block(X, CONDITION, CONTEXT))).max() > 1e-2


def test_a_context_must_be_that_of_the_built_layer():
    import keras

    block = AdaptiveBlock(2, 12)
    symbolic = [keras.Input(shape[1:]) for shape in ((2, 5, 8), (2, 6), (2, 3, 4), (2, 3, 5))]
    block(*symbolic[:3])
    with pytest.raises(ValueError, match="width that the layer was built with, 4. Received: 5"):
        block(*symbolic[:2], symbolic[3])
    with pytest.raises(ValueError, match="width that the layer was built with, 4. Received: None"):
        block(*symbolic[:2])
    np.testing.assert_array_equal(np.asarray(AdaptiveBlock(2, 12)(X, CONDITION, CONTEXT)), X)  # begins as the identity

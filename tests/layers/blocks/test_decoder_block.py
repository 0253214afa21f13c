import keras
import numpy as np
import pytest

from keras_vit import DecoderBlock
from tests.harness import POLICIES

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
TOKENS, CONTEXT = RNG.normal(size=(2, 5, 12)).astype("float32"), RNG.normal(size=(2, 7, 12)).astype("float32")


def shaken(**options):
    block = DecoderBlock(3, 24, **options)
    block.build(TOKENS.shape, CONTEXT.shape)
    for weight in block.weights:
        weight.assign(0.5 * RNG.normal(size=weight.shape))
    return block


@pytest.mark.parametrize("order", ["post", "pre"])
def test_three_branches_with_their_norms(order):
    block = shaken(norm_order=order)
    x = TOKENS
    branches = (lambda y: block.attention(y, y), lambda y: block.cross(y, CONTEXT), block.mlp)
    for branch, norm in zip(branches, (block.norm1, block.norm2, block.norm3)):
        x = x + branch(norm(x)) if order == "pre" else norm(x + branch(x))
    np.testing.assert_allclose(np.asarray(block(TOKENS, CONTEXT)), np.asarray(x), atol=2e-5)


@pytest.mark.parametrize("order", ["post", "pre"])
@pytest.mark.parametrize("gelu", ["relu", "exact"])
def test_equals_torch(order, gelu):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.TransformerDecoderLayer(
        12, 3, 24, 0.0, {"relu": "relu", "exact": "gelu"}[gelu], 1e-6, batch_first=True, norm_first=order == "pre"
    ).eval()
    block = shaken(norm_order=order, gelu=gelu)
    turned = lambda layer: [torch.tensor(array.T) for array in layer.get_weights()]  # noqa: E731
    state = {}
    for name, layer in {"self_attn": block.attention, "multihead_attn": block.cross}.items():
        kernels, biases = zip(*(turned(part) for part in (layer.query, layer.key, layer.value)))
        state |= {f"{name}.in_proj_weight": torch.cat(kernels), f"{name}.in_proj_bias": torch.cat(biases)}
        state |= dict(zip((f"{name}.out_proj.weight", f"{name}.out_proj.bias"), turned(layer.proj)))
    rest = {"linear1": block.mlp.fc1, "linear2": block.mlp.fc2}
    rest |= {f"norm{i}": getattr(block, f"norm{i}") for i in (1, 2, 3)}
    for name, layer in rest.items():
        state |= dict(zip((f"{name}.weight", f"{name}.bias"), turned(layer)))
    theirs.load_state_dict(state)
    with torch.no_grad():
        causal = torch.nn.Transformer.generate_square_subsequent_mask(5)
        expected = theirs(torch.tensor(TOKENS), torch.tensor(CONTEXT), tgt_mask=causal).numpy()
    found = block(TOKENS, CONTEXT, use_causal_mask=True)
    np.testing.assert_allclose(np.asarray(found), expected, atol=2e-5)


def test_a_causal_block_does_not_see_later_tokens():
    block, later = shaken(), TOKENS.copy()
    later[:, 3:] += 1
    before, after = (np.asarray(block(x, CONTEXT, use_causal_mask=True)) for x in (TOKENS, later))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert np.abs(before[:, 3:] - after[:, 3:]).max() > 1e-2


def test_what_the_masks_hide_changes_nothing():
    block = shaken()
    seen, own = np.ones((2, 5, 7), bool), np.ones((2, 5, 5), bool)
    seen[..., 4:] = own[:, :4, 4] = False
    hidden, moved = CONTEXT.copy(), TOKENS.copy()
    hidden[:, 4:], moved[:, 4] = 9.0, 9.0
    masks = {"attention_mask": own, "context_mask": seen}
    before, after = np.asarray(block(TOKENS, CONTEXT, **masks)), np.asarray(block(moved, hidden, **masks))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])


def test_positions_are_added_to_queries_and_keys_of_both_attentions():
    block = shaken()
    positions, places = (RNG.normal(size=(1, n, 12)).astype("float32") for n in (5, 7))
    x = block.norm1(TOKENS + block.attention(TOKENS, TOKENS, positions=positions, context_positions=positions))
    y, expected = block.cross(x, CONTEXT, positions=positions, context_positions=places, return_attention_scores=True)
    x = block.norm2(x + y)
    found, scores = block(TOKENS, CONTEXT, positions=positions, context_positions=places, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(found), np.asarray(block.norm3(x + block.mlp(x))), atol=2e-5)
    np.testing.assert_allclose(np.asarray(scores), np.asarray(expected), atol=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_model_with_it_follows_the_policy_and_is_saved(policy, tmp_path):
    x, context = keras.Input(TOKENS.shape[1:]), keras.Input((None, 8))
    block = DecoderBlock(3, 24, dropout=0.1, attention_dropout=0.1, dtype=policy, name="block")
    model = keras.Model([x, context], block(x, context))
    assert model.output_shape == (None, 5, 12)
    assert all(getattr(block, name).compute_dtype == block.compute_dtype for name in ("attention", "cross", "mlp"))
    model.save(tmp_path / "block.keras")
    loaded = keras.models.load_model(tmp_path / "block.keras")
    assert loaded.get_layer("block").get_config() == block.get_config()
    inputs = [TOKENS, CONTEXT[..., :8]]
    found, expected = (np.asarray(keras.ops.cast(each(inputs), "float32")) for each in (loaded, model))
    np.testing.assert_array_equal(found, expected)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="gelu='swish'"):
        DecoderBlock(3, 24, gelu="swish")
    with pytest.raises(ValueError, match="width of 12 cannot be split into 5 heads"):
        DecoderBlock(5, 24)(TOKENS, CONTEXT)


def test_without_a_context_there_are_two_branches():
    block = DecoderBlock(3, 24, norm_order="pre")
    x = block(TOKENS, use_causal_mask=True)
    assert not any("cross" in weight.path or "norm2" in weight.path for weight in block.weights)
    y = TOKENS + block.attention(block.norm1(TOKENS), block.norm1(TOKENS), use_causal_mask=True)
    np.testing.assert_allclose(np.asarray(x), np.asarray(y + block.mlp(block.norm3(y))), atol=2e-5)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_steps_equal_a_causal_call(order):
    block = shaken(norm_order=order)
    context, cache, found = block.cross.keys_and_values(CONTEXT), (np.zeros((2, 8, 3, 4), "float32"),) * 2, []
    for place, count in ((0, 3), (3, 1), (4, 1)):
        y, cache = block.step(TOKENS[:, place : place + count], place, cache, context)
        found.append(np.asarray(y))
    expected = np.asarray(block(TOKENS, CONTEXT, use_causal_mask=True))
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, atol=2e-5)

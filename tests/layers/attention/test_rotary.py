import re

import keras
import numpy as np
import pytest

from keras_vit import MultiHeadSelfAttention, RotaryPositions
from keras_vit.layers.attention.rotary import ROTARY, rotary_argument, rotary_options
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

GRID, HEADS, WIDTH = (2, 3), 2, 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 1 + 6, HEADS, WIDTH)).astype("float32")

KINDS = [
    dict(),
    dict(base=50.0, columns_first=True),
    dict(centered=False, base=10000.0, interleaved=True),
    dict(centered=False, offset=1.0, reference=16, columns_first=True, interleaved=True),
]


@pytest.mark.parametrize("options", [*KINDS, dict(learned=True, base=10.0)])
def test_layer(options, tmp_path):
    run_layer_test(
        lambda dtype: RotaryPositions(GRID, num_prefix=1, **options, dtype=dtype), X.shape, X.shape, tmp_path=tmp_path
    )


@pytest.mark.parametrize("options", KINDS)
def test_pairs_are_complex_numbers_that_turn(options):
    """Token by token and pair by pair, as the papers write it."""
    layer = RotaryPositions(GRID, num_prefix=1, **options)
    found = keras.ops.convert_to_numpy(layer(X))
    np.testing.assert_array_equal(found[:, 0], X[:, 0])  # the class token
    for token in range(6):
        place = dict(zip("yx", divmod(token, 3)))
        for axis, count in zip("yx", GRID):
            if layer.centered:
                place[axis] = 2 * np.pi * ((2 * place[axis] + 1) / count - 1)
            elif layer.reference:
                place[axis] = (place[axis] + layer.offset) / count * layer.reference
        order = "xy" if layer.columns_first else "yx"
        for pair in range(WIDTH // 2):
            axis, f = divmod(pair, WIDTH // 4)
            angle = place[order[axis]] * layer.base ** (-4 * f / WIDTH)
            a, b = (2 * pair, 2 * pair + 1) if layer.interleaved else (pair, pair + WIDTH // 2)
            number = (X[:, 1 + token, :, a] + 1j * X[:, 1 + token, :, b]) * np.exp(1j * angle)
            np.testing.assert_allclose(found[:, 1 + token, :, a], number.real, atol=1e-5)
            np.testing.assert_allclose(found[:, 1 + token, :, b], number.imag, atol=1e-5)


@pytest.mark.parametrize("options", [dict(), dict(columns_first=True, interleaved=True)])
def test_learned_frequencies_mix_both_axes(options):
    layer = RotaryPositions(GRID, num_prefix=1, centered=False, learned=True, **options)
    layer.build(X.shape)
    first = keras.ops.convert_to_numpy(layer.frequencies)  # (2, heads, pairs)
    powers = layer.base ** (-4 * np.arange(WIDTH // 4) / WIDTH)
    np.testing.assert_allclose(np.hypot(*first), np.broadcast_to(np.tile(powers, 2), first.shape[1:]), rtol=1e-5)
    frequencies = RNG.normal(size=first.shape).astype("float32")
    layer.frequencies.assign(frequencies)
    found = keras.ops.convert_to_numpy(layer(X))
    np.testing.assert_array_equal(found[:, 0], X[:, 0])
    for token in range(6):
        place = np.array(divmod(token, 3)[:: -1 if layer.columns_first else 1])
        for pair in range(WIDTH // 2):
            a, b = (2 * pair, 2 * pair + 1) if layer.interleaved else (pair, pair + WIDTH // 2)
            angle = place @ frequencies[:, :, pair]  # (heads,)
            number = (X[:, 1 + token, :, a] + 1j * X[:, 1 + token, :, b]) * np.exp(1j * angle)
            np.testing.assert_allclose(found[:, 1 + token, :, a], number.real, atol=1e-5)
            np.testing.assert_allclose(found[:, 1 + token, :, b], number.imag, atol=1e-5)


def test_products_depend_on_the_distance_only():
    layer = RotaryPositions((4, 5), centered=False)
    same = np.broadcast_to(RNG.normal(size=(2, 1, 1, WIDTH)).astype("float32"), (2, 20, 1, WIDTH))
    query, key = (keras.ops.convert_to_numpy(layer(x)) for x in (same[:1], same[1:]))
    products = np.einsum("bqhd,bkhd->qk", query, key).reshape(4, 5, 4, 5)
    np.testing.assert_allclose(products[0, 0, 1, 2], products[2, 1, 3, 3], atol=1e-4)
    assert abs(products[0, 0, 1, 2] - products[0, 0, 2, 1]) > 1e-3


def test_attention_turns_queries_and_keys_after_their_norm():
    layer = MultiHeadSelfAttention(HEADS, rotary={"grid": GRID, "num_prefix": 1}, qk_norm=True)
    x = RNG.normal(size=(2, 7, HEADS * WIDTH)).astype("float32")
    _, scores = layer(x, return_attention_scores=True)
    query, key, _ = np.split(keras.ops.convert_to_numpy(layer.qkv(x)).reshape(2, 7, 3, HEADS, WIDTH), 3, axis=2)
    turn = RotaryPositions(GRID, num_prefix=1)
    query, key = (
        keras.ops.convert_to_numpy(turn(norm(part[:, :, 0])))
        for norm, part in ((layer.q_norm, query), (layer.k_norm, key))
    )
    logits = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(WIDTH)
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(scores), expected, atol=1e-5)


def test_names():
    for name in ROTARY:
        assert rotary_argument({**rotary_options(name), "grid": GRID, "num_prefix": 1}) == name
    assert rotary_argument({"base": 100.0, "grid": GRID}) == "dinov3"  # the defaults
    own = {"base": 7.0}
    assert rotary_argument({**rotary_options(own), "grid": GRID, "num_prefix": 0}) == own
    assert rotary_argument(None) is None
    for wrong in ("dinov4", 100.0, {"theta": 100.0}, {"grid": GRID}):
        with pytest.raises(ValueError, match=rf"`rotary` must .*{re.escape(repr(wrong))}"):
            rotary_options(wrong)


def test_attention_checks_its_options():
    for wrong in ("dinov3", {"theta": 100.0}):
        with pytest.raises(ValueError, match=f"`rotary` must be a dictionary .*{re.escape(repr(wrong))}"):
            MultiHeadSelfAttention(HEADS, rotary=wrong)


@pytest.mark.parametrize(
    "options, shape, pattern",
    [
        (dict(grid=(2, 0)), X.shape, "grid"),
        (dict(base=0.0), X.shape, "base"),
        (dict(num_prefix=-1), X.shape, "num_prefix=-1"),
        (dict(offset=1.0), X.shape, "Centered coordinates have no offset"),
        (dict(centered=False, reference=0), X.shape, "reference=0"),
        (dict(num_prefix=2), X.shape, r"2 \+ 6 tokens"),
        (dict(num_prefix=1), (2, 7, 1, 6), "multiple of 4 channels. Received: 6"),
    ],
)
def test_bad_input(options, shape, pattern):
    with pytest.raises(ValueError, match=pattern):
        RotaryPositions(**{"grid": GRID, **options})(np.zeros(shape, "float32"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_learned_frequencies_under_half_precision(dtype):
    exact, layer = (RotaryPositions(GRID, num_prefix=1, learned=True, dtype=of) for of in ("float32", dtype))
    exact(X)
    layer.build(X.shape)
    layer.frequencies.assign(exact.frequencies)
    found = keras.ops.cast(layer(keras.ops.cast(X, dtype)), "float32")
    np.testing.assert_allclose(np.asarray(found), np.asarray(exact(X)), atol=0.1)

"""Where a model reads its tokens: whatever pools them, and what else mixes them."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_vit
from keras_vit import MultiHeadSelfAttention, PatchEncoder, Patches, Rescale, TokenPool, TransformerBlock
from keras_vit.explain import attention_distance, reading
from tests.explain.models import IMAGES, KINDS, PREFIX, shared, tiny
from tests.marks import few


@pytest.mark.parametrize("kind", KINDS)
def test_reading_is_the_pools_rule(kind):
    model = shared(kind)
    row = reading.reading(model, IMAGES)[1]
    prefix = PREFIX[kind]
    np.testing.assert_allclose(row.sum(), 1, atol=1e-6)
    expected = {
        "token": [1] + [0] * 6,
        "hybrid": [1] + [0] * 6,
        "gap": [1 / 6] * 6,
        "registers": [0, 0] + [1 / 6] * 6,
        "distilled": [0.5, 0.5] + [0] * 8,
        "both": [1 / 2] + [1 / 12] * 6,
        "last": [0] * 5 + [1],
    }
    if kind.startswith("map"):
        assert row.shape == (6 + prefix,) and row.min() > 0
    else:
        np.testing.assert_allclose(row, expected[kind], atol=1e-6)
        assert len(row) == 6 + prefix


def test_attention_pooling_is_read_by_its_own_scores():
    model = tiny(pooling="map")
    pool = model.get_layer("pool")
    tokens = keras.Model(model.input, pool.input)(IMAGES)
    query = np.einsum("w,whd->hd", pool.probe.numpy()[0, 0], pool.attention._query_dense.kernel.numpy())
    keys = np.einsum("btw,whd->bthd", np.asarray(tokens), pool.attention._key_dense.kernel.numpy())
    logits = np.einsum("hd,bthd->bht", query, keys) / 4  # biases start from zero
    expected = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).mean(1)
    np.testing.assert_allclose(reading.reading(model, IMAGES), expected, atol=1e-5)


def test_a_pool_of_all_tokens_reads_all():
    inputs = keras.Input((12, 8, 3))
    x = TransformerBlock(2, 32)(PatchEncoder(16)(Patches(4)(inputs)))
    model = keras.Model(inputs, TokenPool("gap", num_prefix=0)(x))
    np.testing.assert_allclose(reading.reading(model, IMAGES), np.full((3, 7), 1 / 7))


def by_hand(pool, between=lambda x: x, before=lambda x: x, name="mine"):
    inputs = keras.Input((12, 8, 3))
    x = before(PatchEncoder(16)(Patches(4)(Rescale()(inputs))))
    x = TransformerBlock(2, 32)(x)
    x = TransformerBlock(2, 32)(between(x))
    x = pool(keras.layers.LayerNormalization()(x))
    return keras.Model(inputs, keras.layers.Dense(5, kernel_initializer=keras.initializers.Ones())(x), name=name)


ROWS = {
    "token": [1, 0, 0, 0, 0, 0, 0],
    "last": [0] * 6 + [1],
    "patches": [0] + [1 / 6] * 6,
    "all": [1 / 7] * 7,
    "both": [1 / 2] + [1 / 12] * 6,
}
POOLS = {
    "x[:, 0]": (lambda x: x[:, 0], "token"),
    "x[:, -1]": (lambda x: x[:, -1], "last"),
    "Lambda": (keras.layers.Lambda(lambda x: x[:, 0]), "token"),
    "squeeze": (lambda x: ops.squeeze(x[:, :1], 1), "token"),
    "mean": (lambda x: ops.mean(x, axis=1), "all"),
    "sum": (lambda x: ops.sum(x[:, 1:], axis=1), "patches"),
    "GlobalAveragePooling1D": (keras.layers.GlobalAveragePooling1D(), "all"),
    "mean of patches": (lambda x: ops.mean(keras.layers.LayerNormalization()(x[:, 1:]), axis=1), "patches"),
    "keepdims": (lambda x: keras.layers.Flatten()(ops.mean(x, axis=1, keepdims=True)), "all"),
    "Flatten": (keras.layers.Flatten(), "all"),
    "Reshape": (lambda x: keras.layers.Flatten()(keras.layers.Reshape((3, 2, 16))(x[:, 1:])), "patches"),
    "Dense": (lambda x: keras.layers.Dense(8, "gelu")(x)[:, 0], "token"),
    "concatenate": (lambda x: keras.layers.Concatenate()([x[:, 0], ops.mean(x[:, 1:], 1)]), "both"),
    "flip": (lambda x: ops.flip(x, 1)[:, 0], "last"),
    "TokenPool": (lambda x: TokenPool("first")(x[:, :2]), None),
}


@few(6)
@pytest.mark.parametrize("kind", POOLS)
def test_what_pools_is_read_off_the_model(kind):
    pool, rows = POOLS[kind]
    expected = ROWS[rows] if rows else [0, 1, 0, 0, 0, 0, 0]
    if kind == "TokenPool":
        pool = lambda x: TokenPool("first", num_prefix=1)(x[:, :2])  # noqa: E731
    model = by_hand(pool)
    np.testing.assert_allclose(reading.reading(model, IMAGES)[1], expected, atol=1e-6)
    [same] = {
        tuple(np.shape(each(model, IMAGES))) for each in (keras_vit.attention_rollout, keras_vit.attention_relevance)
    }
    assert same == (3, 3, 2)


def test_what_pools_around_a_nested_model_is_read_too():
    inner = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, pooling="none", tokens={"class_token": True})
    for layer, rows in (
        (keras.layers.GlobalAveragePooling1D(), "all"),
        (keras.layers.Lambda(lambda x: x[:, 0]), "token"),
    ):
        outer = keras.Sequential([inner, layer, keras.layers.Dense(3)])
        [row] = reading.ends_of(outer)
        np.testing.assert_allclose(row, ROWS[rows], atol=1e-6)
        maps = keras_vit.attention_rollout(outer, IMAGES)
        flat = keras.Model(inner.input, outer.layers[-1](layer(inner.output)))
        np.testing.assert_allclose(maps, keras_vit.attention_rollout(flat, IMAGES), atol=1e-6)


@pytest.mark.parametrize(
    "pool",
    [
        keras.layers.GlobalMaxPooling1D(),
        lambda x: ops.max(x, axis=1),
        lambda x: keras.layers.Flatten()(keras.layers.Conv1D(8, 7)(x)),
        lambda x: keras.layers.Flatten()(keras.layers.Permute((2, 1))(x)),
        lambda x: keras.layers.MultiHeadAttention(2, 8)(x[:, :1], x)[:, 0],
        lambda x: keras.layers.GRU(8)(x),
    ],
)
def test_what_cannot_be_read_is_refused(pool):
    model = by_hand(pool)
    with pytest.raises(ValueError, match="cannot be told: they must be pooled by `TokenPool`, or by what is linear"):
        keras_vit.attention_rollout(model, IMAGES)
    with pytest.raises(ValueError, match="cannot be told"):
        keras_vit.attention_relevance(model, IMAGES)
    assert keras_vit.attention_maps(model, IMAGES).shape == (2, 3, 2, 7, 7)
    assert "cannot be told" in reading.doubt(model)


MIXERS = {
    "keras": lambda x: x + keras.layers.MultiHeadAttention(2, 8, name="extra")(x, x),
    "ours": lambda x: x + MultiHeadSelfAttention(2, name="extra")(x),
    "flip": lambda x: ops.flip(x, 1),
    "shift": lambda x: ops.roll(x, 1, 1),
    "convolution": lambda x: keras.layers.Conv1D(16, 3, padding="same", name="extra")(x),
    "fewer": lambda x: x[:, :5],
    "more": lambda x: keras.layers.Concatenate(axis=1, name="extra")([x, x]),
}


@pytest.mark.parametrize("kind", MIXERS)
@pytest.mark.parametrize("where", ["between", "before"])
def test_what_mixes_tokens_beside_the_blocks_is_told(kind, where, capsys):
    model = by_hand(lambda x: x[:, 0], **{where: MIXERS[kind]})
    for call in (keras_vit.attention_rollout, keras_vit.attention_relevance):
        with pytest.raises(ValueError, match="The blocks must form a single path, and .* Received: 'mine' with"):
            call(model, IMAGES)
    if kind not in ("fewer", "more"):
        for call in (keras_vit.attention_maps, attention_distance):
            with pytest.warns(UserWarning, match="mixes tokens too, and is no `TransformerBlock`"):
                call(model, IMAGES)


def test_what_computes_each_token_by_itself_is_no_matter():
    layers = [keras.layers.Dense(16, "relu"), keras.layers.LayerNormalization(), keras.layers.Dropout(0.5)]
    model = by_hand(lambda x: x[:, 0], keras.Sequential([keras.Input((7, 16)), *layers]), keras_vit.PatchDropout(0.5))
    assert reading.mixing(model) is reading.doubt(model) is None
    around = by_hand(lambda x: x[:, 0], lambda x: x + TransformerBlock(2, 32)(x))
    assert reading.mixing(around) is not None  # a path around a block


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "the class token"),
        ({"pooling": "gap"}, "all patches, on average"),
        ({"pooling": "map"}, "all patches, as the attention pooling weights them"),
        ({"pooling": "token+gap"}, "the class token and, on average, all patches"),
        ({"pooling": "last", "tokens": {"class_token": False}}, "the last patch"),
        ({"pooling": "none"}, "all patches, on average"),
        ({"tokens": {"distilled": True}}, "the class token and the distillation token"),
    ],
)
def test_what_the_head_reads_is_in_words(arguments, words):
    classes = 0 if arguments.get("pooling") == "none" else 2
    assert reading.read_by_head(keras_vit.vit("mu/4", image_size=8, num_classes=classes, **arguments)) == words
    assert reading.read_by_head(by_hand(keras.layers.GlobalAveragePooling1D())) == "all tokens, on average"
    assert reading.read_by_head(by_hand(lambda x: x[:, 0])) == "the class token"
    assert reading.read_by_head(by_hand(lambda x: ops.mean(x[:, 2:4], 1))) == "some tokens"

import keras
import numpy as np
import pytest

from keras_vit import captioner, explain, vilt, vit
from tests import captions
from tests.checkpoints.helpers import randomized
from tests.marks import slow_on_jax
from tests.towers import WORDS, two_towers

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 12, 8, 3)).astype("uint8")
EIGHT = IMAGES[:, :8]
IDS = np.array([[5, 7, 2, 0, 0, 0], [5, 8, 9, 11, 12, 2], [4, 2, 0, 0, 0, 0]], "int32")


@slow_on_jax
def test_the_map_of_a_text_is_the_cosine_of_each_patch_alone():
    """Patches whose attention is cut off from all others: the mean before a head without bias is that of the image."""
    model = two_towers(words=WORDS)
    image, text = model.get_layer("image"), model.get_layer("text")
    maps = explain.attention_of_text(model, IMAGES, ["a red car", "dog"])
    assert maps.shape == (3, 2, 3, 2) and maps.dtype == "float32" and np.abs(maps).max() <= 1 + 1e-6
    block = image.get_layer("block_0")
    tokens = keras.Model(image.input, block.input)(IMAGES.astype("float32"))
    alone = keras.ops.reshape(tokens, (-1, 1, tokens.shape[-1]))  # as sequences of one token
    vectors = image.get_layer("head")(image.get_layer("norm")(block(alone))[:, 0])
    wanted = _unit(vectors) @ _unit(text(_ids(["a red car", "dog"]))).T
    np.testing.assert_allclose(maps, np.moveaxis(wanted.reshape(3, 3, 2, 2), 3, 1), atol=1e-5)
    less = explain.attention_of_text(model, IMAGES, "dog", against="a photo")
    both = explain.attention_of_text(model, IMAGES, ["dog", "a photo"])
    np.testing.assert_allclose(less[:, 0], both[:, 0] - both[:, 1], atol=1e-6)


def _ids(texts):
    from keras_vit import tokenizer

    return tokenizer(WORDS, 8)(texts)


def _unit(vectors):
    vectors = keras.ops.convert_to_numpy(vectors)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@slow_on_jax
@pytest.mark.parametrize("pooling", ["token", "token+gap", "map"])
def test_maps_of_texts_with_other_pooling(pooling):
    from keras_vit import text_tower, two_towers, vit

    image = randomized(vit("mu/4", image_size=(12, 8), pooling=pooling, num_classes=5, depth=1))
    sizes = dict(vocabulary=len(WORDS), length=8, width=6, depth=1, num_heads=2, end=1, projection=5)
    model = two_towers(image, randomized(text_tower(**sizes, metadata={"words": WORDS})))
    maps = explain.attention_of_text(model, IMAGES, ["dog"])
    assert maps.shape == (3, 1, 3, 2) and np.ptp(maps) > 1e-3
    one = np.tile(IMAGES[:1, :4, :4], (1, 3, 2, 1))  # equal patches differ by their positions alone
    image.get_layer("encoder").position_embedding.assign(0 * image.get_layer("encoder").position_embedding)
    assert np.ptp(explain.attention_of_text(model, one, ["dog"])) < 1e-5


@slow_on_jax
def test_the_attention_of_a_word_is_the_softmax_of_its_query_and_the_keys_of_patches():
    image = randomized(vit("mu/4", image_size=(12, 8), pooling="none", num_classes=0))
    model = captioner(image, captions.decoder(depth=1), start=2, end=3, pad=1)
    block = model.get_layer("text").get_layer("block_0")
    ids = np.array([[2, 7, 9]] * 3)
    maps = explain.attention_of_words(model, IMAGES, ids)
    assert maps.shape == (3, 2, 3, 2)
    tokens = image(IMAGES.astype("float32"))
    x = model.get_layer("text").get_layer("words")(ids[:, :2])
    y = block.norm1(x)
    x = block.norm2(x + block.attention(y, y, use_causal_mask=True))
    query, key = (
        keras.ops.convert_to_numpy(dense(of)) for dense, of in ((block.cross.query, x), (block.cross.key, tokens))
    )
    query, key = (each.reshape(3, -1, 4, 4) for each in (query, key))  # heads, and channels of each
    logits = np.einsum("bthd,bshd->bhts", query, key) / 2
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(maps, shares.mean(1)[..., -6:].reshape(3, 2, 3, 2), atol=1e-5)


@pytest.mark.parametrize("way", [pytest.param("gpt2", marks=slow_on_jax), "projected", "blip"])
def test_where_each_word_was_read(way):
    model = captions.small(way)
    images = RNG.integers(0, 256, (9, 8, 8, 3)).astype("uint8")  # more than are computed at once
    ids = np.tile([[2, 7, 9, 3]], (9, 1))
    maps = explain.attention_of_words(model, images, ids)
    assert maps.shape == (9, 3, 2, 2) and (maps > 0).all() and (maps.sum((2, 3)) <= 1 + 1e-5).all()
    np.testing.assert_allclose(explain.attention_of_words(model, images[8:], ids[8:]), maps[8:], atol=1e-6)
    other = np.tile([[2, 7, 8, 3]], (9, 1))  # a later word does not matter
    again = explain.attention_of_words(model, images, other)
    np.testing.assert_allclose(again[:, :2], maps[:, :2], atol=1e-6)
    assert np.abs(again[:, 2] - maps[:, 2]).max() > 1e-4


def small(**options):
    sizes = dict(vocabulary=30, length=6, image_size=(12, 8), width=16, depth=2, num_heads=4, mlp_dim=24, num_classes=5)
    return randomized(vilt("Ti/4", **sizes | options))


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="gradients are TensorFlow's or JAX's")
@slow_on_jax
@pytest.mark.parametrize("pad", [0, None])
def test_where_an_answer_was_found(pad):
    model = small(pad=pad)
    patches, words = explain.attention_of_answer(model, IMAGES, IDS)
    assert patches.shape == (3, 3, 2) and words.shape == (3, 6) and (patches >= 0).all() and patches.max() > 0
    if pad == 0:
        assert not words[IDS == 0].any() and words[IDS != 0].any()
    answers = keras.ops.convert_to_numpy(model({"images": IMAGES.astype("float32"), "texts": IDS})).argmax(-1)
    same, _ = explain.attention_of_answer(model, IMAGES, IDS, answers)
    np.testing.assert_allclose(same, patches, atol=1e-6)
    other, _ = explain.attention_of_answer(model, IMAGES, IDS, (answers + 1) % 5)
    assert np.abs(other - patches).max() > 1e-6


@slow_on_jax
@pytest.mark.skipif(keras.backend.backend() == "torch", reason="gradients are TensorFlow's or JAX's")
def test_the_relevance_is_that_of_the_equations():
    """One block: the gradient of the logit by each score, which differences approximate."""
    model = small(depth=1)
    patches, words = explain.attention_of_answer(model, IMAGES[:1], IDS[:1], 2)
    block, after = model.get_layer("block_0"), ["norm", "pool", "pre_logits", "answer", "answer_norm", "answer_gelu"]
    x, mask = keras.Model(model.input, block.input)({"images": IMAGES[:1].astype("float32"), "texts": IDS[:1]})
    _, scores = block(x, attention_mask=mask, return_attention_scores=True)
    scores = keras.ops.convert_to_numpy(scores)

    def logit(offset):
        y = block(x, attention_mask=mask, scores_offset=offset)
        for name in [*after, "head"]:
            y = model.get_layer(name)(y)
        return float(y[0, 2])

    slopes = np.zeros(scores.shape[1:])
    for head, column in np.ndindex(*slopes.shape[::2]):  # only the first row is read
        step = np.zeros_like(scores)
        step[0, head, 0, column] = 1e-2
        slopes[head, 0, column] = (logit(step) - logit(-step)) / 2e-2
    wanted = np.maximum(slopes * scores[0], 0).mean(0)[0]
    np.testing.assert_allclose(
        np.concatenate([words[0], patches[0].ravel()]), np.delete(wanted, 6), rtol=0.05, atol=2e-4
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: explain.attention_of_words(small(), IMAGES, IDS),
            "keras_vit.captioner. Received: 'vilt_Ti_4'",
        ),
        (lambda: explain.attention_of_answer(captions.small(), IMAGES, IDS), "as from keras_vit.vilt, with a head"),
        (lambda: explain.attention_of_answer(small(num_classes=0), IMAGES, IDS), "as from keras_vit.vilt, with a head"),
        (
            lambda: explain.attention_of_answer(small(), IMAGES, IDS[:2]),
            r"integers \(3, length\), .* Received: \(2, 6\)",
        ),
        (lambda: explain.attention_of_answer(small(), IMAGES, IDS, 5), "`classes` must"),
        (lambda: explain.attention_of_answer(small(), IMAGES, IDS + 20), "from 0 to 29. Received: 20 to 32"),
        (lambda: explain.attention_of_answer(small(), IMAGES, IDS - 1), "from 0 to 29. Received: -1 to 11"),
        (lambda: explain.attention_of_words(captions.small(), EIGHT, IDS[:, :1]), "at least two each"),
        (lambda: explain.attention_of_answer(small(), IMAGES[:, :8], IDS), "must have the shape"),
        (lambda: explain.attention_of_text(small(), IMAGES, "dog"), "must have an image tower and a text tower"),
        (lambda: explain.attention_of_text(two_towers(), IMAGES, "dog"), "The model has no table of words"),
        (lambda: explain.attention_of_text(two_towers(words=WORDS), IMAGES, ""), "Each text must have a word"),
        (lambda: explain.attention_of_text(two_towers(words=WORDS), IMAGES, [], against="dog"), "Received: no text"),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


@slow_on_jax
def test_pixels_of_another_range():
    model = small(value_range=(0, 4095))
    maps, _ = explain.attention_of_answer(model, IMAGES.astype("float32") * 16, IDS, 1)
    assert maps.max() > 0

import numpy as np
import pytest

from keras_vit import attention_maps, captioner, text_decoder, text_tower
from keras_vit.explain import attention_over_source
from tests.captions import decoder
from tests.checkpoints.helpers import randomized

pytestmark = pytest.mark.backend

SIZES = dict(vocabulary=30, length=6, width=16, depth=2, num_heads=4)
IDS = np.array([[5, 7, 2, 0, 0, 0], [5, 8, 9, 11, 12, 2]], "int32")
MODELS = {
    "causal": lambda: text_tower(**SIZES, end=2),
    "padded": lambda: text_tower(**SIZES, causal=False, pooling="none", masked_id=0),
    "both": lambda: text_tower(**SIZES, pooling="last", masked_id=0),
    "all": lambda: text_tower(**SIZES, causal=False, pooling="last"),
    "language": lambda: text_decoder(**SIZES),
    "language, post": lambda: text_decoder(**SIZES, norm_order="post", masked_id=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_words_attend_to_what_the_masks_allow(name):
    maps = attention_maps(randomized(MODELS[name]()), IDS)
    assert maps.shape == (2, 2, 4, 6, 6) and maps.dtype == "float32"
    causal = name not in ("padded", "all")
    padded = name in ("padded", "both", "language, post")
    allowed = np.ones((2, 6, 6), bool)
    if causal:
        allowed &= np.tril(np.ones((6, 6), bool))
    if padded:
        allowed &= (IDS != 0)[:, None]
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(maps.min((0, 2)) > 0, allowed)


def test_the_scores_are_those_of_the_model():
    """The first block's, computed by hand from its projections."""
    model = randomized(text_tower(**SIZES, end=2))
    block = model.get_layer("block_0")
    x = block.norm1(model.get_layer("words")(IDS))
    q, k, _ = np.split(np.asarray(block.attention.qkv(x)), 3, axis=-1)
    q, k = (part.reshape(2, 6, 4, 4).transpose(0, 2, 1, 3) for part in (q, k))
    logits = q @ k.swapaxes(2, 3) / 2 + np.triu(np.full((6, 6), -1e9), 1)
    expected = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(attention_maps(model, IDS)[0], expected / expected.sum(-1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("masks", [{}, {"mask_context": True}, {"mask_context": True, "masked_id": 29}])
def test_what_the_decoder_reads(masks):
    source = text_tower(**{**SIZES, "width": 32}, pooling="none", causal=False, masked_id=0)
    model = randomized(captioner(source, decoder(**masks), start=2, end=3))
    texts = np.random.default_rng(0).integers(0, 30, (2, 5), "int32")
    maps = attention_over_source(model, IDS, texts)
    assert (maps[:, 0, ..., 3:] == 0).all() == ("mask_context" in masks) and (maps[:, 1] > 0).all()
    assert maps.shape == (2, 2, 4, 4, 6)
    np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
    later = np.concatenate([texts[:, :3], texts[:, 3:] * 0 + 7], axis=1)
    np.testing.assert_allclose(attention_over_source(model, IDS, later)[..., :2, :], maps[..., :2, :], atol=1e-6)
    with pytest.raises(ValueError, match="must be one from keras_vit.captioner with a text tower. Received: 'text'"):
        attention_over_source(source, IDS, texts)
    with pytest.raises(ValueError, match=r"`sources` must be integers \(texts, 6\), from 0 to below 30"):
        attention_over_source(model, IDS[:, :3], texts)
    with pytest.raises(ValueError, match=r"`ids` must be \(2, words\), at least two each. Received: shape=\(1, 5\)"):
        attention_over_source(model, IDS, texts[:1])


@pytest.mark.parametrize("ids", [IDS[:, :3], IDS + 30, IDS - 9, IDS.astype("float32"), IDS[0]])
def test_ids_that_do_not_fit(ids):
    with pytest.raises(ValueError, match=r"`ids` must be integers \(texts, 6\), from 0 to below 30. Received: shape="):
        attention_maps(MODELS["causal"](), ids)

import keras
import numpy as np
import pytest

from keras_vit import text_decoder
from tests.captions import SIZES, WAYS, decoder, numbers
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IDS, CONTEXT = RNG.integers(4, 30, (3, 7)).astype("int32"), RNG.normal(size=(3, 5, 32)).astype("float32")


def given(model, ids=IDS, context=CONTEXT):
    return {"texts": ids, "context": context} if isinstance(model.input, dict) else ids


@pytest.mark.parametrize("way", WAYS)
def test_a_word_is_the_same_whatever_follows(way):
    model, later = decoder(way), IDS.copy()
    later[:, 4:] = 5
    before, after = (numbers(model(given(model, ids))) for ids in (IDS, later))
    assert before.shape == (3, 7, 30) and before.dtype == "float32"
    np.testing.assert_allclose(before[:, :4], after[:, :4], atol=1e-6)
    assert np.abs(before[:, 4:] - after[:, 4:]).max() > 1e-2


def test_layers_and_their_weights():
    names = lambda way: [layer.name for layer in decoder(way).layers if "block" not in layer.name]  # noqa: E731
    assert names("language") == ["texts", "words", "norm"]
    assert set(names("projected")) == {"texts", "context", "words", "project_context", "norm"}
    assert set(names("trocr_small")) == {"texts", "context", "words", "norm_pre", "head"}
    assert set(names("blip")) == {"texts", "context", "words", "norm_pre", "transform", "norm_transform"}
    paths = [weight.path for weight in decoder("blip").weights]
    assert "words/bias" in paths and "block_1/cross/key/kernel" in paths and not any("head" in p for p in paths)
    assert "block_0/norm2/gamma" not in [weight.path for weight in decoder("language").weights]


def test_logits_are_tied_to_the_table_of_words():
    model = decoder("language")
    tokens = numbers(keras.Model(model.input, model.get_layer("norm").output)(IDS))
    table = numbers(model.get_layer("words").word_embedding)
    np.testing.assert_allclose(numbers(model(IDS)), tokens @ table.T, atol=1e-5)


def test_an_id_that_no_word_attends_to():
    model, other = decoder("blip"), IDS.copy()
    other[:, 2] = 0
    masked, plain = (
        numbers(decoder(way, **more)(given(model, other)))
        for way, more in (("blip", {}), ("blip", {"masked_id": None}))
    )
    np.testing.assert_allclose(masked[:, :2], plain[:, :2], atol=1e-6)
    assert np.abs(masked[:, 3:] - plain[:, 3:]).max() > 1e-2


@pytest.mark.parametrize("way", ["language", "blip"])
def test_trains_compiled_saves_and_loads(way, tmp_path):
    model = decoder(way, dropout=0.1, metadata={"start": 2})
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=True)
    before = numbers(model(given(model)))
    assert np.isfinite(model.train_on_batch(given(model), IDS))
    assert not np.allclose(numbers(model(given(model))), before)
    model.save(tmp_path / "text.keras")
    loaded = keras.models.load_model(tmp_path / "text.keras")
    np.testing.assert_array_equal(numbers(loaded(given(model))), numbers(model(given(model))))
    assert loaded.get_layer("words").metadata == {"start": 2}


def test_mixed_precision():
    plain, mixed = (decoder("trocr_base", dtype=dtype) for dtype in ("float32", "mixed_bfloat16"))
    assert mixed.dtype_policy.name == "mixed_bfloat16" and mixed.outputs[0].dtype == "float32"
    np.testing.assert_allclose(numbers(mixed(given(mixed))), numbers(plain(given(plain))), atol=0.2)


def test_bad_arguments():
    wrong = [
        (dict(num_heads=3), "A width of 16 cannot be split into 3 heads"),
        (dict(depth=2000), "at most 1000 blocks. Received: depth=2000"),
        (dict(project_context=True), "needs `context_width`. Received: context_width=None"),
        (dict(norm_order="res-post"), "`norm_order` must be one of 'pre', 'post'"),
        (dict(gelu="silu"), "`gelu` must be one of 'relu', 'tanh', 'exact', 'quick'. Received: gelu='silu'"),
        (dict(positions="rotary"), "`positions` must be one of 'learned', 'sinusoidal'"),
        (dict(pad=1), "`pad` is for positions='sinusoidal'. Received: pad=1"),
        (dict(final_norm="yes"), "`final_norm` must be one of None, True, False. Received: final_norm='yes'"),
        (dict(tied=1), "`tied` must be True or False. Received: tied=1"),
    ]
    assert not unexpected([(lambda more=more: text_decoder(**SIZES | more), says) for more, says in wrong])
    with pytest.raises(ValueError, match="at most 12 words. Received"):
        decoder("language")(np.zeros((1, 13), "int32"))

import keras
import numpy as np
import pytest

from keras_vit.layers import Words
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

IDS = np.array([[0, 3, 4999], [2049, 1, 2051]], "int32")


def test_layer(tmp_path):
    run_layer_test(lambda dtype: Words(5, 8, length=4, dtype=dtype), (2, 4), (2, 4, 8), [], tmp_path)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_looks_up_words_and_adds_positions(policy):
    """float16 and bfloat16 do not count to 4,999: ids are integers under every policy, also if they come as floats."""
    layer = Words(5000, 8, length=4, dtype=policy)
    for ids in (IDS, IDS.astype("float32")):
        found = keras.ops.convert_to_numpy(keras.ops.cast(layer(ids), "float32"))
        words, positions = map(keras.ops.convert_to_numpy, layer.weights)
        assert [w.path.rpartition("/")[2] for w in layer.weights] == ["word_embedding", "position_embedding"]
        np.testing.assert_allclose(found, words[IDS] + positions[:3], atol=1e-7 if policy == "float32" else 1e-3)


def test_metadata_is_saved_and_bad_input_refused():
    config = Words(5, 8, 4, metadata={"tokens": np.arange(2)}).get_config()
    assert config["metadata"] == {"tokens": [0, 1]} and Words.from_config(config).metadata == config["metadata"]
    with pytest.raises(ValueError, match=r"at most 4 words. Received: shape=\(2, 5\)"):
        Words(5, 8, 4)(np.zeros((2, 5), "int32"))
    with pytest.raises(ValueError, match="`metadata` must be a dictionary. Received: metadata='clip'"):
        Words(5, 8, 4, metadata="clip")


@pytest.mark.parametrize("options", [dict(positions="sinusoidal", pad=1), dict(scaled=True, logit_bias=True)])
def test_layer_with_options(options, tmp_path):
    layer = Words(5, 8, length=4, **options)
    assert Words.from_config(layer.get_config()).get_config() == layer.get_config()
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(layer(ids), to_logits=True))
    assert model.output_shape == (None, None, 5)
    for weight in layer.weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    model.save(tmp_path / "words.keras")
    loaded = keras.models.load_model(tmp_path / "words.keras")
    given = np.array([[2, 1, 3]], "int32")
    np.testing.assert_array_equal(np.asarray(loaded(given)), np.asarray(model(given)))


def test_a_token_becomes_logits_of_words():
    layer = Words(5, 8, length=4, scaled=True, logit_bias=True, dtype="mixed_bfloat16")
    tokens = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    layer(np.zeros((2, 3), "int32"))
    layer.bias.assign(np.arange(5))
    table = keras.ops.convert_to_numpy(layer.word_embedding)
    logits = layer(tokens, to_logits=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    np.testing.assert_allclose(np.asarray(logits), tokens @ table.T + np.arange(5), atol=1e-5)
    positions = keras.ops.convert_to_numpy(layer.position_embedding)
    found = keras.ops.convert_to_numpy(keras.ops.cast(layer(np.full((1, 2), 3), start=2), "float32"))
    np.testing.assert_allclose(found[0], table[3] * 8**0.5 + positions[2:4], atol=1e-3)


def test_padding_has_no_position_and_is_not_counted():
    layer = Words(5, 8, length=6, positions="sinusoidal", pad=1)
    layer(np.zeros((1, 3), "int32"))
    layer.word_embedding.assign(np.zeros((5, 8)))
    found = np.asarray(layer(np.array([[2, 1, 3, 4, 1]], "int32")))[0]
    from keras_vit.layers.inputs.words import sinusoids

    table = sinusoids(6, 8, pad=1)
    np.testing.assert_allclose(found, table[[1, 0, 2, 3, 0]], atol=1e-6)
    np.testing.assert_allclose(np.asarray(layer(np.array([[4]], "int32"), start=5))[0], table[[6]], atol=1e-6)


def test_options_that_do_not_fit():
    for options, said in (
        (dict(positions="rotary"), "`positions` must be one of 'learned', 'sinusoidal'"),
        (dict(pad=1), "`pad` is for positions='sinusoidal'. Received: pad=1"),
        (dict(positions="sinusoidal", width=7), "need an even width of at least 4. Received: width=7"),
        (dict(scaled=1), "`scaled` must be True or False"),
    ):
        with pytest.raises(ValueError, match=said):
            Words(**{"vocabulary": 5, "width": 8, "length": 4, **options})

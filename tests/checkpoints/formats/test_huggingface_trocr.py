import json
import types

import numpy as np

from keras_vit.checkpoints.formats import huggingface_trocr
from keras_vit.layers.inputs.words import sinusoids
from tests.captions import FOLDER, arrays_in, numbers, original


def read(arrays=None, **decoder):
    arrays = arrays_in("trocr") | (arrays or {})
    config = json.loads((FOLDER / "trocr" / "config.json").read_text())
    config["decoder"] |= decoder
    names = huggingface_trocr.FORMAT.names({name: array.shape for name, array in arrays.items()})
    shapes = {name: arrays[place].shape for name, place in names.items()}
    return huggingface_trocr.FORMAT.architecture(shapes, types.SimpleNamespace(config=config))[0]


def test_the_architecture():
    base = read()
    sizes = dict(vocabulary=311, length=24, width=32, depth=2, num_heads=4, mlp_dim=48, context_width=24)
    ways = dict(norm_order="post", gelu="exact", epsilon=1e-5, positions="learned", pad=None, scale_words=False)
    assert base == sizes | ways | dict(norm_words=True, tied=True, project_context=False)
    small = read(
        activation_function="relu", use_learned_position_embeddings=False, scale_embedding=True, pad_token_id=1,
        tie_word_embeddings=False, max_position_embeddings=40, layernorm_embedding=False,
    )  # fmt: skip
    assert (small["positions"], small["pad"], small["length"], small["gelu"]) == ("sinusoidal", 1, 40, "relu")
    assert small["scale_words"] and not small["norm_words"] and not small["tied"]


def test_two_rows_of_positions_are_left_out():
    table = arrays_in("trocr")["decoder.model.decoder.embed_positions.weight"]
    words = original("trocr").get_layer("text").get_layer("words")
    np.testing.assert_array_equal(numbers(words.position_embedding), table[2:])


def test_sinusoids_are_fairseq_s():
    """The position of the first word is pad + 1; padding has none. As candle's pull request 1690 had to add."""
    table = sinusoids(5, 8, pad=1)
    assert table.shape == (6, 8) and not table[0].any()
    angle = 2 * 10000 ** (-np.arange(4) / 3)
    np.testing.assert_allclose(table[1], np.concatenate([np.sin(angle), np.cos(angle)]), atol=1e-6)
    np.testing.assert_array_equal(sinusoids(5, 8)[2:], sinusoids(3, 8, pad=1)[1:])

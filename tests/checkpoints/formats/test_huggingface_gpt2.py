import json
import types

import numpy as np
import pytest

from keras_vit.checkpoints.formats import huggingface_gpt2
from tests.captions import FOLDER, arrays_in, numbers, original

CASE = "vision_encoder_decoder"


def read(arrays=None, **decoder):
    arrays = arrays_in(CASE) | (arrays or {})
    config = json.loads((FOLDER / CASE / "config.json").read_text())
    config["decoder"] |= decoder
    names = huggingface_gpt2.FORMAT.names({name: array.shape for name, array in arrays.items()})
    shapes = {name: arrays[place].shape for name, place in names.items()}
    return huggingface_gpt2.FORMAT.architecture(shapes, types.SimpleNamespace(config=config))


def test_the_architecture():
    arguments, tokens, origins = read()
    assert tokens == {"tokens": "gpt2", "start": 306, "end": 105, "pad": 306} and origins["num_heads"] == "config.json"
    expected = dict(vocabulary=307, length=24, width=32, depth=2, num_heads=4, mlp_dim=128, context_width=32)
    assert arguments == expected | dict(
        project_context=False, norm_order="pre", gelu="tanh", epsilon=1e-5, tied=True,
    )  # fmt: skip
    wider, *_ = read({"enc_to_dec_proj.weight": np.ones((32, 24))}, tie_word_embeddings=False)
    assert (wider["context_width"], wider["project_context"], wider["tied"]) == (24, True, False)


@pytest.mark.parametrize("part, begin", [("query", 0), ("key", 32), ("value", 64)])
def test_matrices_are_not_turned_but_split(part, begin):
    block, arrays = original(CASE).get_layer("text").get_layer("block_1"), arrays_in(CASE)
    whole = arrays["decoder.transformer.h.1.attn.c_attn.weight"]
    np.testing.assert_array_equal(numbers(getattr(block.attention, part).kernel), whole[:, begin : begin + 32])
    bias = arrays["decoder.transformer.h.1.attn.c_attn.bias"]
    np.testing.assert_array_equal(numbers(getattr(block.attention, part).bias), bias[begin : begin + 32])

import pytest

from keras_vit.checkpoints.formats.decoder_config import (
    activation,
    check_pair,
    marks_of,
    need_options,
    read_decoder,
)
from tests.checkpoints.helpers import unexpected

PAIR, VIT = {"model_type": "vision-encoder-decoder"}, {"encoder": {"model_type": "vit"}}


def test_defaults_fill_what_a_file_does_not_say():
    config = {"decoder": {"model_type": "gpt2", "n_head": 4}}
    assert read_decoder(config, "gpt2", {"n_head": 12, "n": 1}, {"n_embd": 8}) == {
        "model_type": "gpt2", "n_head": 4, "n": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "config, expected",
    [
        (dict(decoder_start_token_id=1, eos_token_id=2, pad_token_id=3), (1, 2, 3)),
        (dict(decoder_start_token_id=1, eos_token_id=[2]), (1, 2, 2)),
        (dict(decoder=dict(decoder_start_token_id=1, eos_token_id=0, pad_token_id=3), eos_token_id=None), (1, 0, 3)),
        (
            {
                "generation_config.json": dict(eos_token_id=5, decoder_start_token_id=6),
                "eos_token_id": 2,
                "decoder": {},
            },
            (6, 5, 5),
        ),
    ],
)
def test_ids_are_found_in_the_order_of_generate(config, expected):
    assert tuple(marks_of(config).values()) == expected


def test_what_is_refused():
    wrong = [
        (lambda: check_pair(PAIR | VIT | {"decoder": {"model_type": "bert"}}), "one of gpt2, trocr. Received: 'bert'"),
        (lambda: check_pair(PAIR | VIT), "The decoder's `model_type` must be one of gpt2, trocr. Received: None"),
        (lambda: check_pair(PAIR | {"encoder": {"model_type": "beit"}}), "one of vit, deit. Received: 'beit'"),
        (lambda: read_decoder({}, "gpt2", {}, {"n_embd": 8}), "needs its config.json in the same folder: .*Received"),
        (
            lambda: read_decoder({"decoder": {"model_type": "gpt2", "n_embd": 9}}, "gpt2", {}, {"n_embd": 8}),
            "says n_embd 9, and the weights have 8",
        ),
        (lambda: need_options({"a": 1}, {"a": 2, "b": 3}), "A decoder with a=1 cannot be loaded"),
        (lambda: activation("silu"), "must be one of gelu, .*relu. Received: 'silu'"),
        (lambda: marks_of({"eos_token_id": 1}), "one id as `decoder_start_token_id`. Received: None"),
        (
            lambda: marks_of({"decoder_start_token_id": 1, "eos_token_id": [1, 2]}),
            "as `eos_token_id`. Received: .1, 2.",
        ),
    ]
    assert not unexpected(wrong)
    assert [activation(name) for name in ("gelu", "gelu_new", "relu")] == ["exact", "tanh", "relu"]

import pytest

from keras_vit.checkpoints.formats.decoder_config import (
    activation,
    check_pair,
    marks_of,
    need_options,
    otherwise,
    read_decoder,
    written_by,
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


GENERATION = "generation_config.json"


@pytest.mark.parametrize(
    "config, expected",
    [
        ({}, (None, {})),
        ({GENERATION: dict(max_length=24, num_beams=1, top_k=5)}, (24, {})),  # nothing is drawn
        ({GENERATION: dict(max_new_tokens=9, max_length=24)}, (10, {})),
        ({GENERATION: dict(max_length=20)}, (20, {})),
        ({GENERATION: dict(num_beams=4, early_stopping=True)}, (None, dict(num_beams=4, early_stopping=True))),
        ({GENERATION: dict(length_penalty=2.0, early_stopping=True)}, (None, {})),  # of one beam
        ({GENERATION: dict(do_sample=True, top_k=5)}, (None, dict(do_sample=True, top_k=5))),
        ({GENERATION: dict(forced_bos_token_id=0), "num_beams": 4}, (None, dict(forced_bos_token_id=0))),
        (dict(max_length=20, num_beams=1, decoder=dict(no_repeat_ngram_size=3)), (None, dict(no_repeat_ngram_size=3))),
        (dict(num_beams=2, decoder=dict(num_beams=4, max_length=64)), (64, dict(num_beams=2))),
        (dict(text_config=dict(min_length=5, max_length=20, bad_words_ids=[])), (None, dict(min_length=5))),
        ({GENERATION: dict(max_length="64", suppress_tokens=[])}, (None, {})),
    ],
)
def test_how_texts_are_written(config, expected):
    assert written_by(config) == expected


def test_what_is_written_otherwise_is_said():
    said = otherwise({"num_beams": 4, "no_repeat_ngram_size": 3})
    assert said.startswith("its texts are written with num_beams=4, no_repeat_ngram_size=3, and generate_text takes")
    assert said.endswith("Pass beams=4. It has no no_repeat_ngram_size: texts may differ from the original's.")
    assert otherwise({"do_sample": True}).endswith("each time. Pass temperature=1.0, top_k=50.")
    assert len(otherwise({"suppress_tokens": list(range(10_000))})) < 300

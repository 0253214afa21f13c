"""Reads what Hugging Face transformers' `config.json` and `generation_config.json` say of a text decoder."""

from keras_vit.checkpoints.files.wrapped import GENERATION, PAIR
from keras_vit.checkpoints.formats.transformers_config import CONFIG, GELUS

ENCODERS, DECODERS = ("vit", "deit"), ("gpt2", "trocr")  # others end without the norm, or have no one size
ACTIVATIONS = {**GELUS, "relu": "relu"}
MARKS = {"start": "decoder_start_token_id", "end": "eos_token_id", "pad": "pad_token_id"}


def check_pair(config):
    """Raises ValueError for a pair of an image tower and a decoder that are not read together."""
    for part, known in {"encoder": ENCODERS, "decoder": DECODERS}.items():
        kind = (config.get(part) or {}).get("model_type")
        if config.get("model_type") == PAIR and kind not in known:
            raise ValueError(f"The {part}'s `model_type` must be one of {', '.join(known)}. Received: {kind!r}")


def read_decoder(config, kind, defaults, width):
    """Returns what a file says of its decoder, completed by transformers' defaults; ValueError if it says nothing.

    Args:
        config: Content of `config.json`; empty without a file.
        kind: The decoder's `model_type`.
        defaults: What transformers assumes where the file says nothing.
        width: Name and value of the decoder's width, by its tensors.
    """
    stated = config.get("decoder")
    if not isinstance(stated, dict) or stated.get("model_type") != kind:
        raise ValueError(
            f"A file of {kind} needs its {CONFIG} in the same folder: no tensor shows its heads and its ids. "
            f"Received: model_type {(stated or config).get('model_type')!r}"
        )
    ((name, value),) = width.items()
    if stated.get(name, value) != value:
        raise ValueError(f"{CONFIG} says {name} {stated[name]}, and the weights have {value}.")
    return {**defaults, **stated}


def need_options(stated, computed):
    """Raises ValueError if a file states other options than a decoder here computes."""
    other = [f"{name}={stated[name]!r}" for name, value in computed.items() if stated.get(name, value) != value]
    if other:
        raise ValueError(f"A decoder with {', '.join(other)} cannot be loaded: texts would be wrong.")


def activation(name):
    """Returns our name of transformers' activation."""
    if name not in ACTIVATIONS:
        raise ValueError(f"The decoder's activation must be one of {', '.join(ACTIVATIONS)}. Received: {name!r}")
    return ACTIVATIONS[name]


def marks_of(config):
    """Returns the ids of start, end and padding, as transformers' `generate` finds them.

    `generation_config.json` comes before `config.json`, and the whole model before its decoder. Padding is the end's id
    where no file says another.

    Raises:
        ValueError: If no file states start or end, or several ends.
    """
    places = [config.get(GENERATION) or {}, config, config.get("decoder") or {}]
    marks = {}
    for mark, name in MARKS.items():
        value = next((place[name] for place in places if place.get(name) is not None), None)
        marks[mark] = value[0] if isinstance(value, list) and len(value) == 1 else value
    marks["pad"] = marks["end"] if marks["pad"] is None else marks["pad"]
    for mark, value in marks.items():
        if type(value) is not int:
            raise ValueError(f"{CONFIG} or {GENERATION} must have one id as `{MARKS[mark]}`. Received: {value!r}")
    return marks

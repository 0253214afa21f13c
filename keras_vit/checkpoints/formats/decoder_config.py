"""Reads what Hugging Face transformers' `config.json` and `generation_config.json` say of a text decoder."""

from keras_vit.checkpoints.files.wrapped import GENERATION, PAIR
from keras_vit.checkpoints.formats.transformers_config import CONFIG, GELUS

ENCODERS, DECODERS = ("vit", "deit"), ("gpt2", "trocr")  # others end without the norm, or have no one size
ACTIVATIONS = {**GELUS, "relu": "relu"}
MARKS = {"start": "decoder_start_token_id", "end": "eos_token_id", "pad": "pad_token_id"}
# What transformers' `generate` obeys, by its name: the value that changes nothing.
WAYS = {
    "num_beams": 1,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "early_stopping": False,
    "length_penalty": 1.0,
    "min_length": 0,
    "min_new_tokens": None,
    "do_sample": False,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "min_p": None,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "bad_words_ids": None,
    "force_words_ids": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "forced_decoder_ids": None,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "guidance_scale": None,
    "penalty_alpha": None,
}
BEAM_OPTIONS = ("early_stopping", "length_penalty", "num_beam_groups", "diversity_penalty")  # which matter to several
DRAWING_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")
ARGUMENTS = {"num_beams": "beams", "length_penalty": "length_penalty"}  # of `generate_text`
DRAWN = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p"}
OLD_LENGTH = 20  # of files that state every default


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


def written_by(config):
    """Returns how a file's texts are written: the ids of a text, or `None`, and what else differs from the defaults.

    `generation_config.json` counts alone; without one, as before 2023, `config.json` and its decoder's part do.
    """
    options = config.get(GENERATION) or {}
    if not options:
        parts = [config, *(config[name] for name in ("decoder", "text_config") if isinstance(config.get(name), dict))]
        options = {name: part[name] for part in reversed(parts) for name in (*WAYS, "max_length") if name in part}
        options = {name: value for name, value in options.items() if (name, value) != ("max_length", OLD_LENGTH)}
    more, most = options.get("max_new_tokens"), options.get("max_length")
    length = None
    if _counts(more):
        length = more + 1
    elif _counts(most) and most > 1:
        length = most
    others = {name: options[name] for name, plain in WAYS.items() if options.get(name) not in (None, plain, [])}
    idle = (() if "num_beams" in others else BEAM_OPTIONS) + (() if "do_sample" in others else DRAWING_OPTIONS)
    return length, {name: value for name, value in others.items() if name not in idle}


def _counts(value):
    return type(value) is int and value > 0


def otherwise(ways):
    """Returns a sentence about ways to write that `generate_text` does not follow of itself, as of `written_by`."""
    known = ARGUMENTS | (DRAWN if "do_sample" in ways else {})
    passed = {ours: ways[name] for name, ours in known.items() if name in ways}
    if "do_sample" in ways:
        passed = {"temperature": 1.0, "top_k": 50} | passed
    lacking = [name for name in ways if name not in known and name != "do_sample"]
    said = f"its texts are written with {_listed(ways)}, and generate_text takes the likeliest word each time."
    said += f" Pass {_listed(passed)}." if passed else ""
    return said + (f" It has no {', '.join(lacking)}: texts may differ from the original's." if lacking else "")


def _listed(values):
    return ", ".join(f"{name}={value!s:.60}" for name, value in values.items())

"""Finds the files of a tokenizer, and which family it is of."""

import json
import pathlib
from typing import NamedTuple

from keras_vit.text.engines import ADDED, HOW, MOST_IDS
from keras_vit.text.families import FAMILIES, open_clip_canonical
from keras_vit.utils import checks, downloads, files

TOKENIZER, CONFIG, OPEN_CLIP = "tokenizer_config.json", "config.json", "open_clip_config.json"
WORDS, SPECIAL = "added_tokens.json", "special_tokens_map.json"
CAPTIONS = "BlipForConditionalGeneration"
GENERIC = ("", "PreTrainedTokenizer", "TokenizersBackend")  # classes that say nothing of the rules
# What is downloaded of a repository.
WANTED = sorted(
    {
        TOKENIZER,
        CONFIG,
        OPEN_CLIP,
        WORDS,
        SPECIAL,
        "merges.txt",
        *(name for row in FAMILIES.values() for name in row.read),
    }
)


class Found(NamedTuple):
    """A tokenizer's file and its rules."""

    family: str
    path: pathlib.Path
    settings: dict  # tokenizer_config.json, with the words of added_tokens.json
    changes: dict  # what replaces fields of the family's row; ids as integers


def find(source, family=None):
    """Finds the file of a tokenizer.

    Args:
        source: Path of a folder or of one of its files, or `hf://owner/name`.
        family: Name of a row of `FAMILIES`, or `None` for what the files say.

    Returns:
        A `Found`.

    Raises:
        FileNotFoundError: If there is no such folder or file, or the folder has none of the family's files.
        ValueError: If the files do not say which family, or another one.
    """
    path = downloads.snapshot(source, WANTED) if "://" in str(source) else checks.path("source", source)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {str(source)!r}.")
    folder = path if path.is_dir() else path.parent
    settings = {name: _read(folder / name) for name in (TOKENIZER, CONFIG, OPEN_CLIP)}
    there = [path.name] if path.is_file() else [each.name for each in folder.iterdir()]
    family = family or told(settings, there, source)
    row = FAMILIES[family]
    file = next((name for name in row.read if name in there), None)
    if file is None:
        received = repr(path.name) if path.is_file() else f"none in {str(source)!r}"
        raise FileNotFoundError(f"A tokenizer of {family!r} must have {' or '.join(row.read)}. Received: {received}")
    tokenizer_settings = settings[TOKENIZER] | {ADDED: _added(folder, settings[TOKENIZER], source)}
    return Found(family, folder / file, tokenizer_settings, _changes(family, settings, source))


def told(settings, there, source):
    """Returns the family that the settings of a tokenizer name, or its model's.

    Args:
        settings: Contents of the JSON files, by their names; empty for one that is not there.
        there: Names of the files in the folder.
        source: As in `find`.
    """
    kind = str(settings[TOKENIZER].get("tokenizer_class") or "")
    model = str((_part(settings[CONFIG], "decoder") or settings[CONFIG]).get("model_type") or "")
    text = {} if settings[CONFIG] else _part(settings[OPEN_CLIP], "model_cfg", "text_cfg")
    families = []
    if _cleans(text):
        families = ["siglip"] if kind.startswith("T5") else ["siglip", "siglip2"]
    elif kind.removesuffix("Fast") not in GENERIC:
        families = [name for name, row in FAMILIES.items() if kind.removesuffix("Fast") in row.classes]
    elif model:
        families = [name for name, row in FAMILIES.items() if model in row.models]
    elif text and "hf_tokenizer_name" not in text:
        families = ["clip"]
    fitting = [name for name in families if next(iter(FAMILIES[name].read)) in there]
    if not families:
        names = ", ".join(repr(name) for name, row in FAMILIES.items() if row.read)
        received = " and ".join(filter(None, (kind, model))) or "no settings that say it"
        raise ValueError(f"`family` must be one of {names} for the tokenizer in {str(source)!r}. Received: {received}")
    return (fitting or families)[0]


def _part(settings, *names):
    """Returns a dictionary inside settings; an empty one if there is none."""
    for name in names:
        settings = settings.get(name)
        if not isinstance(settings, dict):
            return {}
    return settings


def _cleans(text):
    """Returns whether OpenCLIP's settings of a text tower clean as SigLIP's do."""
    return _part(text, "tokenizer_kwargs").get("clean") == "canonicalize"


def _changes(family, settings, source):
    """Returns what a folder's settings change in the row of a family."""
    config, changes = settings[CONFIG], {}
    pad = settings[TOKENIZER].get("pad_token")
    pad = pad.get("content") if isinstance(pad, dict) else pad
    if isinstance(pad, str):
        changes["pad"] = pad
    if settings[OPEN_CLIP] and not config:  # OpenCLIP's own code
        changes |= {"pad": 0} if family == "clip" else {}
        cleans = _cleans(_part(settings[OPEN_CLIP], "model_cfg", "text_cfg"))
        changes |= {"clean": open_clip_canonical} if cleans else {}
    if config.get("model_type") == "blip" and CAPTIONS in (config.get("architectures") or [CAPTIONS]):  # with [DEC]
        changes["start"] = _id(_part(config, "text_config").get("bos_token_id", 30522), "bos_token_id", source)
    if family == "gpt2" and config.get("eos_token_id") is not None:  # GPT-2 has no end of its own
        changes["end"] = _id(config["eos_token_id"], "eos_token_id", source)
    return changes


def _names(value):
    """Returns the names of special tokens: of one, of one with how it is found, or of a list of such."""
    values = value if isinstance(value, list) else [value]
    return [str(each.get("content")) if isinstance(each, dict) else str(each) for each in values]


def _added(folder, settings, source):
    """Returns the words that were added to a vocabulary: a dictionary from ids to how each is found in a text."""
    special = {name for value in _read(folder / SPECIAL).values() for name in _names(value)}
    words = _read(folder / WORDS).items()
    tokens = {
        id: {"content": word, "normalized": word not in special, "special": word in special} for word, id in words
    }
    entries = settings.get(ADDED) or {}
    for id, how in entries.items() if isinstance(entries, dict) else ():
        tokens[int(id) if id.isdecimal() and len(id) < 10 else id] = how
    for id, how in tokens.items():
        how = how if isinstance(how, dict) else {}
        if not isinstance(how.get("content"), str) or not all(type(how.get(name, True)) is bool for name in HOW):
            raise ValueError(
                f"Words that were added to the tokenizer in {str(source)!r} must be texts, each found by True or "
                f"False. Received: {checks.shown(how):.100}"
            )
        _id(id, ADDED, source)
    return tokens


def _id(value, name, source):
    if type(value) is not int or not 0 <= value < MOST_IDS:
        raise ValueError(f"`{name}` must be an id in the settings of {str(source)!r}. Received: {value!r:.100}")
    return value


def _read(path):
    """Returns a dictionary from a JSON file; an empty one if there is no file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(files.read(path))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} must be JSON. Received: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{str(path)!r} must be a JSON object. Received: {type(content).__name__}")
    return content

"""Checks files of tokenizers before libraries read them, and says their errors in one sentence.

These libraries are native code: they wait for a pipe, read a device for ever, end in panics that are no exceptions, and
let a small file say that each letter becomes a million.
"""

import base64
import contextlib
import json
import math
import struct

from keras_vit.text.engines import MOST_IDS, Engine
from keras_vit.utils import checks, files

MOST_GROWTH = 1000  # times as many letters; of published files, whose rules write out ligatures, it is below 50
PANIC = "pyo3_runtime"  # the module of what Rust raises where it has no error: not a subclass of Exception
CHARSMAP = (
    3,
    2,
)  # the fields of sentencepiece's file in which letters are replaced by others: normalizer_spec, charsmap


def check(path):
    """Raises ValueError for a file that a tokenizer must not be read from, or that makes texts far longer.

    Args:
        path: Path of a file of which `read` of a family's row is a reader; its `merges.txt` is checked too.
    """
    for each in (path, path.with_name("merges.txt")):
        if each == path or (path.name == "vocab.json" and each.exists()):
            data = files.read(each)
            growth = 1.0
            if each.name == "tokenizer.json":
                whole = json.loads(data)
                parts = [whole.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")]
                growth = max(map(_growth, parts))
            elif each.suffix == ".model":
                growth = max(map(_longest, _fields(data, CHARSMAP)), default=1.0)
            if growth > MOST_GROWTH:
                raise ValueError(
                    f"its rules must not make a text more than {MOST_GROWTH:,} times as long. Received: {growth:,.0f}"
                )


@contextlib.contextmanager
def said(what):
    """Makes one ValueError of whatever a library raises in the block; `what` is the sentence before its own."""
    try:
        yield
    except (ImportError, FileNotFoundError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != PANIC:  # such as Ctrl-C
            raise
        raise ValueError(f"{what}: {' '.join(str(error).split())[:200]}") from None


def guarded(engine, name):
    """Returns an engine whose errors name its file; raises ValueError if its ids are no rows of a table."""
    if engine.size > MOST_IDS:
        raise ValueError(f"{name} must have ids below {MOST_IDS:,}. Received: {engine.size - 1:,}")

    def pieces(texts):
        with said(f"{name} cannot read {checks.shown(texts):.100}"):
            return engine.pieces(texts)

    def text_of(ids):
        with said(f"{name} cannot write {checks.shown(ids):.100}"):
            return engine.text_of(ids)

    return Engine(pieces, engine.id_of, text_of, engine.size, engine.kept)


def _growth(part):
    """Returns how many times as long a part of `tokenizer.json` makes a text, at most."""
    if not isinstance(part, dict):
        return 1.0
    if part.get("type") == "Sequence":
        inner = next((part[name] for name in ("normalizers", "pretokenizers", "decoders") if name in part), ())
        return math.prod(map(_growth, inner))
    if part.get("type") == "Replace":
        pattern, content = part.get("pattern") or {}, str(part.get("content", ""))
        return max(len(content) / max(len(pattern["String"]), 1) if "String" in pattern else len(content) + 1, 1.0)
    if part.get("type") == "Precompiled":
        return _longest(base64.b64decode(part.get("precompiled_charsmap") or ""))
    return 1.0


def _longest(charsmap):
    """Returns the bytes of the longest text that a map of letters has: a tree, then texts that end with a zero."""
    if len(charsmap) < 4:
        return 1.0
    (tree,) = struct.unpack_from("<I", charsmap)
    return float(max(map(len, charsmap[4 + tree :].split(b"\0")), default=1))


def _fields(data, numbers):
    """Returns the bytes of a field in a message of Protocol Buffers, however often it is there, as a list.

    Args:
        data: The message.
        numbers: Number of the field, after those of the messages around it.

    Raises:
        ValueError: If the data are no such message.
    """
    values, place = [], 0
    while place < len(data):
        key, place = _varint(data, place)
        kind, number = key & 7, key >> 3
        if kind == 0:
            _, place = _varint(data, place)
        elif kind == 2:
            size, place = _varint(data, place)
            values += [data[place : place + size]] if number == numbers[0] else []
            place += size
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        else:
            raise ValueError("it is no file of sentencepiece")
    return values if len(numbers) == 1 else [each for message in values for each in _fields(message, numbers[1:])]


def _varint(data, place):
    value, shift = 0, 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError("it is no file of sentencepiece")
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value, place

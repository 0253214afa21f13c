"""Frozen dataclasses that refuse wrong types and values out of range."""

import dataclasses
import math
import textwrap
import types
from dataclasses import field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import keras
import numpy as np
import typeguard

from keras_vit.utils import checks
from keras_vit.utils.names import composed


class Checked:
    """A dataclass that checks each field against its annotation, and numbers against their range."""

    def __post_init__(self):
        hints = get_type_hints(type(self))
        for item in dataclasses.fields(self):
            value, hint = getattr(self, item.name), hints[item.name]
            array, value = isinstance(value, np.ndarray), checks.plain(value)  # for JSON
            value = tuple(value) if array and isinstance(value, list) else value
            object.__setattr__(self, item.name, value)
            name = f"{type(self).__name__}.{item.name}"
            if not _fits(value, hint):
                raise TypeError(f"{name} must be {_words(hint)}. Received: {checks.shown(value)}")
            if item.metadata.get("names"):
                object.__setattr__(self, item.name, tuple(map(composed, value)))
            low, below, most = item.metadata.get("range", (-math.inf, math.inf, math.inf))
            if isinstance(value, (int, float)) and not (low <= value < below and value <= most):
                end = f" and at most {most}" if most < math.inf else f" and below {below}" if below < math.inf else ""
                raise ValueError(f"{name} must be at least {low}{end}. Received: {checks.shown(value)}")
        for item in dataclasses.fields(self):
            value, switch = getattr(self, item.name), item.metadata.get("only_with")
            if switch and not getattr(self, switch) and value != item.default:
                name = f"{type(self).__name__}.{item.name}"
                rule = item.metadata["rule"] or f"{switch}=True"
                raise ValueError(f"{name} needs {rule}. Received: {item.name}={checks.shown(value)} without")

    def __repr__(self):
        """Python code that recreates it, with a line for each option that differs from its default."""
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        default = {item.name: item.default for item in dataclasses.fields(self)}
        texts = {
            name: _block("{}", value) if isinstance(value, dict) else _code(value) for name, value in values.items()
        }
        lines = [f"{name}={text}" for name, text in texts.items() if values[name] != default[name]]
        return type(self).__name__ + _block("()", lines)


def _code(value):
    """Returns Python code of a value, also of a Keras layer or a tuple of them."""
    if isinstance(value, tuple) and any(isinstance(item, keras.Layer) for item in value):
        return f"({''.join(f'{_code(item)}, ' for item in value).rstrip(' ')})"
    if isinstance(value, keras.Layer):
        return f"keras.saving.deserialize_keras_object({keras.saving.serialize_keras_object(value)!r})"
    return repr(value)


def _block(brackets, lines):
    """Returns lines of code, each followed by a comma, in brackets on lines of their own."""
    lines = [f"{key!r}: {value!r}" for key, value in lines.items()] if isinstance(lines, dict) else lines
    inside = textwrap.indent("".join(f"{line},\n" for line in lines), "    ")
    return f"{brackets[0]}\n{inside}{brackets[1]}" if inside else brackets


ALL = typeguard.CollectionCheckStrategy.ALL_ITEMS


def _fits(value, hint):
    if isinstance(value, bool):  # to Python an int too
        either = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        return bool in either or Any in either
    try:
        typeguard.check_type(value, hint, collection_check_strategy=ALL)
    except typeguard.TypeCheckError:
        return False
    return True


def _words(hint):
    """Returns an annotation as words."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind is Literal:
        return f"one of {', '.join(map(repr, inside))}"
    if kind in (Union, types.UnionType):
        return " or ".join(map(_words, inside))
    if kind is tuple:
        each = [_words(item) for item in inside if item is not Ellipsis]
        return f"a tuple, each {each[0]}" if Ellipsis in inside else f"a tuple of {' and '.join(each)}"
    if kind is dict:
        return "a dictionary"
    return "None" if hint is types.NoneType else getattr(hint, "__name__", str(hint))


def only_with(switch, default, rule=None):
    """Returns a field of an option that another one, `switch`, turns on: without it, it must have its default value.

    Files of options name it only where the switch is on. `rule` says in an error what it needs. `default` may be a
    field too, as from `number`, whose range holds.
    """
    own = default.metadata if isinstance(default, dataclasses.Field) else {}
    default = default.default if isinstance(default, dataclasses.Field) else default
    return field(default=default, metadata={**own, "only_with": switch, "rule": rule})


def applied(options):
    """Returns the options of a `Checked` by name, but those whose switch is off."""
    switches = {item.name: item.metadata.get("only_with") for item in dataclasses.fields(options)}
    on = [name for name, switch in switches.items() if switch is None or getattr(options, switch)]
    return {name: getattr(options, name) for name in on}


def names():
    """Returns a dataclass field of names, none by default, which are kept in Unicode's form NFC."""
    return field(default=(), metadata={"names": True})


def number(default, low=0, below=math.inf, most=math.inf):
    """Returns a field whose numbers must be at least `low`, below `below` and at most `most`."""
    return field(default=default, metadata={"range": (low, below, most)})

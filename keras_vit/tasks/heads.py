"""The option `head` of tasks with several heads: a name, or a dictionary with the head's options."""

import dataclasses
from typing import Any, ClassVar

from keras_vit.utils import checks


def _places(**values):
    """Raises ValueError unless every value is a list of different integers, 0 or more, in their order."""
    for name, value in values.items():
        each = checks.sequence(name, value)
        checks.whole(**{f"{name}[{i}]": place for i, place in enumerate(each)})
        if not each or list(each) != sorted({*each}):
            raise ValueError(f"`{name}` must be different numbers in their order. Received: {checks.shown(value)}")


def _texts(**values):
    """Raises ValueError unless every value is a text, or a list of texts."""
    for name, value in values.items():
        each = [value] if isinstance(value, str) else checks.sequence(name, value)
        if not each or not all(isinstance(text, str) and text.strip() for text in each):
            raise ValueError(f"`{name}` must be a text or several. Received: {checks.shown(value)}")


def _text(**values):
    """Raises ValueError unless every value is a text."""
    for name, value in values.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"`{name}` must be a text. Received: {checks.shown(value)}")


def _by_name(**values):
    """Raises ValueError unless every value is a dictionary from texts to texts."""
    for name, value in values.items():
        if not isinstance(value, dict):
            raise ValueError(f"`{name}` must be a dictionary from names to texts. Received: {checks.shown(value)}")
        _texts(**{name: [*value, *value.values()]})


RANGES = {
    "width": checks.positive,
    "depth": checks.positive,
    "groups": checks.positive,
    "queries": checks.positive,
    "upscales": checks.whole,
    "masked": checks.switch,
    "box_weight": checks.not_negative,
    "num_heads": checks.positive,
    "mlp_dim": checks.positive,
    "refined": checks.switch,
    "blocks": _places,
    "words": _by_name,
    "prompts": _texts,
    "tokens": _text,
}


class WithHead:
    """Mixin for a task with a field `head`, such as `"points"` or `{"kind": "points", "width": 64}`."""

    heads: ClassVar[dict[str, dict[str, Any]]] = {}  # for each kind: its options and their defaults

    def __post_init__(self):
        super().__post_init__()
        name, options = f"{type(self).__name__}.head", self.heads.get(self.head_kind, {})
        if isinstance(self.head, str):
            checks.one_of(name, self.head, tuple(self.heads))
        elif self.head_kind not in self.heads:
            raise ValueError(
                f"{name} must have a kind among {', '.join(self.heads)}. Received: {checks.shown(self.head)}"
            )
        for option, value in self._own().items():
            if option not in options:
                has = f"has the options {', '.join(options)}" if options else "has no options"
                raise ValueError(f"{name} {self.head_kind!r} {has}. Received: {option}={checks.shown(value)}")
            if value is not None or options[option] is not None:
                RANGES[option](**{f"{name}.{option}": value})

    @property
    def head_kind(self) -> str:
        """The name of the head, a key of `heads`."""
        return self.head if isinstance(self.head, str) else str(self.head.get("kind"))

    @property
    def head_options(self) -> dict[str, Any]:
        """All options of the head, defaults included."""
        return {**self.heads[self.head_kind], **self._own()}

    def with_head_option(self, option, value):
        """Returns the task with one option of its head changed to `value`."""
        return dataclasses.replace(self, head={"kind": self.head_kind, **self._own(), option: value})

    def _own(self):
        return {} if isinstance(self.head, str) else {k: v for k, v in self.head.items() if k != "kind"}

"""The option `head` of a task that has several: a word, or a dictionary with the head's own options."""

import dataclasses
from typing import Any, ClassVar

from keras_vit.utils import checks

RANGES = {"width": checks.positive, "depth": checks.positive, "box_weight": checks.not_negative}


class WithHead:
    """Part of a task with a field `head`, such as `"points"` or `{"kind": "points", "width": 64}`."""

    heads: ClassVar[dict[str, dict[str, Any]]] = {}  # by kind: the options and their defaults

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
        """The word."""
        return self.head if isinstance(self.head, str) else str(self.head.get("kind"))

    @property
    def head_options(self) -> dict[str, Any]:
        """All options of the head."""
        return {**self.heads[self.head_kind], **self._own()}

    def with_head_option(self, option, value):
        """Returns the task with another value of an option of its head."""
        return dataclasses.replace(self, head={"kind": self.head_kind, **self._own(), option: value})

    def _own(self):
        return {} if isinstance(self.head, str) else {k: v for k, v in self.head.items() if k != "kind"}

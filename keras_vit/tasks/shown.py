"""What people see of a task's outputs: answers by name, lines and headings, bars, pictures and their colors."""

from typing import ClassVar

import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.utils.images import colored

INPUT = "input of the model"  # a picture that is it
CERTAIN = ("classes", "labels", "words")  # kinds of outputs whose answers are probabilities where all are from 0 to 1


class Shown:
    """Part of a task: what `predict`, `explain`, `report` and `demo` show of an output."""

    classes: tuple[str, ...]
    gives: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]

    @property
    def draws(self) -> bool:
        """Whether `picture` is the task's own, which draws the output."""
        return type(self).picture is not Shown.picture

    def answer(self, output: np.ndarray) -> dict[str, float]:
        """Returns what the output says of one image, by name, the most important first.

        By default, the largest outputs. Where all are from 0 to 1, they are shown as per cent.
        """
        values = np.ravel(output).tolist()
        names = distinct(self.classes) or tuple(map(str, range(len(values))))
        return dict(sorted(zip(names, values), key=lambda pair: -pair[1]))

    def listed(self, output: np.ndarray, top: int) -> list[tuple[str, float]]:
        """Returns the part of an answer that `predict` gives: its first pairs, `top` at most."""
        return [*self.answer(output).items()][:top]

    def marked(self, answer: dict[str, float]) -> dict[str, float]:
        """Returns an answer, or its first pairs, for people to read: with a mark on the names that hold, if any do."""
        return answer

    def said(self, answer: dict[str, float]) -> str:
        """Returns an answer, or its first pairs, as a line for people to read, with units where it has any."""
        return words(self.marked(answer).items(), self.gives in CERTAIN)

    def heading(self, output: np.ndarray) -> str:
        """Returns what the output says of one image, in a few words; `""` where it says nothing by itself.

        The likeliest name of probabilities, else what `listed` gives of three.
        """
        if not (bars := self.bars(output)):
            return self.said(dict(self.listed(output, 3)))
        name, share = next(iter(bars.items()))
        return f"{name} ({share:.0%})"

    def bars(self, output: np.ndarray) -> dict[str, float]:
        """Returns the probabilities in an answer, for bars; an empty dictionary if it has other numbers."""
        answer = self.answer(output)
        return self.marked(answer) if self.gives in CERTAIN and are_shares(answer.values()) else {}

    def legend(self) -> dict[str, tuple[int, int, int]]:
        """Returns the colors in `picture` by what they mean, 0..255, if it draws any."""
        return {}

    def shows(self, output: np.ndarray) -> str:
        """Returns what `picture` draws of an image without targets, in words."""
        parts = self.parts[:-1] if self.draws else ()
        return f"from left to right: {', '.join(parts)}" if len(parts) > 1 else "".join(parts) or INPUT

    def caption(self, output: np.ndarray, example: dict) -> str:
        """Returns a line about one image: what the output says, and what is true.

        Args:
            output: The model's output for it.
            example: Its targets, as in `Tally.add`.
        """
        return self.said(dict([*self.answer(output).items()][:3]))

    def picture(self, image: np.ndarray, output: np.ndarray, example: dict | None = None) -> np.ndarray:
        """Returns an image, with the output drawn where a task defines it, uint8 `(rows, columns, 3)`.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: The model's output for it.
            example: Its targets, as in `Tally.add`, to draw too.
        """
        return np.clip(np.rint(colored(image)), 0, 255).astype("uint8")


def are_shares(values):
    """Returns whether the values of an answer can be shown as per cent."""
    return all(0 <= value <= 1 for value in values)


def words(answer, certain=True):
    """Returns the pairs of an answer, `(name, value)`, as a line; per cent only where they are `certain`."""
    answer = [*answer]
    form = percent if certain and are_shares(value for _, value in answer) else "{:.4g}".format
    return ", ".join(f"{name} {value if isinstance(value, int) else form(value)}" for name, value in answer)


def percent(share):
    """Returns a share as per cent; what is near none or all is not called none or all."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "below 0.1%" if share < 0.5 else "above 99.9%"
    return f"{share:.1%}"

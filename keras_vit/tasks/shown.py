"""A task's outputs for people: answers by name, lines and headings, bars, pictures and their colors."""

from typing import ClassVar

import numpy as np

from keras_vit.models.outputs import distinct
from keras_vit.utils.images import colored

INPUT = "input of the model"  # caption of a picture that is only the input
CERTAIN = ("classes", "labels", "words")  # kinds whose answers are probabilities, if all are from 0 to 1


class Shown:
    """Part of a task: how `predict`, `explain`, `report` and `demo` show an output.

    An `output` is the model's output for one image, an array without the batch axis: `(classes,)` of a classifier.
    """

    classes: tuple[str, ...]
    gives: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ()  # names of the parts of `picture` with an example, left to right

    @property
    def draws(self) -> bool:
        """Whether the task has a `picture` of its own, which draws the output."""
        return type(self).picture is not Shown.picture

    def answer(self, output: np.ndarray) -> dict[str, float]:
        """Returns the answer for one image: values by name, the most important first.

        By default, all outputs, the largest first. If all are from 0 to 1, they are shown as percent.

        Args:
            output: The output for the image, without the batch axis; by default, a number for each class.
        """
        values = np.ravel(output).tolist()
        names = distinct(self.classes) or tuple(map(str, range(len(values))))
        return dict(sorted(zip(names, values), key=lambda pair: -pair[1]))

    def listed(self, output: np.ndarray, top: int) -> list[tuple[str, float]]:
        """Returns the pairs of an answer that `predict` gives, as `(name, value)`.

        Args:
            output: As in `answer`.
            top: Largest number of pairs.
        """
        return [*self.answer(output).items()][:top]

    def marked(self, answer: dict[str, float]) -> dict[str, float]:
        """Returns an answer with a mark on the names that reach their threshold, if the task has thresholds.

        Args:
            answer: An answer, as `answer` returns it, or its first pairs.
        """
        return answer

    def said(self, answer: dict[str, float]) -> str:
        """Returns an answer as one line, with units where it has any.

        Args:
            answer: An answer, as `answer` returns it, or its first pairs.
        """
        return words(self.marked(answer).items(), self.gives in CERTAIN)

    def heading(self, output: np.ndarray) -> str:
        """Returns the answer for one image in a few words; `""` if the answer is empty.

        Of probabilities, the likeliest name; else the first three pairs of `listed`.

        Args:
            output: As in `answer`.
        """
        if not (bars := self.bars(output)):
            return self.said(dict(self.listed(output, 3)))
        name, share = next(iter(bars.items()))
        return f"{name} ({share:.0%})"

    def bars(self, output: np.ndarray) -> dict[str, float]:
        """Returns the probabilities in an answer, 0..1, by name; an empty dictionary if it has other numbers.

        Args:
            output: As in `answer`.
        """
        answer = self.answer(output)
        return self.marked(answer) if self.gives in CERTAIN and are_shares(answer.values()) else {}

    def legend(self) -> dict[str, tuple[int, int, int]]:
        """Returns the colors in `picture` by their meaning: red, green and blue, 0..255."""
        return {}

    def shows(self, output: np.ndarray) -> str:
        """Returns a description of `picture` for an image without targets.

        Args:
            output: As in `answer`.
        """
        parts = self.parts[:-1] if self.draws else ()
        return f"from left to right: {', '.join(parts)}" if len(parts) > 1 else "".join(parts) or INPUT

    def caption(self, output: np.ndarray, example: dict) -> str:
        """Returns a line about one image: the prediction and, in most tasks, the label.

        Args:
            output: As in `answer`.
            example: The image and its targets by name, as in `Tally.add`, without the batch axis.
        """
        return self.said(dict([*self.answer(output).items()][:3]))

    def picture(self, image: np.ndarray, output: np.ndarray, example: dict | None = None) -> np.ndarray:
        """Returns a picture of one image, uint8 `(rows, columns, 3)`, with the output if the task draws it.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: As in `answer`.
            example: Targets by name, as in `caption`, to draw the true ones too; or `None`.
        """
        return np.clip(np.rint(colored(image)), 0, 255).astype("uint8")


def are_shares(values):
    """Returns whether all values of an answer are from 0 to 1, so that they can be shown as percent."""
    return all(0 <= value <= 1 for value in values)


def words(answer, certain=True):
    """Returns the pairs of an answer, `(name, value)`, as a line; as percent only if `certain` is true."""
    answer = [*answer]
    form = percent if certain and are_shares(value for _, value in answer) else "{:.4g}".format
    return ", ".join(f"{name} {value if isinstance(value, int) else form(value)}" for name, value in answer)


def percent(share):
    """Returns a share, 0..1, as percent. A share close to 0 or 1 is not rounded to it."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return "below 0.1%" if share < 0.5 else "above 99.9%"
    return f"{share:.1%}"

"""What a recipe is: a task, its data, model, augmentation and optimization, and what a run of it reached."""

from dataclasses import dataclass
from typing import Any, Literal

from keras_vit.checked import Checked, number
from keras_vit.options import Augment, Data, Optim
from keras_vit.task import Task
from keras_vit.tasks import Classify


@dataclass(frozen=True, repr=False)
class Weights(Checked):
    """Trained weights that ship with the package, in `saved_models`."""

    file: str
    sha256: str


@dataclass(frozen=True, repr=False)
class Reached(Checked):
    """What a run of the recipe reached: accuracy on the test split, or other scores by name."""

    test_accuracy: float | None = number(None, most=1)
    scores: tuple[tuple[str, float], ...] = ()  # such as (("mean IoU on val", 0.92),)
    minutes: float = number(0.0)
    device: str = ""
    seeds: tuple[int, ...] = (0,)
    commit: str = ""
    note: str = ""

    @property
    def headline(self):
        """The name of the first score, and its value."""
        return ("test accuracy", self.test_accuracy) if self.test_accuracy is not None else self.scores[0]


@dataclass(frozen=True, repr=False)
class Recipe(Checked):
    """A whole experiment: task, data, model, augmentation and optimization.

    `model` is the arguments of `keras_vit.vit`. `task` says what the model is trained for; see `keras_vit.Task`.
    """

    name: str
    model: dict[str, Any]
    task: Task = Classify()
    data: Data = Data()
    augment: Augment = Augment()
    optim: Optim = Optim()
    weights: Weights | None = None
    reached: Reached | None = None
    distribute: Literal["data", "model"] | None = None  # over all devices: batches, or batches and weights
    model_parallel: int = number(1, low=1)  # devices per replica of the model, for "model"
    seed: int = number(0, below=2**31)

"""What a model is trained for. One subclass knows what a target is; nothing else does."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import keras
import numpy as np

from keras_vit.models.kinds import KINDS
from keras_vit.tasks import refusals
from keras_vit.tasks.shown import Shown
from keras_vit.tasks.tally import Tally
from keras_vit.utils import checks
from keras_vit.utils.checked import Checked, names
from keras_vit.utils.metrics import titled

TASKS: dict[str, type["Task"]] = {}  # by the names of their classes, those of recipe files included


class UnknownTaskError(ValueError):
    """A run names a task whose class is not defined."""


@dataclass(frozen=True, repr=False)
class Task(Shown, Checked):
    """What a model is trained for: the only place that knows what a target is.

    A subclass is a frozen dataclass; see `docs/tasks/own.md`. `model`, `compiled`, `batch` and `tally` must be defined.

    Args:
        classes: Names of the classes; by default those of the data, if it has any.
    """

    inputs: ClassVar[tuple[str, ...]] = ("images",)  # of its model, and what `targets` has of them
    targets: ClassVar[tuple[str, ...]] = ()  # what the data must have besides images; keys of `data.targets.KINDS`
    extras: ClassVar[tuple[str, ...]] = ()  # what is read too where the data have it
    whole: ClassVar[bool] = False  # images are scored and predicted whole, at their own size, by `tiles.tiled`
    best: ClassVar[tuple[str, str]] = ("val_loss", "min")  # column of history.csv that `best.keras` follows
    gives: ClassVar[str] = "classes"  # what its model returns; a row of `models.kinds.KINDS`
    parts: ClassVar[tuple[str, ...]] = ()  # of its picture with an example, from left to right, in words
    arguments: ClassVar[tuple[str, ...]] = ()  # of its model, besides those of `vit`
    clips: ClassVar[Any] = None  # how frames are sampled, a `data.clip_source.Sampling`, where inputs are clips
    columns: ClassVar[dict[str, Any]] = {}  # of a table, for its targets, where `Data.columns` does not say them
    compares: ClassVar[bool] = False  # whether the loss of an image depends on the others of its batch
    refuses: ClassVar[dict[str, str]] = {}  # settings by dotted names that must be off, and why; see `tasks.refusals`
    measured: ClassVar[tuple[str, ...]] = ()  # settings of `tally` alone, which may change when a run is resumed

    classes: tuple[str, ...] = names()

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        namesake = TASKS.get(cls.__name__)
        if (
            namesake is not None
            and namesake.__module__.split(".")[0] == "keras_vit"
            and namesake.__module__ != cls.__module__
        ):
            raise ValueError(f"A task must have a name of its own. Received: {cls.__name__!r}, a task of keras_vit")
        if isinstance(cls.gives, str):  # else it follows from an option
            checks.one_of("gives", cls.gives, KINDS)
        if "result" in vars(cls) and cls.gives == "classes":
            raise ValueError(f"A task with `result` must say what it `gives`. Received: {cls.__name__!r} without")
        old = [name for name in ("mask", "image", "objects") if inspect.isfunction(vars(cls).get(name))]
        if old:
            raise ValueError(f"`{old[0]}` of a task is `result(output, size)`. Received: {cls.__name__!r} with it")
        TASKS[cls.__name__] = cls

    def check(self, recipe=None) -> None:
        """Raises ValueError if settings of the recipe contradict the task, or those of the task each other.

        Args:
            recipe: A `Recipe`; `None` once the task has its classes, and its own settings are looked at again.
        """
        refusals.check(self, recipe)

    def on(self, source, arguments: dict | None = None) -> "Task":
        """Returns the task with the class names of some data: called once for each split, before anything else is done.

        Args:
            source: A `data.memory.Source`.
            arguments: Arguments of the model that will be trained on it, if known.

        Raises:
            ValueError: If the data do not fit the task or the model.
        """
        return self

    def read(self, source, training: bool = False):
        """Returns a source with what the model takes in place of what the data have, such as ids in place of texts.

        Args:
            source: As in `on`, which was called before.
            training: Whether it is to train on.
        """
        return source

    def settled(self, source) -> dict[str, Any]:
        """Returns arguments of the model that follow from some data, for a recipe that does not set them."""
        return {}

    def of_model(self, model: keras.Model) -> "Task":
        """Returns the task with what a trained model's file says of it, such as the thresholds in its metadata."""
        return self

    def fits(self, model) -> bool:
        """Returns whether the outputs of a model that was read from a file are of the task's classes."""
        return True

    def classes_for(self, arguments: dict) -> tuple[str, ...]:
        """Returns the names of the classes for data that have none, such as arrays."""
        return self.classes

    def data_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Returns the shape of the images that the data must bring, if `prepare` makes others of them for the model.

        Args:
            shape: `(height, width, channels)` of the images that the model takes.
        """
        return shape

    def model(self, **arguments) -> keras.Model:
        """Builds the model that is kept: images in, or a dictionary of the task's `inputs`; one tensor out.

        Args:
            **arguments: `model` of the recipe, as `vit` takes it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `model`.")

    def vit(self, **arguments) -> keras.Model:
        """Builds the Vision Transformer that a recipe's `model` describes.

        Args:
            **arguments: Of `keras_vit.vit`; and `weights`, the name of published weights, of a recipe whose weights
                ship with the package, a path, a run directory or an address, with options of `from_checkpoint`.
        """
        from keras_vit.checkpoints.pretrained import from_arguments

        return from_arguments(**arguments)

    def teacher_for(self, model: keras.Model, given: keras.Model | None = None) -> keras.Model | None:
        """Returns the model to distill from, or `None`; `given` is the caller's."""
        if given is not None:
            raise ValueError(f"{type(self).__name__} takes no teacher. Received: {given.name!r}")
        return None

    def learner(self, model: keras.Model, teacher: keras.Model | None = None) -> keras.Model:
        """Returns the model that is fitted: the model itself, or one around it."""
        return model

    def compiled(self, source) -> dict[str, Any]:
        """Returns the arguments `loss` and `weighted_metrics` of Keras's `compile`, for training on `source`."""
        raise NotImplementedError(f"{type(self).__name__} must define `compiled`.")

    def prepare(self, examples: dict, seed) -> dict:
        """Returns examples with targets that the data do not bring, such as the angle by which images were rotated.

        It runs in `tf.data`, in training before `batch` and in evaluation before the model: `Tally.add` gets what it
        returns. By default nothing changes.

        Args:
            examples, seed: As in `batch`.
        """
        return examples

    def batch(self, examples: dict, augment, seed) -> tuple:
        """Returns `(x, y)` for Keras's `fit`: the last step of the `tf.data` pipeline.

        It runs in `tf.data`, whatever Keras's backend: use TensorFlow's functions.

        Args:
            examples: Dictionary of tensors: `"images"`, float32 `(batch, height, width, channels)`, 0..255, and the
                targets, changed as their images were.
            augment: The recipe's `Augment`, or `None` at evaluation.
            seed: Integer tensor, `(2,)`, from which all randomness must come, as in
                `tf.random.stateless_uniform(shape, seed)`. Each batch has its own, in evaluation too.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `batch`.")

    def callbacks(self, run) -> list[keras.callbacks.Callback]:
        """Returns Keras callbacks for training; what they add to an epoch's logs becomes a column of `history.csv`.

        Args:
            run: The `training.loop.Run`, with its `model`, `outputs(images)`, `task`, `validation` and
                `validation_batches()`.
        """
        return []

    def finish(self, run) -> None:
        """Writes what is only known after training into the metadata of the model, before its file is written.

        Args:
            run: As in `callbacks`.
        """

    def tally(self, keep: bool = False) -> Tally:
        """Returns a new `Tally`; with `keep` it keeps what its figures need, so that its memory grows."""
        raise NotImplementedError(f"{type(self).__name__} must define `tally`.")

    def titled(self, score: str) -> tuple[str, str]:
        """Returns the words for a score of `tally`, and the unit of its values, `""` for none."""
        return titled(score)

    def answering(self, model: keras.Model) -> Callable:
        """Returns what makes of inputs what is scored and answered: the model itself, or a function.

        Args:
            model: The kept model, whose weights are those of each call.
        """
        return model

    def viewer(self, learner: keras.Model) -> Callable | None:
        """Returns the function from images to what `answer`, `caption` and `picture` take, if not the model's outputs.

        Args:
            learner: What was fitted, with its own weights, such as a decoder's.
        """
        return None

    def result(self, output: np.ndarray, size: tuple[int, int] | None = None) -> Any:
        """Returns what the output is of one image, for files and tables of `predict`; of other kinds it has none.

        | `gives` | returns |
        |---|---|
        | `"masks"` | class indices, uint8 `(rows, columns)`, at the image's own size |
        | `"image"` | uint8 `(rows, columns, channels)` |
        | `"boxes"` | objects: dictionaries, as entries of COCO's results, in pixels of the image; see `Detect` |
        | `"depth"` | float32 `(rows, columns)`, at the image's own size |

        Args:
            output: The model's output for the image, without the axis of the batch.
            size: `(rows, columns)` of the image before it was resized for the model; `None` of a `whole` task.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `result`.")

"""The base class of all tasks. Only a task knows what a target is."""

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

TASKS: dict[str, type["Task"]] = {}  # by class name, tasks of recipe files included


class UnknownTaskError(ValueError):
    """A run names a task whose class is not defined."""


@dataclass(frozen=True, repr=False)
class Task(Shown, Checked):
    """Base class of a task: what a model is trained for. Only the task knows what a target is.

    A subclass is a frozen dataclass; see `docs/tasks/own.md`. `model`, `compiled`, `batch` and `tally` must be defined.

    Args:
        classes: Names of the classes; by default the class names of the data, if it has any.
    """

    inputs: ClassVar[tuple[str, ...]] = ("images",)  # names of the model's inputs
    targets: ClassVar[tuple[str, ...]] = ()  # targets that the data must have; keys of `data.targets.KINDS`
    extras: ClassVar[tuple[str, ...]] = ()  # more targets, read if the data have them
    whole: ClassVar[bool] = False  # whether images are scored and predicted at full size, by `tiles.tiled`
    beside: ClassVar[Callable | None] = None  # (size): what other inputs a tile has, as `tiles.tiled` takes it
    best: ClassVar[tuple[str, str]] = ("val_loss", "min")  # column of history.csv that `best.keras` follows
    gives: ClassVar[str] = "classes"  # kind of the model's output; a key of `models.kinds.KINDS`
    arguments: ClassVar[tuple[str, ...]] = ()  # arguments of the model, besides those of `vit`
    any_range: ClassVar[bool] = False  # whether images may be numbers of any range: TIFF, `Data.value_range`
    of_texts: ClassVar[bool] = False  # whether data are texts without images, whose ids are `"images"` of examples
    clips: ClassVar[Any] = None  # for clips: a `data.clip_source.Sampling`
    columns: ClassVar[dict[str, Any]] = {}  # columns of a table by target, where `Data.columns` does not name them
    compares: ClassVar[bool] = False  # whether the loss of an image depends on the other images of its batch
    refuses: ClassVar[dict[str, str]] = {}  # dotted names of settings that must be off, and why; see `tasks.refusals`
    measured: ClassVar[tuple[str, ...]] = ()  # settings of `tally` only; they may change when a run is resumed

    classes: tuple[str, ...] = names()

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        other = getattr(TASKS.get(cls.__name__), "__module__", "")  # of a namesake
        if other.split(".")[0] == "keras_vit" and other != cls.__module__:
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
        """Raises ValueError if the task's settings contradict the recipe, or each other.

        Args:
            recipe: A `Recipe`; `None` to check the task's own settings again, once its classes are known.
        """
        refusals.check(self, recipe)

    def on(self, source, arguments: dict | None = None) -> "Task":
        """Returns the task with the class names of a split. It is called once for each split, before all else.

        Args:
            source: The split, a `data.memory.Source`.
            arguments: Arguments of the model that will be trained on the split, if known.

        Raises:
            ValueError: If the data do not match the task or the model.
        """
        return self

    def read(self, source, training: bool = False):
        """Returns a split with targets as the model takes them, such as ids in place of texts.

        Args:
            source: The split, a `data.memory.Source`; `on` was called with it before.
            training: Whether the split is for training.
        """
        return source

    def settled(self, source) -> dict[str, Any]:
        """Returns model arguments that follow from the data, such as `{"num_classes": 10}`; a recipe's own win.

        Args:
            source: The training split, a `data.memory.Source`.
        """
        return {}

    def of_model(self, model: keras.Model) -> "Task":
        """Returns the task with the settings in a trained model's metadata, such as thresholds.

        Args:
            model: A trained Keras model. Only its metadata and layers are read.
        """
        return self

    def fits(self, model) -> bool:
        """Returns whether the output shape of a saved model matches the task's classes.

        Args:
            model: A Keras model from a file; a classifier's `output_shape` is `(None, classes)`.
        """
        return True

    def classes_for(self, arguments: dict) -> tuple[str, ...]:
        """Returns the class names for data without class names, such as arrays.

        Args:
            arguments: Arguments of the model, with `num_classes`, an integer or `None`.
        """
        return self.classes

    def data_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Returns the `(height, width, channels)` of images before `prepare`, which may change the shape.

        Args:
            shape: `(height, width, channels)` of the images that the model takes.
        """
        return shape

    def model(self, **arguments) -> keras.Model:
        """Builds the model that is saved: images, 0..255, or a dictionary by `inputs`, to one tensor, `(batch, ...)`.

        Args:
            **arguments: `model` of the recipe, as `vit` takes it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `model`.")

    def vit(self, **arguments) -> keras.Model:
        """Builds the Vision Transformer that a recipe's `model` describes.

        Args:
            **arguments: Arguments of `keras_vit.vit`. Also `weights`, with options of `from_checkpoint`: the name of
                published weights, the name of a recipe whose weights ship with the package, a path, a run directory or
                an address.

        Returns:
            Model from images, `(batch, height, width, channels)`, 0..255, to logits, `(batch, num_classes)`.
        """
        from keras_vit.checkpoints.pretrained import from_arguments

        return from_arguments(**arguments)

    def teacher_for(self, model: keras.Model, given: keras.Model | None = None) -> keras.Model | None:
        """Returns the model to distill from, or `None`.

        Args:
            model: The student: the model that `model` built.
            given: The caller's teacher, which takes the place of the task's own; `None` without one.
        """
        if given is not None:
            raise ValueError(f"{type(self).__name__} takes no teacher. Received: {given.name!r}")
        return None

    def learner(self, model: keras.Model, teacher: keras.Model | None = None) -> keras.Model:
        """Returns the model that is fitted: the saved model itself, or a model around it.

        Args:
            model: The model that `model` built, frozen and with LoRA where the recipe asks for it.
            teacher: The model that `teacher_for` returned, or `None`.

        Returns:
            Keras model that takes the `x` of `batch`. It returns the `y_pred` of the loss, `(batch, ...)`.
        """
        return model

    def compiled(self, source) -> dict[str, Any]:
        """Returns the arguments `loss` and `weighted_metrics` of Keras's `compile`.

        They take `y_true`, the `y` of `batch`, and `y_pred`, the learner's output, both `(batch, ...)`.

        Args:
            source: The training split, as `read` returns it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `compiled`.")

    def prepare(self, examples: dict, seed) -> dict:
        """Returns examples with targets that the data do not have, such as the angle by which images were rotated.

        It runs in `tf.data`, before `batch` or the model; `Tally.add` takes the same examples. By default none changes.

        Args:
            examples: As in `batch`, with images of the shape that `data_shape` returns.
            seed: Integer tensor, `(2,)`, as in `batch`.

        Returns:
            Dictionary of tensors, `(batch, ...)`, with `"images"` as the model takes them.
        """
        return examples

    def batch(self, examples: dict, augment, seed) -> tuple:
        """Returns `(x, y)` for Keras's `fit`: the last step of the `tf.data` pipeline.

        It runs in `tf.data`, whatever Keras's backend: use TensorFlow's functions.

        Args:
            examples: Dictionary of tensors: `"images"`, float32 `(batch, height, width, channels)`, 0..255, and the
                targets, `(batch, ...)`, with the same changes of place as their images.
            augment: The recipe's `Augment`, or `None` at evaluation.
            seed: Integer tensor, `(2,)`, from which all randomness must come, as in
                `tf.random.stateless_uniform(shape, seed)`. Each batch has its own, in evaluation too.

        Returns:
            `x`, images or a dictionary by the names of the learner's inputs, and `y`, a tensor `(batch, ...)`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `batch`.")

    def callbacks(self, run) -> list[keras.callbacks.Callback]:
        """Returns Keras callbacks for training. Whatever they add to an epoch's logs is a column of `history.csv`.

        Args:
            run: The `training.loop.Run`, with its `model`, `task`, `validation`, `validation_batches()` and
                `outputs(inputs)`, an array `(batch, ...)` for the images, or the dictionary, that the model takes.
        """
        return []

    def finish(self, run) -> None:
        """Writes results of training, such as thresholds, into the model's metadata, before the model is saved.

        Args:
            run: The `training.loop.Run`, as in `callbacks`.
        """

    def tally(self, keep: bool = False) -> Tally:
        """Returns a new `Tally`, which scores outputs batch by batch.

        Args:
            keep: Whether it keeps the data that its figures need; its memory then grows with the images.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `tally`.")

    def titled(self, score: str) -> tuple[str, str]:
        """Returns the title of a score of `tally`, and the unit of its values, `""` without a unit.

        Args:
            score: Name of the score, as `Tally.result` has it.
        """
        return titled(score)

    def answering(self, model: keras.Model) -> Callable:
        """Returns the function from inputs to the outputs that are scored and shown: by default, the model itself.

        Args:
            model: The saved model. The function uses the model's weights at each call.

        Returns:
            The model, or a function. Either takes images, float32 `(batch, height, width, channels)`, 0..255, or a
            dictionary of arrays by the names in `inputs`. It returns an array, `(batch, ...)`: a row for each `output`
            of `Tally.add` and `answer`.
        """
        return model

    def viewer(self, learner: keras.Model) -> Callable | None:
        """Returns the function from images to the `output` of `answer`, `caption` and `picture`.

        Args:
            learner: The model that was fitted, as `learner` returns it, such as one with a decoder.

        Returns:
            Function from images, float32 `(batch, height, width, channels)`, 0..255, to an array, `(batch, ...)`.
            `None` if the three take the outputs of `answering`.
        """
        return None

    def result(self, output: np.ndarray, size: tuple[int, int] | None = None) -> Any:
        """Returns the prediction for one image as `predict` writes it to files and tables. Other kinds have no result.

        | `gives` | returns |
        |---|---|
        | `"masks"` | class indices, uint8 `(rows, columns)`, at the image's own size |
        | `"label_masks"` | 1 where something is found and 0 elsewhere, uint8 `(rows, columns)`, at that size |
        | `"image"` | uint8 `(rows, columns, channels)` |
        | `"boxes"` | list of dictionaries, one for each object, as in COCO's results, in pixels of the image |
        | `"segments"` | ids, int32 `(rows, columns)`, -1 for none; list of `"id"`, `"class"`, `"category"`, `"score"` |
        | `"instances"` | the same |
        | `"depth"` | float32 `(rows, columns)`, at the image's own size |

        Args:
            output: The model's output for the image, without the batch axis.
            size: `(rows, columns)` of the image before it was resized for the model; `None` of a `whole` task.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `result`.")

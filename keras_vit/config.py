"""What a recipe is: frozen dataclasses that refuse unknown words and wrong types."""

import ast
import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

import typeguard

from keras_vit import checks


class _Checked:
    """Checks every field against its annotation, and numbers against the range in its metadata."""

    def __post_init__(self):
        hints = get_type_hints(type(self))
        for item in dataclasses.fields(self):
            value, hint = getattr(self, item.name), hints[item.name]
            name = f"{type(self).__name__}.{item.name}"
            if not _fits(value, hint):
                wanted = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
                raise TypeError(f"{name} is {wanted}. Received: {value!r}")
            low, below = item.metadata.get("range", (None, None))
            if low is not None and value is not None and not (low <= value < below):
                raise ValueError(f"{name} is at least {low} and below {below}. Received: {value!r}")


def _fits(value, hint):
    if isinstance(value, bool):  # to Python an int too
        return hint in (bool, Any)
    try:
        typeguard.check_type(value, hint)
    except typeguard.TypeCheckError:
        return False
    return True


def _number(default, low=0, below=math.inf):
    return field(default=default, metadata={"range": (low, below)})


@dataclass(frozen=True)
class Data(_Checked):
    """Where images come from.

    `source` is `"digits"` (scikit-learn's, no network), `"tfds:NAME"` (tensorflow-datasets) or
    `"folder:PATH"` (class folders). A split is a name and, if it is cut, whole percents: `"train[:90%]"`;
    tensorflow-datasets takes all that it knows.
    """

    source: str = "digits"
    train: str = "all[:70%]"
    validation: str = "all[70%:80%]"
    test: str = "all[80%:]"
    batch_size: int = _number(128, low=1)
    limit: int | None = _number(None, low=1)  # at most so many images of each split
    bad_images: Literal["raise", "skip"] = "raise"  # unreadable files of a folder: an error, or left out and listed


@dataclass(frozen=True)
class Augment(_Checked):
    """Random changes to training images, drawn anew for each; 0 turns one off."""

    rotation: float = _number(0.0, below=180)  # largest angle, degrees
    scale: float = _number(0.0, below=1)  # largest relative change of size
    shear: float = _number(0.0, below=1)  # largest horizontal shift of a row, relative to its distance from the centre
    translation: float = _number(0.0, below=1)  # largest shift, as a share of the side
    flip: bool = False  # left to right, half of the images
    erase: float = _number(0.0, below=1)  # probability of one black rectangle of 2 to 20 % of the area


@dataclass(frozen=True)
class Optim(_Checked):
    """AdamW with decay on kernels only; warm-up, then a cosine to zero."""

    epochs: int = _number(50, low=1)
    learning_rate: float = _number(1e-3)
    weight_decay: float = _number(0.05)  # as in Keras and PyTorch: multiplied by the learning rate
    warmup_epochs: float = _number(1.0)
    clip_norm: float | None = _number(1.0)  # of the whole gradient
    label_smoothing: float = _number(0.0, below=1)


@dataclass(frozen=True)
class Weights(_Checked):
    """Trained weights that ship with the package, in `saved_models`."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Reached(_Checked):
    """What a real run of the recipe reached."""

    test_accuracy: float = _number(0.0, below=1.0001)
    minutes: float = _number(0.0)
    device: str = ""
    seeds: tuple[int, ...] = (0,)
    commit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Recipe(_Checked):
    """A whole experiment. `model` holds the arguments of `keras_vit.vit`."""

    name: str
    model: dict[str, Any]
    data: Data = Data()
    augment: Augment = Augment()
    optim: Optim = Optim()
    weights: Weights | None = None
    reached: Reached | None = None
    seed: int = _number(0, below=2**31)


PARTS = {"data": Data, "augment": Augment, "optim": Optim, "weights": Weights, "reached": Reached}


def override(recipe, changes):
    """Returns the recipe with some values changed, and without what it `reached` before.

    Args:
        recipe: A `Recipe`.
        changes: Dictionary from dotted names to values, such as `{"optim.epochs": 3, "model.width": 96}`.

    Raises:
        ValueError: For an unknown name (with those spelled like it), or a value outside its range.
        TypeError: For a value of the wrong type.
    """
    for name, value in changes.items():
        part, _, key = name.partition(".")
        if part == "model" and key:
            recipe = dataclasses.replace(recipe, model={**recipe.model, key: value})
        elif part in ("data", "augment", "optim") and key in {f.name for f in dataclasses.fields(PARTS[part])}:
            recipe = dataclasses.replace(recipe, **{part: dataclasses.replace(getattr(recipe, part), **{key: value})})
        elif name in ("seed", "name"):
            recipe = dataclasses.replace(recipe, **{name: value})
        else:
            raise ValueError(f"A recipe has no {name!r}. {checks.near(name, names(recipe))}")
    return dataclasses.replace(recipe, reached=None) if changes else recipe


def names(recipe):
    """Returns every dotted name that `override` knows, those of the model that the recipe sets included."""
    parts = [f"{part}.{f.name}" for part in ("data", "augment", "optim") for f in dataclasses.fields(PARTS[part])]
    return ["seed", *parts, *(f"model.{key}" for key in recipe.model)]


def parse(words):
    """Turns words such as `"optim.epochs=3"` into the dictionary that `override` takes.

    Values are read as Python writes them (`3`, `1e-3`, `True`, `(28, 28)`, `None`), anything else as text.

    Raises:
        ValueError: For a word without `=`.
    """
    changes = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"A change is written name=value, such as optim.epochs=3. Received: {word!r}")
        try:
            changes[name] = ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
        except (ValueError, SyntaxError, TypeError):
            changes[name] = text
    return changes


def smoke(recipe):
    """Returns the recipe cut to two steps of eight images, to see that it runs."""
    return override(recipe, {"optim.epochs": 1, "optim.warmup_epochs": 0, "data.batch_size": 8, "data.limit": 16})


def to_dict(recipe):
    """Returns the recipe as nested dictionaries, for JSON."""
    return dataclasses.asdict(recipe)


def from_dict(values):
    """Returns the recipe that `to_dict`, or JSON made of it, holds."""
    values = dict(values)
    for part, kind in PARTS.items():
        if values.get(part) is not None:
            fields = dict(values[part])
            fields.update({k: tuple(v) for k, v in fields.items() if isinstance(v, list)})
            values[part] = kind(**fields)
    return Recipe(**values)

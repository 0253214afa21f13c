"""What a recipe is: frozen dataclasses that refuse unknown words and wrong types."""

import ast
import dataclasses
import math
import textwrap
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

import keras
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
            low, below, most = item.metadata.get("range", (-math.inf, math.inf, math.inf))
            if isinstance(value, (int, float)) and not (low <= value < below and value <= most):
                end = f"at most {most}" if most < math.inf else f"below {below}"
                raise ValueError(f"{name} is at least {low} and {end}. Received: {value!r}")

    def __repr__(self):
        """Python that makes it again: a line for each setting that differs from its default."""
        given = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        default = {item.name: item.default for item in dataclasses.fields(self)}
        shown = {name: _block("{}", value) if isinstance(value, dict) else repr(value) for name, value in given.items()}
        lines = [f"{name}={text}" for name, text in shown.items() if given[name] != default[name]]
        return type(self).__name__ + _block("()", lines)


def _block(brackets, lines):
    """Returns lines of code, each followed by a comma, in brackets of their own lines."""
    lines = [f"{key!r}: {value!r}" for key, value in lines.items()] if isinstance(lines, dict) else lines
    inside = textwrap.indent("".join(f"{line},\n" for line in lines), "    ")
    return f"{brackets[0]}\n{inside}{brackets[1]}" if inside else brackets


def _fits(value, hint):
    if isinstance(value, bool):  # to Python an int too
        return hint in (bool, Any)
    try:
        typeguard.check_type(value, hint)
    except typeguard.TypeCheckError:
        return False
    return True


def _number(default, low=0, below=math.inf, most=math.inf):
    return field(default=default, metadata={"range": (low, below, most)})


@dataclass(frozen=True, repr=False)
class Data(_Checked):
    """Where images come from, and how they are brought to the model's size.

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
    resize: int | None = _number(None, low=1)  # at evaluation the shorter side becomes so many pixels, and the centre
    # is cut out; None resizes the whole image
    method: Literal["bilinear", "bicubic", "area"] = "bilinear"  # of that resizing
    antialias: bool = True  # of all resizing, an "inception" crop by averaging areas; Google's own code has it off


@dataclass(frozen=True, repr=False)
class Augment(_Checked):
    """Random changes to training images, drawn anew for each; 0 turns one off. They come in the order below."""

    crop: Literal["inception", "resized", "padded"] | None = None  # see `keras_vit.data.crops`
    crop_area: float = _number(0.05, low=1e-3, most=1)  # smallest share of the area that an "inception" crop keeps
    crop_resize: int | None = _number(None, low=1)  # shorter side, in pixels, out of which a "resized" crop is cut
    crop_padding: int = _number(4)  # black pixels on each side, out of which a "padded" crop is cut
    rotation: float = _number(0.0, below=180)  # largest angle, degrees
    scale: float = _number(0.0, below=1)  # largest relative change of size
    shear: float = _number(0.0, below=1)  # largest horizontal shift of a row, relative to its distance from the centre
    translation: float = _number(0.0, below=1)  # largest shift, as a share of the side
    flip: bool = False  # left to right, half of the images
    jitter: float = _number(0.0, below=1)  # largest relative change of brightness, of contrast and of saturation
    randaugment: int = _number(0)  # how many operations, drawn from sixteen; see `keras_vit.data.randaugment`
    magnitude: float = _number(10.0, most=30)  # of those, on the paper's scale
    erase: float = _number(0.0, below=1)  # probability of one black rectangle of 2 to 20 % of the area
    layers: tuple[Any, ...] = ()  # Keras preprocessing layers, called one after the other on a batch
    mixup: float = _number(0.0)  # of Beta(mixup, mixup), by which an image is blended with another of its batch
    cutmix: float = _number(0.0)  # of Beta(cutmix, cutmix), by which a box is taken over from another; both: either

    @classmethod
    def level(cls, name, **more):
        """Returns an augmentation of a published strength, `"none"` to `"strong2"`, with more settings beside.

        Steiner et al. 2022 (arXiv:2106.10270), section 3.4, with the numbers of big_vision.
        """
        checks.one_of("level", name, tuple(LEVELS))
        randaugment, magnitude, mixup = LEVELS[name]
        return cls(**{"randaugment": randaugment, "magnitude": magnitude, "mixup": mixup, **more})


LEVELS = {
    # name: RandAugment's operations and magnitude, MixUp's alpha
    "none": (0, 0.0, 0.0),
    "light1": (2, 0.0, 0.0),
    "light2": (2, 10.0, 0.2),
    "medium1": (2, 15.0, 0.2),
    "medium2": (2, 15.0, 0.5),
    "strong1": (2, 20.0, 0.5),
    "strong2": (2, 20.0, 0.8),
}


@dataclass(frozen=True, repr=False)
class Optim(_Checked):
    """How the weights are changed: by AdamW or SGD, with decay on kernels only."""

    optimizer: Literal["adamw", "sgd"] = "adamw"
    epochs: int = _number(50, low=1)
    learning_rate: float = _number(1e-3)
    weight_decay: float = _number(0.05)  # as in Keras and PyTorch: multiplied by the learning rate
    momentum: float = _number(0.9, below=1)  # of SGD
    schedule: Literal["cosine", "linear", "rsqrt", "constant"] = "cosine"  # after the warm-up; the first two end at 0
    warmup_epochs: float = _number(1.0)
    rsqrt_epochs: float = _number(1.0)  # timescale of "rsqrt": rate / sqrt(1 + epochs since the warm-up / timescale)
    cooldown_epochs: float = _number(0.0)  # at the end, linearly to 0; for "rsqrt" and "constant"
    clip_norm: float | None = _number(1.0)  # of the whole gradient
    accumulate: int = _number(1, low=1)  # batches whose gradients are averaged to one change of the weights
    ema: float | None = _number(None, below=1)  # momentum of a moving average of the weights, which is what is kept
    layer_decay: float | None = _number(None, low=1e-3, most=1)  # learning rate of a block, relative to the next one's
    loss: Literal["softmax", "sigmoid"] = "softmax"
    head_bias: float | None = None  # that the head starts from; -log(classes) suits a sigmoid
    label_smoothing: float = _number(0.0, below=1)
    class_weights: bool = False  # whether a class counts the more, the rarer it is
    freeze: int | Literal["all"] | None = None  # stem, patches and so many blocks stay; "all" trains the head alone
    lora: int | None = _number(None, low=1)  # rank of low-rank updates of attention, which alone are trained, and head
    remat: bool = False  # whether blocks are computed again in the backward pass, to save their memory
    distill: Literal["soft", "hard"] | None = None  # how a teacher's logits count; see `keras_vit.distillation`
    teacher: str | None = None  # checkpoint, published name or `.keras` file
    distill_weight: float = _number(0.5, most=1)  # share of the teacher in the loss
    temperature: float = _number(3.0, low=1e-3)  # of soft distillation


@dataclass(frozen=True, repr=False)
class Weights(_Checked):
    """Trained weights that ship with the package, in `saved_models`."""

    file: str
    sha256: str


@dataclass(frozen=True, repr=False)
class Reached(_Checked):
    """What a real run of the recipe reached."""

    test_accuracy: float = _number(0.0, most=1)
    minutes: float = _number(0.0)
    device: str = ""
    seeds: tuple[int, ...] = (0,)
    commit: str = ""
    note: str = ""


@dataclass(frozen=True, repr=False)
class Recipe(_Checked):
    """A whole experiment. `model` holds the arguments of `keras_vit.vit`."""

    name: str
    model: dict[str, Any]
    data: Data = Data()
    augment: Augment = Augment()
    optim: Optim = Optim()
    weights: Weights | None = None
    reached: Reached | None = None
    metrics: tuple[Literal["accuracy", "balanced_accuracy", "partial_auc"], ...] = ("accuracy",)  # of `evaluate`
    distribute: Literal["data", "model"] | None = None  # over all devices: batches, or batches and weights
    model_parallel: int = _number(1, low=1)  # devices that share one copy of the weights, for "model"
    seed: int = _number(0, below=2**31)


TOP = ("seed", "name", "metrics", "distribute", "model_parallel")
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
    if not isinstance(changes, dict) or not all(isinstance(name, str) for name in changes):
        raise TypeError(f"Changes must be a dictionary, such as {{'optim.epochs': 3}}. Received: {changes!r}")
    for name, value in changes.items():
        part, _, key = name.partition(".")
        if part == "model" and key:
            recipe = dataclasses.replace(recipe, model={**recipe.model, key: value})
        elif part in ("data", "augment", "optim") and key in {f.name for f in dataclasses.fields(PARTS[part])}:
            recipe = dataclasses.replace(recipe, **{part: dataclasses.replace(getattr(recipe, part), **{key: value})})
        elif name in TOP:
            recipe = dataclasses.replace(recipe, **{name: value})
        else:
            raise ValueError(f"A recipe has no {name!r}. {checks.near(name, names(recipe))}")
    return dataclasses.replace(recipe, reached=None) if changes else recipe


def names(recipe):
    """Returns every dotted name that `override` knows, those of the model that the recipe sets included."""
    parts = [f"{part}.{f.name}" for part in ("data", "augment", "optim") for f in dataclasses.fields(PARTS[part])]
    return [*TOP, *parts, *(f"model.{key}" for key in recipe.model)]


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
    """Returns the recipe cut to one block and two steps of four images, to see that it runs; without weights."""
    short = {
        "optim.epochs": 1,
        "optim.warmup_epochs": 0,
        "optim.cooldown_epochs": 0,
        "data.batch_size": 4,
        "data.limit": 8,
        "optim.accumulate": 1,
    }
    return override(recipe, {**short, "model.depth": 1, "model.weights": None})


def to_dict(recipe):
    """Returns the recipe as nested dictionaries, for JSON."""
    layers = [_unnamed(keras.saving.serialize_keras_object(layer)) for layer in recipe.augment.layers]
    plain = dataclasses.replace(recipe, augment=dataclasses.replace(recipe.augment, layers=()))
    values = dataclasses.asdict(plain)
    values["augment"]["layers"] = layers
    return values


def from_dict(values):
    """Returns the recipe that `to_dict`, or JSON made of it, holds."""
    values = dict(values)
    for part, kind in PARTS.items():
        if values.get(part) is not None:
            fields = dict(values[part])
            if "layers" in fields:
                fields["layers"] = [keras.saving.deserialize_keras_object(layer) for layer in fields["layers"]]
            values[part] = kind(**_tuples(fields))
    return Recipe(**_tuples(values))


def _unnamed(value):
    """Returns a Keras configuration without names, which Keras counts up from one process to the next."""
    if isinstance(value, dict):
        return {key: _unnamed(inner) for key, inner in value.items() if key != "name"}
    return [_unnamed(inner) for inner in value] if isinstance(value, list) else value


def _tuples(fields):
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}

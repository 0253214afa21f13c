"""The table of published checkpoints: source, evaluation and top-1 accuracy of each."""

import csv
import functools
import pathlib
from typing import NamedTuple

from keras_vit.utils import checks
from keras_vit.utils.files import folder


class Published(NamedTuple):
    """A published checkpoint, and how its source prepares images for evaluation."""

    name: str  # variant and weights, such as "B/16-augreg-i21k-i1k-384"
    source: str  # an https:// address, or hf://owner/repository
    sha256: str  # the first 8 digits if they are part of the address, else ""
    image_size: int
    num_classes: int  # 0 without a head
    mean: float | tuple
    std: float | tuple
    resize: str  # "direct": squashed to the size; "crop": shorter side to image_size / crop_pct, then the center
    crop_pct: float | None
    interpolation: str
    antialias: bool
    top1: float | None  # ImageNet-1k, percent
    top1_source: str
    license: str

    @property
    def variant(self):
        """The architecture, as `keras_vit.vit` takes it, such as "B/16"."""
        return self.name.partition("-")[0]


@functools.cache
def _table():
    """Reads the table, as a dictionary by name."""
    text = pathlib.Path(__file__).with_name("published.csv").read_text(encoding="utf-8")
    return {row["name"]: _row(**row) for row in csv.DictReader(text.splitlines())}


def _row(*, image_size, num_classes, mean, std, crop_pct, antialias, top1, **texts):
    """Converts a row of text to a `Published`."""
    return Published(
        image_size=int(image_size),
        num_classes=int(num_classes),
        mean=_channels(mean),
        std=_channels(std),
        crop_pct=float(crop_pct) if crop_pct else None,
        antialias={"yes": True, "no": False}[antialias],
        top1=float(top1) if top1 else None,
        **texts,
    )


def _channels(text):
    """Converts text to one number, or to a tuple with one number per channel."""
    first, *others = map(float, text.split())
    return (first, *others) if others else first


def list_checkpoints(*words: str) -> list[Published]:
    """Lists published checkpoints of plain and hybrid Vision Transformers that load by name.

    Nothing is downloaded. The top-1 figures are timm's published results for the same training run, not this package's.
    timm's preprocessing (shorter side, center crop) is not that of every row.

    Args:
        *words: Lists only names that contain all of these, such as `"B/16", "augreg"`; case does not matter.

    Returns:
        A list of `Published`.
    """
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"`words` must be strings, such as 'B/16'. Received: words={checks.shown(words)}")
    return [row for row in _table().values() if all(word.lower() in row.name.lower() for word in words)]


def published(name):
    """Returns the row of a published checkpoint.

    Args:
        name: A variant and its weights, such as `"B/16-augreg-i21k-i1k-384"`; see `list_checkpoints`.

    Returns:
        A `Published`.

    Raises:
        ValueError: For an unknown name; the message suggests similar ones.
    """
    if str(name) in _table():
        return _table()[str(name)]
    shipped = sorted(path.stem for path in folder("saved_models").glob("*.keras"))
    variant = str(name).partition("-")[0]
    same = [known for known in _table() if known.lower().startswith(f"{variant.lower()}-")]
    variants = dict.fromkeys(known.partition("-")[0] for known in _table())
    near = checks.near(name, same) if same else checks.near(variant, [*variants, *shipped])
    raise ValueError(
        "The name must be of shipped weights, such as 'mnist', or of a published checkpoint, a variant and its "
        f"weights, such as 'B/16-augreg-i21k-i1k-384'. Received: {checks.shown(name)}. {near}"
    )

"""Models with published weights, by name."""

import os
import pathlib
import re
import warnings

import keras

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.files.read import SUFFIXES
from keras_vit.checkpoints.files.repository import RUN
from keras_vit.checkpoints.load import from_checkpoint
from keras_vit.checkpoints.published import list_checkpoints, published
from keras_vit.checkpoints.remarks import Assumption
from keras_vit.layers.inputs.stems import patch_size_on
from keras_vit.models import variants
from keras_vit.models.vit import DEFAULTS as VIT_DEFAULTS
from keras_vit.models.vit import vit
from keras_vit.utils import checks
from keras_vit.utils.files import folder

UNSAID = object()  # a variant that a recipe does not name


def from_arguments(
    variant: str | None = UNSAID, *, weights: str | os.PathLike | None = None, **arguments
) -> keras.Model:
    """Builds the model of a recipe: `vit`, or with `weights` a trained model.

    Args:
        variant: As in `vit`. With weights that are of one variant, it may be left out, or `None`.
        weights: Published weights of the variant, such as `"augreg-i21k-i1k-384"`, or with it in their name, such as
            `"B/16-augreg-i21k-i1k-384"` (see `list_checkpoints`); a recipe whose weights ship with the package, such as
            `"mnist"`; or a path, run directory or address, as `from_checkpoint` takes it. Other arguments then default
            to the checkpoint's values. `None` for random weights.
        **arguments: As in `vit`, or with weights as in `from_checkpoint`.

    Raises:
        TypeError, ValueError: As `vit`; also for weights of another variant.
        ConnectionError: If weights cannot be downloaded.
    """
    variant_argument = {} if variant is UNSAID else {"variant": variant}
    if weights is None:
        return vit(**variant_argument, **arguments)
    checks.path("weights", weights)
    variants.parse(variant_argument.get("variant"))  # raises for an unknown variant
    source, place = str(weights), location(weights)
    if place is not None:
        variant, model = variant_argument.get("variant"), from_checkpoint(place, part="image", **arguments)
    else:
        row = _meant(variant, source)
        variant, model = row.variant, _published(row.name, arguments)
    wrong = _other_sizes(model, variant, arguments)
    if wrong:
        raise ValueError(f"`weights` must belong to {variant}. Received: weights={source!r} with {', '.join(wrong)}")
    return model


DEFAULTS = {"weights": None, **VIT_DEFAULTS}  # of every argument of a recipe's model


def from_pretrained(source: str | os.PathLike, *, part: str | None = None, **overrides) -> keras.Model:
    """Builds a model with trained weights. Published weights are downloaded once and cached.

    Args:
        source: Published weights, such as `"B/16-augreg-i21k-i1k-384"`, see `list_checkpoints`; a recipe whose weights
            ship with the package, such as `"mnist"`; a run directory; or any other source of `from_checkpoint`.
        part: As in `from_checkpoint`: `"image"`, `"text"` or `"both"`, such as of `"hf://openai/clip-vit-base-patch32"`
            or of a run of `Contrast`; `None` is both of a model that writes about images, such as
            `"hf://Salesforce/blip-image-captioning-base"`.
        **overrides: As in `from_checkpoint`, such as `image_size`, `num_classes` or `name`.

    Returns:
        A model as from `from_checkpoint`.

    Raises:
        ValueError: For an unknown name. The message suggests similar ones.
        ConnectionError: If the weights cannot be downloaded.
    """
    checks.path("source", source)
    place = location(source)
    if place is not None:
        return from_checkpoint(place, part=part, **overrides)
    if part not in (None, "image"):
        raise ValueError(
            "Published weights by name are of images alone: for texts, pass an address such as "
            f"'hf://openai/clip-vit-base-patch32'. Received: source={source!r}, part={part!r}"
        )
    return _published(source, overrides)


def _meant(variant, source):
    """Returns the row of `list_checkpoints` that weights mean, by their name with or without the variant."""
    rows, alone = list_checkpoints(), variant in (UNSAID, None)
    whole = next((row for row in rows if row.name == source), None)
    if whole and (alone or variant == whole.variant):
        return whole
    if whole:
        raise ValueError(
            f"`variant` must be that of the weights, {whole.variant!r}. "
            f"Received: variant={variant!r}, weights={source!r}"
        )
    matches = [row for row in rows if row.name.partition("-")[2] == source]
    usual = VIT_DEFAULTS["variant"] if variant is UNSAID else variant
    fits = [row for row in matches if row.variant == usual] or (matches if alone else [])
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise ValueError(
            f"`variant` must say whose weights are meant: {source!r} is published for "
            f"{', '.join(row.variant for row in fits)}. Received: weights={source!r} without a variant"
        )
    if alone:
        close, scope = checks.near(source, [row.name for row in rows]), ""
        close = close if close.startswith("Did") else f"Such as {rows[0].name!r}."  # of hundreds
    else:
        close = checks.near(source, [row.name.partition("-")[2] for row in rows if row.variant == variant])
        scope = f" for {variant}"
    raise ValueError(
        f"`weights` must be a path, or published{scope}. "
        f"Received: weights={source!r}. {close} keras_vit.list_checkpoints() has all."
    )


def _published(name, overrides):
    """Builds a model of `list_checkpoints`; its preprocessing is the table's, unless it is overridden."""
    row = published(name)
    evaluation = {k: getattr(row, k) for k in ("resize", "crop_pct", "interpolation", "antialias")}
    about = {"name": row.name, "evaluation": evaluation, "license": row.license, **(overrides.get("metadata") or {})}
    defaults = {"mean": row.mean, "std": row.std, "sha256": row.sha256 or None}
    if not row.num_classes:  # a head that its authors left empty, and the layer before it, which vit_jax drops too
        defaults |= {"num_classes": 0, "head": "new", "representation_size": None}
    if overrides.get("channels", 3) != 3:  # the table's mean and std are for three
        del defaults["mean"], defaults["std"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Assumption)  # the table's models are known
        return from_checkpoint(row.source, **{**defaults, **overrides, "metadata": about})


def location(source):
    """Returns the path or address of a source, also of shipped weights; `None` for any other name."""
    text, path = str(source), pathlib.Path(str(source)).expanduser()
    shipped = {file.stem: file for file in folder("saved_models").glob("*.keras")}
    if text in shipped and not (path / RUN).is_file():  # a run of that name comes first, as in `load_run`
        return shipped[text]
    is_path = path.suffix in SUFFIXES or path.exists() or ("/" in text and not re.match(r"[\w+]+/\d+(-|$)", text))
    return source if is_path or "://" in text else None


def _other_sizes(model, variant, arguments):
    """Returns the sizes of a model that are neither the variant's nor overridden, as words for an error message."""
    encoder, number, hybrid = variants.parse(variant)
    actual = arguments_of(model)
    expected = {size: getattr(encoder, size) for size in variants.SIZES if getattr(encoder, size) is not None}
    patch_size = hybrid.patch_size if hybrid else number
    if patch_size is not None:
        expected["patch_size"] = (patch_size, patch_size)
    if actual["stem"] is not None and number is not None and not hybrid:  # it counts pixels of the image
        expected["patch_size"] = patch_size_on(model.get_layer("patches").input.shape, model.input_shape[1:3], number)
    wrong = [f"{k} {actual[k]}" for k, size in expected.items() if k not in arguments and actual[k] != size]
    stages = hybrid.stages if hybrid else None
    if variant is not None and getattr(actual["stem"], "stages", None) != stages:
        wrong.append("another stem")
    return wrong

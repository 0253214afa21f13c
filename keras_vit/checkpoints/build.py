"""Builds the model that a checkpoint describes, with the caller's changes."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import keras

from keras_vit.checkpoints import adapt, tables
from keras_vit.checkpoints.inputs import POSITION, read_shape
from keras_vit.checkpoints.match import matching
from keras_vit.layers import ConvStem
from keras_vit.models.dit import ARGUMENTS as DIT_ARGUMENTS
from keras_vit.models.map_heads import with_head
from keras_vit.models.options import check_names, merged
from keras_vit.models.query_encoder import query_encoder
from keras_vit.models.variants import SIZES, VARIANTS
from keras_vit.models.video import ARGUMENTS as VIDEO_ARGUMENTS
from keras_vit.models.video import video_vit
from keras_vit.models.vilt import ARGUMENTS as VILT_ARGUMENTS
from keras_vit.models.vilt import vilt
from keras_vit.models.vit import DEFAULTS as VIT_DEFAULTS
from keras_vit.models.vit import vit
from keras_vit.utils import checks


class Kind(NamedTuple):
    """A kind of model: the function that builds it, the names of its arguments, and the name of one of a known size."""

    build: Callable
    arguments: Iterable
    name: str


PLAIN = Kind(vit, VIT_DEFAULTS, "vit_{size}_{patch}")
OTHERS = {  # by the argument that only this kind has, which a checkpoint always states
    "vocabulary": Kind(vilt, VILT_ARGUMENTS, "vilt_{size}_{patch}"),
    "tubelet": Kind(video_vit, VIDEO_ARGUMENTS, "vivit_{size}_{patch}x{tubelet}"),
}


def check_overrides(overrides, source_arguments=None):
    """Raises ValueError for what is no argument of a model: of the stated one, or before that is known, of any."""
    if source_arguments is None:
        check_names(
            overrides, [*_passed(VIT_DEFAULTS), *_passed(VILT_ARGUMENTS), *_passed(VIDEO_ARGUMENTS), *DIT_ARGUMENTS]
        )
    else:
        check_names(overrides, _passed(_kind(source_arguments).arguments))


def _passed(names):
    """Returns the names of arguments that a caller may pass; the weights' metadata are added to."""
    return [name for name in names if name not in ("variant", "metadata")]


def _kind(arguments):
    """Returns the `Kind` of a model with these arguments."""
    return next((kind for name, kind in OTHERS.items() if name in arguments), PLAIN)


def build(**arguments):
    """Builds a model with a stem of its own: a stem layer keeps the weights of the first model that it is built in."""
    stem = arguments["stem"]
    arguments = {**arguments, "stem": _new_stem(stem, arguments) if isinstance(stem, keras.Layer) else stem}
    kind = _kind(arguments)
    if kind is not PLAIN:
        return kind.build(None, **{name: arguments[name] for name in kind.arguments if name in arguments})
    maps = arguments.pop("maps", None)
    if maps and maps["kind"] == "segments":
        return with_head(query_encoder(maps["queries"], maps["last"], **arguments), maps)
    if maps:
        norm = {"final_norm": "before" if maps["normed"] else None}
        return with_head(vit(None, **{**arguments, **norm, "pooling": "none", "num_classes": 0}), maps)
    return vit(None, **arguments)


def model_arguments(description, overrides):
    """Returns all of `vit`'s arguments: what the checkpoint says, completed, with the caller's overrides.

    Args:
        description: Its `Description`.
        overrides: Arguments of `vit` that the caller passed.

    Raises:
        ValueError: If an argument is neither in the checkpoint nor passed.
    """
    source_arguments, checkpoint = description.arguments, description.checkpoint
    arguments = merged(source_arguments, overrides)
    description.require(overrides)
    stem = None if source_arguments.get("stem") is None else _new_stem(source_arguments["stem"], arguments)
    arguments.update({} if "stem" in overrides else {"stem": stem})
    for name in {"mean", "std"} - set(overrides):
        arguments[name] = adapt.statistics(source_arguments[name], arguments["channels"])
    grid = description.options.grid or description.grid
    row = next(matching(description.form, POSITION, {}), None)
    table = row and row.theirs[0]
    if source_arguments.get("position", "learned") == "learned" and table in description.names:
        count = tables.need({table: read_shape(row.form, checkpoint.shape(description.names[table]))}, table, 3)[1]
        tokens = source_arguments["tokens"]
        registers = tokens.get("registers", 0)
        prefix = int(tokens.get("class_token", True)) + int(tokens.get("distilled", False)) + registers
        sizes = {"image_size": arguments.get("image_size"), "channels": arguments["channels"], "stem": stem}
        likely = tables.grid({**source_arguments, **sizes}) if "image_size" in overrides else None
        cover, grid = adapt.covered(count, prefix, registers, grid, likely, tokens.get("class_position"))
        if arguments["tokens"].get("class_position") is None:
            arguments = merged(arguments, {"tokens": {"class_position": cover == prefix}})
    sized = "image_size" in overrides or "tubelet" in source_arguments  # of clips the size is always stated
    if grid and not sized and (stem is None or "image_size" not in source_arguments):
        # timm leaves the edge of an image out if patches do not divide its size.
        arguments["image_size"] = tuple(side * step for side, step in zip(grid, tables.stride(source_arguments)))
    arguments.setdefault("name", _variant_name(arguments))
    token_options = {k: v for k, v in arguments["tokens"].items() if v is not None or k != "class_position"}
    return arguments | {"tokens": token_options}


def full_size(source_arguments, arguments):
    """Returns the size that a source resizes images to if their last rows and columns make no patch, as `full_size`.

    timm resizes to 384 pixels for patches of 14, and the model sees 378. Returns `{}` if patches divide the size.
    """
    if "image_size" not in source_arguments:
        return {}
    full, seen = (checks.pair("image_size", each["image_size"]) for each in (source_arguments, arguments))
    cut = full != seen and all(0 <= f - s < step for f, s, step in zip(full, seen, tables.stride(arguments)))
    return {"full_size": list(full)} if cut else {}


def _variant_name(arguments):
    """Returns the name that `vit` gives a model of a published size, else `None`."""
    sizes = [arguments[name] for name in SIZES]
    row = next((name for name, variant in VARIANTS.items() if list(variant[: len(SIZES)]) == sizes), None)
    step = set(checks.pair("patch_size", arguments["patch_size"]))
    if row is None or arguments["stem"] is not None or len(step) > 1:
        return None
    return _kind(arguments).name.format(size=row, patch=min(step), tubelet=arguments.get("tubelet"))


def _new_stem(stem, arguments):
    """Returns a copy of a stem, without its weights, for a model with these arguments."""
    if isinstance(stem, keras.Model):
        shape = (*checks.pair("image_size", arguments["image_size"]), arguments["channels"])
        return keras.models.clone_model(stem, input_tensors=keras.Input(shape))
    steps = {"strides": stem.steps} if isinstance(stem, ConvStem) else {}
    return type(stem).from_config({**stem.get_config(), **steps, "dtype": arguments.get("dtype")})

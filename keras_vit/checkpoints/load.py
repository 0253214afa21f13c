"""One loader for every format: into a model, or into the model that a file describes."""

import inspect
import warnings
from typing import NamedTuple

import keras
import numpy as np

from keras_vit import checks
from keras_vit.checkpoints import adapt, tables
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.describe import FORMATS, FUNCTION, NOTES, class_names, credit, describe, of_stem, recognise
from keras_vit.checkpoints.fetch import fetch
from keras_vit.checkpoints.match import POSITION, matching, plan
from keras_vit.checkpoints.own import SAVED
from keras_vit.checkpoints.read import check_readable, open_checkpoint
from keras_vit.keras_private import shapes_only
from keras_vit.layers import Rescale
from keras_vit.models import vit
from keras_vit.resampling import METHODS
from keras_vit.variants import SIZES, VARIANTS

OF_WEIGHTS = ("labels", "name", "licence")  # metadata of weights that others replace
TOLD = ("config.json", NOTES, SAVED, "the q-k norm's width")  # where a number of heads is more than a rule


class Assumption(UserWarning):
    """A file does not show all that its model computes."""


class Options(NamedTuple):
    """How to load; see `load_weights`."""

    format: str = "auto"
    head: str = "require"
    resample: str | None = None
    patches: str = "require"
    grid: tuple | None = None

    def check(self):
        checks.one_of("format", self.format, ("auto", *FORMATS))
        checks.one_of("head", self.head, ("require", "new"))
        checks.one_of("patches", self.patches, ("require", "resize", *METHODS))
        if self.resample is not None:
            checks.one_of("resample", self.resample, tuple(METHODS))
        return self if self.grid is None else self._replace(grid=checks.pair("grid", self.grid))


def load_weights(
    model, source, *, format="auto", head="require", resample=None, patches="require", grid=None, sha256=None
):
    """Fills a model from a published checkpoint, at the model's own image size and number of channels.

    Positions are resampled to the model's grid, and kernels for three channels adapted to the model's (timm's rule: the
    sum for one channel). Every weight is filled and every tensor used, or nothing is changed.

    Args:
        model: A model from `keras_vit.vit`.
        source: A file (`.npz`, `.safetensors`, `.keras`, `.pth`, `.pt`, `.bin`), a directory with one, the directory of
            a run, `"https://..."`, or `"hf://owner/name"`.
        format: `"google"` (vit_jax, big_vision), `"timm"`, `"huggingface"`, `"keras"` (this package's own), or
            `"auto"`, by the names.
        head: `"require"`, or `"new"` to leave the model's head as it is and the source's out.
        resample: How positions are resampled; see `keras_vit.resampling.resize_matrix`. `None` for what the source's
            own code does.
        patches: `"require"` the source's patch size, or `"resize"` its kernels to the model's (FlexiViT's
            pseudo-inverse), by the source's method or by one that is named here in place of `"resize"`.
        grid: `(rows, columns)` of the source's patches, where they are neither a square nor in its `config.json`.
        sha256: SHA-256 of a file to be downloaded, in hexadecimal; its first eight digits suffice.

    Returns:
        The model.

    Raises:
        ValueError: For a damaged file, another architecture, missing or surplus tensors, other shapes, or numbers that
            are not finite; for arguments outside the above.
        FileNotFoundError, ConnectionError: If the source cannot be had.

    Warns:
        UserWarning: If the model computes otherwise than the source does, such as by another GELU.
    """
    options = Options(format, head, resample, patches, grid).check()
    own = arguments_of(model)
    check_readable(source)
    with open_checkpoint(fetch(source, sha256=sha256)) as checkpoint:
        form, names = recognise(checkpoint, format)
        said, evaluation, origins = describe(checkpoint, form, names)
        if origins.get("num_heads") in TOLD and said["num_heads"] != own["num_heads"]:
            raise ValueError(f"{str(source)!r} has {said['num_heads']} heads, and the model {own['num_heads']}.")
        for name in ("mean", "std"):
            said[name] = adapt.statistics(said[name], own["channels"])
        _fill(model, checkpoint, plan(model, checkpoint, form, names, options, _grid(said), said.get("class_position")))
        labels = class_names(checkpoint, own["num_classes"]) if head == "require" else {}
        if "image_size" in said and checks.pair("image_size", said["image_size"]) != own["image_size"]:
            evaluation.pop("full_size", None)
    if isinstance(rescale := model.get_layer("rescale"), Rescale):
        kept = {name: value for name, value in rescale.metadata.items() if name not in OF_WEIGHTS}
        rescale.metadata = kept | _about(source, form, evaluation, origins) | labels | credit(checkpoint)
    theirs, ours = ({k: a[k] for k in FUNCTION} | of_stem(a["stem"]) for a in (said, own))
    known = [name for name in ours if theirs.get(name) is not None and f"'{ours[name]}'" not in origins.get(name, "")]
    other = [f"{k}={theirs[k]!r} (the model: {ours[k]!r})" for k in known if not tables.same(theirs[k], ours[k])]
    if other:
        warnings.warn(
            f"The weights of {str(source)!r} fit, but belong to a model with {', '.join(other)}. "
            "`from_checkpoint` builds that one.",
            stacklevel=2,
        )
    return model


def from_checkpoint(
    source,
    *,
    format="auto",
    head=None,
    resample=None,
    patches="resize",
    grid=None,
    sha256=None,
    metadata=None,
    **overrides,
):
    """Builds the model that a published checkpoint describes, and fills it.

    Width, depth, patches, MLP, grid, classes, pooling, tokens, layer scale and biases are read off the tensors; heads,
    GELU, epsilon and preprocessing off `config.json` where there is one, else they are the published ones of the
    format. The first layer's `metadata` says which, and `keras_vit.preprocess` follows it.

    Args:
        source: As in `load_weights`.
        format: As in `load_weights`.
        head: `"require"` or `"new"`; `None` for new only where `num_classes` is given and is not the source's.
        resample: As in `load_weights`.
        patches: As in `load_weights`; of use where `patch_size` is given.
        grid: As in `load_weights`.
        sha256: As in `load_weights`.
        metadata: Dictionary that is added to the model's.
        **overrides: Arguments of `keras_vit.vit`, such as `image_size`, `channels`, `num_classes` or `patch_size`,
            to which the weights are adapted, or `stochastic_depth` and `num_heads`.

    Returns:
        A model as from `keras_vit.vit`.

    Raises:
        ValueError, FileNotFoundError, ConnectionError: As `load_weights`; also if the heads are neither in the file nor
            published for its width.

    Warns:
        UserWarning: If published files with the same tensors compute different functions, by their GELU, heads or
            positions. It names what was assumed.

    Example:

    >>> from_checkpoint("vit_base_patch16_224.safetensors", image_size=(384, 512), num_classes=37).output_shape
    (None, 37)
    """
    known = [name for name in inspect.signature(vit).parameters if name not in ("variant", "metadata")]
    for name in overrides:
        if name not in known:
            raise ValueError(f"`vit` has no argument {name!r}. {checks.near(name, known)}")
    options = Options(format, head or "require", resample, patches, grid).check()
    check_readable(source)
    with open_checkpoint(fetch(source, sha256=sha256)) as checkpoint:
        form, names = recognise(checkpoint, format)
        said, evaluation, origins = describe(checkpoint, form, names)
        arguments = _arguments(said, origins, checkpoint, form, names, options.grid, overrides)
        if head is None and overrides.get("num_classes") not in (None, 0, said["num_classes"]):
            options = options._replace(head="new")
        origins |= dict.fromkeys(set(origins) & set(overrides), "given")
        if "image_size" in overrides:
            evaluation.pop("full_size", None)
        else:
            evaluation |= _margin(said, arguments)
        labels = class_names(checkpoint, arguments["num_classes"]) if options.head == "require" else {}
        arguments["metadata"] = _about(source, form, evaluation, origins) | labels
        arguments["metadata"] |= credit(checkpoint) | (metadata or {})

        def steps():
            model = _built(arguments)
            return plan(model, checkpoint, form, names, options, _grid(said), said.get("class_position"))

        steps = shapes_only(steps)  # before a file that does not fit takes any memory
        model = _built(arguments)
        _fill(model, checkpoint, steps)
    assumed = [f"{k}={arguments[k]!r} ({why})" for k, why in origins.items() if isinstance(why, tables.Assumed)]
    if assumed:
        warnings.warn(
            f"{str(source)!r} does not show all that its model computes. Assumed: {', '.join(assumed)}. "
            "Pass what is right, or put its config.json beside it.",
            Assumption,
            stacklevel=2,
        )
    return model


def _arguments(said, origins, checkpoint, form, names, grid, overrides):
    """Returns all of `vit`'s arguments: what the file says, completed, and the caller's."""
    arguments = {**said, **overrides}
    for name, why in origins.items():
        if isinstance(why, tables.Missing) and name not in overrides:
            raise ValueError(f"{why} Received: {str(checkpoint.path)!r}")
    stem = None if said.get("stem") is None else _new_stem(said["stem"], arguments)
    arguments.update({} if "stem" in overrides else {"stem": stem})
    for name in {"mean", "std"} - set(overrides):
        arguments[name] = adapt.statistics(said[name], arguments["channels"])
    table = next(matching(form, POSITION, {})).theirs[0]
    known = grid or _grid(said)
    if said.get("position", "learned") == "learned" and table in names:
        count = tables.need({table: checkpoint.shape(names[table])}, table, 3)[1]
        registers = said.get("registers", 0)
        prefix = int(said.get("class_token", True)) + int(said.get("distilled", False)) + registers
        sizes = {"image_size": arguments.get("image_size"), "channels": arguments["channels"], "stem": stem}
        likely = _grid({**said, **sizes}) if "image_size" in overrides else None
        cover, known = adapt.covered(count, prefix, registers, known, likely, said.get("class_position"))
        if arguments.get("class_position") is None:
            arguments["class_position"] = cover == prefix
    if known and "image_size" not in overrides and (stem is None or "image_size" not in said):
        # Of a size that patches do not divide, timm leaves the rest of the image out.
        arguments["image_size"] = tuple(side * step for side, step in zip(known, tables.stride(said)))
    arguments.setdefault("name", _name(arguments))
    return {k: v for k, v in arguments.items() if v is not None or k != "class_position"}


def _margin(said, arguments):
    """Returns the size to which a source brings images whose last rows and columns make no patch, if there are any.

    Such as timm's of 384 pixels with patches of 14, of which 378 are seen.
    """
    if "image_size" not in said:
        return {}
    full, seen = (checks.pair("image_size", each["image_size"]) for each in (said, arguments))
    cut = full != seen and all(0 <= f - s < step for f, s, step in zip(full, seen, tables.stride(arguments)))
    return {"full_size": list(full)} if cut else {}


def _name(arguments):
    """Returns the name that `vit` gives a model of a published size, else `None`."""
    sizes = [arguments[name] for name in SIZES]
    row = next((name for name, variant in VARIANTS.items() if list(variant[: len(SIZES)]) == sizes), None)
    step = set(checks.pair("patch_size", arguments["patch_size"]))
    return f"vit_{row}_{min(step)}" if row and arguments["stem"] is None and len(step) == 1 else None


def _built(arguments):
    """Returns a model with a stem of its own: a layer keeps the weights of the first model that it is built in."""
    stem = arguments["stem"]
    return vit(None, **{**arguments, "stem": _new_stem(stem, arguments) if isinstance(stem, keras.Layer) else stem})


def _new_stem(stem, arguments):
    """Returns a stem like another one, without its weights, for a model with these arguments."""
    if isinstance(stem, keras.Model):
        shape = (*checks.pair("image_size", arguments["image_size"]), arguments["channels"])
        return keras.models.clone_model(stem, input_tensors=keras.Input(shape))
    dtype = {"dtype": arguments["dtype"]} if "dtype" in arguments else {}
    return type(stem).from_config({**stem.get_config(), **dtype})


def _about(source, form, evaluation, origins):
    """Returns what travels with a model: where its weights are from, how to prepare images for it, and who says so."""
    return {"source": str(source), "format": form.name, "evaluation": evaluation, "from": origins}


def _grid(arguments):
    """Returns the grid of the source where its image size is known."""
    return tables.grid(arguments) if "image_size" in arguments else None


def _fill(model, checkpoint, steps):
    """Looks at every number, then assigns."""
    places = sorted({place for step in steps.values() for place in step.places}, key=str)
    bad = [place for place in places if not np.isfinite(checkpoint.array(place)).all()]
    if bad:
        raise ValueError(f"{str(checkpoint.path)!r} has numbers that are not finite in {tables.listing(map(str, bad))}")
    variables = {variable.path: variable for variable in model.weights}
    for step in steps.values():
        for path, array in zip(step.paths, step.read(), strict=True):
            variables[path].assign(array)

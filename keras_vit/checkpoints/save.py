"""Saves a model's weights as another library's checkpoint: the loader's tables, inverted."""

import contextlib
import json
import os
import pathlib
import tempfile
import warnings

import keras
import numpy as np
import safetensors
import safetensors.numpy

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.describe import FORMATS, NOTED, STEM, Description, of_stem
from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.checkpoints.files.read import SUFFIXES, open_checkpoint
from keras_vit.checkpoints.heads import KIND
from keras_vit.checkpoints.inputs import POSITION, PROJECTION
from keras_vit.checkpoints.match import heads_of, matching, steps_for
from keras_vit.checkpoints.tables import grid, listing, same
from keras_vit.layers import MergingBlock, ResNetStem
from keras_vit.models.backbone import HEADS, check_plain, variables_of
from keras_vit.models.kinds import GIVES, name_of
from keras_vit.models.options import flat, merged, nested
from keras_vit.models.outputs import fitting
from keras_vit.models.vit import DEFAULTS
from keras_vit.preparing.evaluation_rule import DEFAULT, difference
from keras_vit.utils import checks, together
from keras_vit.utils.files import UNFINISHED, check_free, sweep
from keras_vit.utils.losses import end_of

WRITTEN = tuple(dict.fromkeys(form.library for form in FORMATS if form.express))
APPROXIMATE = ("block.gelu", "norm.epsilon", "mean", "std", "num_heads")  # a format may have no place for these
FIXED = ("sincos1d", "sincos2d")
TEACHER_LAYERS = ("pool_distilled", "head_distilled", "logits")  # layers after the head of a model with two
# The tensors themselves show these.
UNCOMPARED = ("stem", "block.layer_scale", "tokens.class_position", "width", "depth")


def save_checkpoint(
    model: keras.Model, path: os.PathLike | str, *, format: str | None = None, overwrite: bool = False
) -> pathlib.Path:
    """Saves a model's weights in a published format.

    Every file is read back and matched with the model before it replaces another.

    Args:
        model: A model from `keras_vit.vit`.
        path: For `"google"` a file that ends in `.npz`. For the others a directory for `model.safetensors`,
            `config.json` and, for Hugging Face, `preprocessor_config.json`, which
            `timm.create_model("local-dir:PATH", pretrained=True)` and transformers' `from_pretrained("PATH")` load; or
            a file that ends in `.safetensors`, for the weights alone.
        format: `"google"`, `"timm"` or `"huggingface"`. `None` means `"google"` if the path ends in `.npz`.
        overwrite: Whether to replace existing files.

    Returns:
        The path.

    Raises:
        ValueError: If the format has no name for some weight, or no model of this kind; for a model with LoRA, or
            one that `model.quantize` has changed.
        FileExistsError: If a file exists and `overwrite` is false.
        OSError: If the disk is full, or writing fails otherwise. Existing files stay as they were.

    Warns:
        UserWarning: If the format cannot record some argument, such as the GELU, or how images are prepared, such as
            `antialias=False`: readers will assume another.
    """
    path, format, folder, main = target(path, format, overwrite)
    arguments = arguments_of(model)
    check_plain(model, "A checkpoint", lora=False)
    if tuple(arguments["value_range"]) != checks.BYTES:
        shown = checks.shown(arguments["value_range"])
        raise ValueError(f"Other libraries take pixels from 0 to 255. Received: a model of value_range={shown}")
    form = next(form for form in FORMATS if form.library == format and form.express and form.suits(arguments))
    metadata = getattr(model.get_layer("rescale"), "metadata", {})
    arguments["evaluation"] = DEFAULT | {k: v for k, v in (metadata.get("evaluation") or {}).items() if v is not None}
    arguments["labels"] = fitting(metadata.get("labels"), arguments["num_classes"])
    arguments[GIVES] = name_of(model) if arguments["num_classes"] else "classes"
    if arguments["position"] in FIXED and (format, arguments["position"]) != ("google", "sincos2d"):
        arguments["position"] = "learned"  # these formats store a fixed table like a learned one
    arrays, files = form.express(arguments, _arrays(model, form, arguments))
    files = files if folder == path else {}
    for name in files:
        check_free(folder / name, overwrite)
    notes = {"arguments": {k: flat(arguments)[k] for k in NOTED}, "evaluation": arguments["evaluation"]}
    notes |= {"labels": arguments["labels"]} if arguments["labels"] else {}
    notes |= {name: metadata[name] for name in HEAD_METADATA if metadata.get(name) and name != GIVES}
    notes |= {KIND: arguments[GIVES]} if arguments["num_classes"] else {}
    if isinstance(arguments["stem"], ResNetStem):
        notes["arguments"]["stem"] = {k: getattr(arguments["stem"], k) for k in STEM}
    with _temporary_in(folder, path) as temporary:
        _write(temporary / main, arrays, notes)
        for name, content in files.items():
            (temporary / name).write_text(json.dumps(content, indent=2))
        lost, unlike = _not_recorded(model, temporary / main, form, arguments, arrays)
        together.replace_files(temporary, (*files, main), folder)
    remarks = []
    if lost:
        remarks.append(f"The {format} format does not record {listing(lost)}: pass this when you load {str(path)!r}.")
    if unlike:
        rule = listing(f"{k}={v!r}" for k, v in unlike.items())
        remarks.append(
            f"Readers of {str(path)!r} will prepare other images than `preprocess`: it does not record {rule}."
        )
    if remarks:
        warnings.warn(" ".join(remarks), stacklevel=2)
    return path


def target(path, format, overwrite):
    """Returns the path, the format, and the folder and name of the file of weights, after the checks without a model.

    Raises:
        ValueError, FileExistsError: As `save_checkpoint`.
    """
    path = checks.path("path", path)
    if path.suffix == ".keras":
        raise ValueError(f"Use model.save(path) for Keras's own file. Received: path={str(path)!r}")
    format = ("google" if path.suffix == ".npz" else None) if format is None else format
    checks.one_of("format", format, WRITTEN)
    suffix = ".npz" if format == "google" else ".safetensors"
    as_file = path.suffix == suffix
    if not as_file and (format == "google" or path.suffix in SUFFIXES):
        raise ValueError(f"A {format} checkpoint's file must end in {suffix}. Received: path={str(path)!r}")
    folder, name = (path.parent, path.name) if as_file else (path, f"model{suffix}")
    check_free(folder / name, overwrite)
    return path, format, folder, name


@contextlib.contextmanager
def _temporary_in(folder, path):
    """Yields a temporary directory in a folder. Creates the folder, and removes it again if it stays empty."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        sweep(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as temporary:
            yield pathlib.Path(temporary)
    except (OSError, safetensors.SafetensorError) as error:
        raise OSError(f"{str(path)!r} could not be written: {error}") from None
    finally:
        if new and not any(folder.iterdir()):
            folder.rmdir()


def _write(path, arrays, notes):
    """Writes arrays as `.npz`, or with notes as `.safetensors`, by the file's name."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
        return
    path.touch()
    mode = path.stat().st_mode
    safetensors.numpy.save_file(arrays, path, metadata={"format": "pt", "keras_vit": json.dumps(notes)})
    path.chmod(mode)  # safetensors lets only the owner read its files


def _arrays(model, form, arguments):
    """Returns the model's weights under the format's canonical names."""
    to_array = keras.ops.convert_to_numpy
    variables = {path: np.asarray(to_array(v), "float32") for path, v in variables_of(model).items()}
    for name, value in _in_units(model, variables).items():
        variables[name] = value.astype("float32")
    if arguments["position"] == "learned" and POSITION not in variables:
        variables[POSITION] = np.asarray(model.get_layer("encoder").position_embedding)
    rows, columns = arguments["patch_size"]
    kernel = variables[PROJECTION]
    variables[PROJECTION] = kernel.reshape(rows, columns, -1, kernel.shape[-1])
    placeholders, arrays, unnamed = form.placeholders(arguments), {}, []
    for path in variables:
        row = next(matching(form, path, placeholders), None)
        if row is None:
            unnamed.append(path)
        elif row.theirs[0] not in arrays:
            written = row.form.write([variables[ours] for ours in row.ours], heads_of(path, arguments))
            arrays |= {name: np.ascontiguousarray(array) for name, array in zip(row.theirs, written, strict=True)}
    if unnamed:
        raise ValueError(f"The {form.name} format has no name for {listing(unnamed)}.")
    return arrays


def _in_units(model, variables):
    """Returns the heads' weights with the units of their numbers, which a `Rescaling` after them multiplies and adds.

    Raises:
        ValueError: If other layers than a softmax change what the heads return.
    """
    names = [layer.name for layer in model.layers]
    after = model.layers[[*names, "head"].index("head") + 1 :]
    units = [layer for layer in after if isinstance(layer, keras.layers.Rescaling)]
    others = [layer.name for layer in after if layer not in units and layer.name not in TEACHER_LAYERS]
    if end_of(model) == "softmax":  # readers of logits compute it
        others.remove(names[-1])
    if others:
        raise ValueError(f"A checkpoint's classifier ends in its head. Received: {model.name!r}, and {listing(others)}")
    weights = {f"{head}/{part}": variables[f"{head}/{part}"] for head in HEADS if f"{head}/kernel" in variables
               for part in ("kernel", "bias")}  # fmt: skip
    for layer in units:
        scale, offset = np.asarray(layer.scale, "float64"), np.asarray(layer.offset, "float64")
        weights = {name: value * scale + offset * name.endswith("/bias") for name, value in weights.items()}
    return weights if units else {}


def _not_recorded(model, path, form, arguments, arrays):
    """Reads a written file back and compares it with the model.

    Returns:
        The arguments that the file does not record, and what it does not record of the evaluation's rule.
    """
    with open_checkpoint(path) as checkpoint:
        wrong = [name for name, array in arrays.items() if not np.array_equal(checkpoint.read(name), array, True)]
        if wrong:
            raise OSError(f"the file differs from the model in {listing(wrong)}")
        names = form.names(checkpoint.shapes)
        shapes = {name: checkpoint.shape(place) for name, place in names.items()}
        source_arguments, evaluation, _ = form.architecture(shapes, checkpoint)
        recorded = {k: v for k, v in source_arguments.items() if v is not None or k != "num_heads"}
        own, source = flat(arguments), flat(merged(DEFAULTS, {"image_size": arguments["image_size"]}, recorded))
        compared = [k for k in own if k in source and k not in UNCOMPARED]
        other = [k for k in compared if not same(source[k], own[k])]
        if set(other) - set(APPROXIMATE):
            kind = ", ".join(_written({k: own[k] for k in other if k not in APPROXIMATE}))
            raise ValueError(f"The {form.name} format has no model with {kind}.")
        if arguments["position"] == model.get_layer("encoder").position:
            steps_for(model, Description(checkpoint, form, names, {**arguments, "tokens": {}}, evaluation, {}))
        lost = _written({k: own[k] for k in other})
        if form.name == "google" and arguments[GIVES] != "classes":
            lost.append(f"metadata={{{GIVES!r}: {{'head': {arguments[GIVES]!r}}}}}")
        lost += ["token merging"] * any(isinstance(layer, MergingBlock) for layer in model.layers)
        if form.name == "google" and len(set(grid(arguments))) == 2:
            lost.append(f"a grid of {grid(arguments)}")
        own, source = (of_stem(a.get("stem")) for a in (arguments, source_arguments))
        lost += [f"{k}={v!r}" for k, v in own.items() if source.get(k) != v]
        return lost, difference(arguments["evaluation"], DEFAULT | evaluation, arguments["image_size"])


def _written(dotted):
    """Returns arguments as a caller writes them."""
    return [f"{name}={value!r}" for name, value in nested(dotted).items()]

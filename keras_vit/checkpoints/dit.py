"""Builds the DiT that a checkpoint describes, and loads its weights."""

import re

import numpy as np

from keras_vit.checkpoints.describe import one_error, recognize
from keras_vit.checkpoints.formats.dit import COPIES, FORMATS, IN_DIFFUSERS
from keras_vit.checkpoints.match import Options, fill, matched
from keras_vit.checkpoints.tables import Missing
from keras_vit.models.dit import ARGUMENTS, dit
from keras_vit.models.kinds import name_of, note
from keras_vit.utils import checks
from keras_vit.utils.keras_private import shapes_only
from keras_vit.utils.resampling import sincos_2d

SIZES = ("variant", "image_size", "channels", "out_channels", "patch_size", "width", "depth", "mlp_dim", "num_classes")


def is_dit_file(checkpoint):
    """Returns whether an open checkpoint is of a DiT."""
    return any(form.detect(checkpoint.shapes) for form in FORMATS)


def read_dit(checkpoint, source, given, overrides, metadata=None):
    """Returns the model that an open checkpoint of a DiT describes, with its weights.

    Its times are steps from 0 to 999. The published ones were trained on latents of an autoencoder, which is not in
    the file, to predict noise: their output is not a velocity.

    Args:
        checkpoint: An open `Checkpoint`.
        source: What the caller named.
        given: What the caller asks for besides. It must be empty.
        overrides: Arguments of `dit` that the caller passed, other than sizes.
        metadata: Dictionary to add to the model's metadata.

    Raises:
        ValueError: If the file is not of a DiT or does not match, for overrides of sizes, or if the number of heads is
            neither in the file nor published for its width.
    """
    overrides = checks.plain(overrides)
    if given:
        said = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(f"A DiT is loaded whole, as it was saved. Received: {said} for {str(source)!r}")
    checks.options("overrides", overrides, ARGUMENTS)
    if fixed := [f"{name}={overrides[name]!r}" for name in SIZES if name in overrides]:
        raise ValueError(f"A DiT is loaded at its own size. Received: {', '.join(fixed)}")
    form, names = recognize(checkpoint, "auto", FORMATS, "be a DiT")
    with one_error(checkpoint, form):
        stated, _, origins = form.architecture(checkpoint.shapes, checkpoint)
    missing = [why for name, why in origins.items() if isinstance(why, Missing) and name not in overrides]
    if missing:
        raise ValueError(f"{missing[0]} Received: {str(checkpoint.path)!r}")
    arguments = {"variant": None, **stated, **overrides}
    arguments["metadata"] = {"source": str(source), "format": form.name, "from": origins, **(metadata or {})}
    if form is IN_DIFFUSERS:
        arguments["own_conditions"] = _differ(checkpoint)
        checkpoint, names = _with_positions(checkpoint, names, arguments)
        if not arguments["own_conditions"]:
            names = {name: place for name, place in names.items() if not re.match(_others(), name)}

    def match(model):
        layers = {"num_heads": arguments["num_heads"], "num_classes": None, "stem": None, "pooling": None}
        return matched(model, layers, checkpoint, form, names, Options())

    steps = shapes_only(lambda: match(dit(**arguments)))  # a file that does not match costs no memory
    model = dit(**arguments)
    fill(model, checkpoint, steps)
    if name_of(model) not in ("velocity", "prediction"):
        note(model, "prediction")
    return model


def _others():
    """Returns a regular expression of the tensors of times and labels in all blocks but the first."""
    return re.escape(COPIES).replace(r"\{i\}", r"[1-9]\d*") + r"\."


def _differ(checkpoint):
    """Returns whether diffusers' blocks have different tensors of times and labels; most have the same."""
    others = [name for name in checkpoint.shapes if re.match(_others(), name)]
    first = {name: re.sub(r"\.\d+\.", ".0.", name, count=1) for name in others}
    alike = all(checkpoint.shapes[name] == checkpoint.shapes.get(first[name]) for name in others)
    return not alike or any(
        not np.array_equal(checkpoint.array(name), checkpoint.array(first[name])) for name in others
    )


def _with_positions(checkpoint, names, arguments):
    """Returns the checkpoint and its names with the positions that diffusers computes."""
    pixels, (height, width) = arguments["image_size"], arguments["patch_size"]
    table = sincos_2d((pixels // height, pixels // width), arguments["width"], inclusive=False)[None]
    read = checkpoint.read
    shapes = {**checkpoint.shapes, "pos_embed": table.shape}
    own = checkpoint._replace(shapes=shapes, read=lambda name: table if name == "pos_embed" else read(name))
    return own, {**names, "pos_embed": "pos_embed"}

"""The family of DiTs: what a file and the caller say, brought together."""

import re

import numpy as np

from keras_vit.checkpoints.describe import Description, one_error
from keras_vit.checkpoints.formats.dit import COPIES, IN_DIFFUSERS
from keras_vit.models.dit import ARGUMENTS
from keras_vit.models.kinds import name_of
from keras_vit.models.kinds import note as note_kind
from keras_vit.models.schedules import SCHEDULE
from keras_vit.utils import checks
from keras_vit.utils.resampling import sincos_2d

SIZES = ("variant", "image_size", "channels", "out_channels", "patch_size", "width", "depth", "mlp_dim", "num_classes")


def described(checkpoint, form, names, request):
    """Returns the `Description` of a DiT and all arguments of `dit`; see `families.Family`.

    Its times are steps from 0 to 999. The published ones were trained on latents of an autoencoder, which is not in
    the file, to predict noise: their output is not a velocity. Of a folder with both, the metadata say so.
    """
    overrides = request.overrides
    options = request.options.changed(patches="resize") | ({} if request.part is None else {"part": request.part})
    if options:
        received = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise ValueError(f"A DiT is loaded whole, as it was saved. Received: {received} for {str(request.source)!r}")
    checks.options("overrides", overrides, ARGUMENTS)
    if fixed := [f"{name}={overrides[name]!r}" for name in SIZES if name in overrides]:
        raise ValueError(f"A DiT is loaded at its own size. Received: {', '.join(fixed)}")
    with one_error(checkpoint, form):
        source_arguments, _, origins = form.architecture(checkpoint.shapes, checkpoint)
    arguments = {"variant": None, **source_arguments, **overrides}
    if form is IN_DIFFUSERS:
        arguments["own_conditions"] = _differ(checkpoint)
        checkpoint, names = _with_positions(checkpoint, names, arguments)
        if not arguments["own_conditions"]:
            names = {name: place for name, place in names.items() if not re.match(_others(), name)}
    description = Description(checkpoint, form, names, arguments, {}, origins, remarks=tuple(checkpoint.remarks))
    description.require(overrides)
    about = {"source": str(request.source), "format": form.name, "from": origins, **(request.metadata or {})}
    return description, arguments | {"metadata": about}


def note(model, description, arguments):
    """Writes into a DiT's metadata that its output is what its authors trained it to predict."""
    if SCHEDULE in arguments["metadata"]:
        note_kind(model, "noise")
    elif name_of(model) not in ("velocity", "prediction"):
        note_kind(model, "prediction")


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
    read_source = checkpoint.read
    shapes = {**checkpoint.shapes, "pos_embed": table.shape}
    own = checkpoint._replace(shapes=shapes, read=lambda name: table if name == "pos_embed" else read_source(name))
    return own, {**names, "pos_embed": "pos_embed"}

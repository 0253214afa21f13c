"""Which tensor fills which weight: every weight filled, every tensor used, or a sentence."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_vit.checkpoints import adapt
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.tables import GROUP_NORM, grid, listing
from keras_vit.resampling import resize_patches

TOKENS = ("encoder/class_token", "encoder/distillation_token", "encoder/register_tokens")
POSITION, PROJECTION = "encoder/position_embedding", "encoder/projection/kernel"
HEADS = ("head/", "head_distilled/")


class Step(NamedTuple):
    """Some of our weights, the places of a checkpoint that fill them, how arrays differ, and what reads them."""

    paths: tuple
    places: tuple
    form: object
    read: Callable


class Match(NamedTuple):
    """A row of a table with its names written out."""

    ours: tuple
    theirs: tuple
    form: object


def matching(form, path, words):
    """Yields the rows of a format's table, names written out, that give the weight of this path."""
    for row in form.rows:
        for ours in _tuple(row.ours):
            pattern = re.escape(ours).replace(r"\{i\}", r"(?P<i>\d+)").replace(r"\{j\}", r"(?P<j>\d+)")
            match = re.fullmatch(pattern.replace(r"\{path\}", "(?P<path>.+)"), path)
            if match:
                found = match.groupdict()
                found |= {f"{key}1": int(value) + 1 for key, value in found.items() if key != "path"}
                yield Match(
                    tuple(name.format(**found) for name in _tuple(row.ours)),
                    tuple(name.format(**found, **words) for name in _tuple(row.theirs)),
                    row.form,
                )


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def plan(model, checkpoint, form, names, options, known=None, covers=None):
    """Matches every weight of a model with a checkpoint's tensors, by names and shapes. Reads no array.

    Args:
        model: A model from `keras_vit.vit`.
        checkpoint: An open `Checkpoint`.
        form: Its `Format`.
        names: Where each canonical name is found in it.
        options: `keras_vit.checkpoints.load.Options`.
        known: `(rows, columns)` of the source's patches, if known.
        covers: Whether its positions cover the tokens before the patches, if known.

    Returns:
        A dictionary from the path of a step's first weight to the `Step`.

    Raises:
        ValueError: If a weight or a tensor is left over, or a shape differs.
    """
    arguments, variables = arguments_of(model), {v.path: v for v in model.weights}
    words, heads, new_head = form.words(arguments), arguments["num_heads"], options.head == "new"
    steps, used, missing, unknown, wrong = {}, set(), [], [], []
    root = _root_path(arguments)
    filled = {p for p in variables if new_head and p.startswith(HEADS)}
    for path in variables:
        if path in filled:
            continue
        rows = list(matching(form, path, words))
        row = next((row for row in rows if all(name in names for name in row.theirs)), None)
        if row is None:
            if not (new_head and path.startswith("pre_logits/")):
                missing += [n for n in rows[0].theirs if n not in names and n not in missing] if rows else []
                unknown += [] if rows else [path]
            continue
        filled |= set(row.ours)
        used |= set(row.theirs)
        places = tuple(names[name] for name in row.theirs)
        shapes = [checkpoint.shape(place) for place in places]
        if path not in (POSITION, PROJECTION, root):
            wrong += _differences(row, shapes, [variables[p].shape for p in row.ours], heads)
        steps[path] = Step(row.ours, places, row.form, _reader(row, checkpoint, places, heads))
    optional = form.ignored if arguments["num_classes"] and not new_head else f"{form.ignored}|{form.heads}"
    surplus = [name for name in names if name not in used and not re.fullmatch(optional, name)]
    _complain(checkpoint, form, missing, surplus, unknown, wrong)
    _adapt(steps, model, arguments, variables, checkpoint, form, options, known, covers)
    return steps


def dummy(shape):
    """Returns an array of a shape that takes no memory."""
    return np.broadcast_to(np.float32(0), tuple(shape))


def _differences(row, found, ours, heads):
    """Says which of a row's tensors have another shape than our weights need."""
    needed = [array.shape for array in row.form.write([dummy(shape) for shape in ours], heads)]
    if row.form is GROUP_NORM:  # newer files have them flat
        found = [(1, 1, 1, *shape) if len(shape) == 1 else shape for shape in found]
    return [f"{name} is {f}, not {n}" for name, f, n in zip(row.theirs, found, needed) if f != n]


def _reader(row, checkpoint, places, heads):
    return lambda: row.form.read([checkpoint.array(place) for place in places], heads)


def _complain(checkpoint, form, missing, surplus, unknown, wrong):
    """Raises one sentence with the lists, if any of them is not empty."""
    heads = [name for name in (*missing, *surplus, *wrong) if re.match(form.heads, name)]
    parts = [
        f"{what}: {listing(names)}"
        for what, names in (
            ("missing in the file", missing),
            ("not in the model", surplus),
            ("of another shape", wrong),
            (f"weights that {form.name} has no name for", unknown),
        )
        if names
    ]
    if parts:
        hint = (
            " For a head of your own, pass head='new'."
            if heads and len(heads) == len(missing + surplus + wrong)
            else ""
        )
        raise ValueError(f"{str(checkpoint.path)!r} does not fit the model; {'; '.join(parts)}.{hint}")


def _root_path(arguments):
    """Returns the path of the stem's first kernel, which has the channels of the images; `None` without a stem."""
    weights = [] if arguments["stem"] is None else arguments["stem"].weights
    return next((weight.path for weight in weights if len(weight.shape) == 4), None)


def _adapt(steps, model, arguments, variables, checkpoint, form, options, known, covers):
    """Puts image size, patch size and channels right in the steps that depend on them."""
    root = _root_path(arguments)
    if root in steps:
        steps[root] = _root(steps[root], variables[root], checkpoint)
    steps[PROJECTION] = _projection(steps[PROJECTION], model, arguments, checkpoint, form, options)
    if POSITION in steps:
        _position(steps, model, arguments, checkpoint, options.resample or form.resample, options.grid or known, covers)


def _kernel_shape(step, checkpoint):
    """Returns a convolution's shape as (height, width, channels, out)."""
    shape = checkpoint.shape(step.places[0])
    if len(shape) != 4:
        raise ValueError(
            f"{step.places[0]} of {str(checkpoint.path)!r} has the shape {shape}, and a kernel has 4 axes."
        )
    return step.form.read([dummy(shape)], None)[0].shape


def _root(step, variable, checkpoint):
    shape, wanted = _kernel_shape(step, checkpoint), tuple(variable.shape)
    if shape[:2] + shape[3:] != wanted[:2] + wanted[3:]:
        raise ValueError(f"The stem's first kernel is {shape} in {str(checkpoint.path)!r}, not {wanted}.")
    adapt.channels(dummy(shape), wanted[2])
    return step._replace(read=lambda: [adapt.channels(step.read()[0], wanted[2])])


def _projection(step, model, arguments, checkpoint, form, options):
    """Reads the patches' kernel for the model's channels and patch size, flat."""
    *patch, channels, width = _kernel_shape(step, checkpoint)
    patch, wanted, stem = tuple(patch), tuple(arguments["patch_size"]), arguments["stem"]
    wanted_channels = model.get_layer("patches").input.shape[-1]
    if width != arguments["width"] or (stem is not None and channels != wanted_channels):
        raise ValueError(
            f"{str(checkpoint.path)!r} projects {channels} channels to {width}, "
            f"and the model {wanted_channels} to {arguments['width']}."
        )
    if patch != wanted and options.patches == "require":
        raise ValueError(
            f"{str(checkpoint.path)!r} has patches of {patch[0]} x {patch[1]} pixels, and the model of "
            f"{wanted[0]} x {wanted[1]}. Pass patches='resize' to resample the kernels."
        )
    adapt.channels(dummy((1, 1, channels, 1)), wanted_channels)
    method = form.resample_patches if options.patches == "resize" else options.patches

    def read():
        kernel = adapt.channels(step.read()[0], wanted_channels)
        kernel = kernel if patch == wanted else resize_patches(kernel, wanted, method)
        return [kernel.reshape(-1, width)]

    return step._replace(read=read)


def _position(steps, model, arguments, checkpoint, method, known, covers):
    """Resamples positions to the model's grid; what prefix tokens have there stays there, or goes into the tokens."""
    step, encoder = steps[POSITION], model.get_layer("encoder")
    shape, prefix, target = checkpoint.shape(step.places[0]), encoder.num_prefix, grid(arguments)
    if len(shape) != 3 or shape[0] != 1 or shape[2] != encoder.width:
        raise ValueError(
            f"Positions of {str(checkpoint.path)!r} have the shape {shape}, not (1, tokens, {encoder.width})."
        )
    cover, source = adapt.covered(shape[1], prefix, encoder.registers, known, target, covers)

    def parts():
        return adapt.table(step.read()[0], prefix, cover, source, target, method)

    if encoder.class_position:
        steps[POSITION] = step._replace(read=lambda: [np.concatenate(parts(), axis=1)])
        return
    steps[POSITION] = step._replace(read=lambda: [parts()[1]])
    start = 0
    for path in (path for path in TOKENS if path in steps and cover):
        token, count = steps[path], checkpoint.shape(steps[path].places[0])[1]
        steps[path] = token._replace(
            places=token.places + step.places,
            read=lambda token=token, at=slice(start, start + count): [token.read()[0] + parts()[0][:, at]],
        )
        start += count

"""Matches tensors with weights: every weight filled, every tensor used, or one error that lists the rest."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.inputs import (
    DISTANCES,
    IN_BLOCKS,
    POSITION,
    PROJECTION,
    REGISTERS,
    TIME,
    adapt_steps,
    dummy,
    stem_kernel_path,
)
from keras_vit.checkpoints.tables import GROUP_NORM, listing
from keras_vit.models.backbone import BEFORE_HEAD, HEADS, variables_of

# In `.keras` files, Google's, timm's and Hugging Face's.
ATTENTION_POOL = r"pool/.*|MAPHead_0/.*|attn_pool\..*|head\.(probe|(attention|layernorm|mlp)\..*)"


class Step(NamedTuple):
    """Some of our weights, the places in the checkpoint that fill them, the `Form`, and a function that reads them."""

    paths: tuple
    places: tuple
    form: object
    read: Callable


class Match(NamedTuple):
    """A row of a table with its placeholders filled."""

    ours: tuple
    theirs: tuple
    form: object


def steps_for(model, description):
    """Matches every weight of a model with a checkpoint's tensors, by names and shapes. Reads no array.

    Args:
        model: A model from `keras_vit.vit`, `keras_vit.vilt` or `keras_vit.video_vit`.
        description: The `Description` of a checkpoint.

    Returns:
        A dictionary from the path of a step's first weight to the `Step`.

    Raises:
        ValueError: If a weight or a tensor is left over, or a shape differs.
    """
    arguments = arguments_of(model, words=True)
    steps = matched(model, arguments, description)
    adapt_steps(steps, model, arguments, description)
    return steps


def alone(model, description):
    """As `steps_for`, for a model whose weights fit as they are: no stem, no pooling, the number of heads as stated."""
    arguments = {"num_heads": description.arguments["num_heads"], "num_classes": None, "stem": None, "pooling": None}
    return matched(model, arguments, description)


def matched(model, arguments, description):
    """As `steps_for`, for a model with these arguments, and before weights are fitted to its input."""
    checkpoint, form, names, options = description.source
    variables = variables_of(model)
    placeholders, new_head = form.placeholders(arguments), options.head == "new"
    depend_on_input = (POSITION, PROJECTION, TIME, stem_kernel_path(arguments))
    filled = {path for path in variables if new_head and path.partition("/")[0] in HEADS}
    steps, used, missing, unnamed, wrong = {}, set(), [], [], []
    for path in variables:
        if path in filled:
            continue
        rows = list(matching(form, path, placeholders))
        row = next((row for row in rows if all(name in names for name in row.theirs)), None)
        if new_head and path == REGISTERS and (row is None or _differences(row, checkpoint, names, variables)):
            used |= set(row.theirs) if row else set()  # other registers, such as those of boxes, are new too
            continue
        if row is None:
            if not (new_head and path.partition("/")[0] in BEFORE_HEAD):
                missing += [n for n in rows[0].theirs if n not in names and n not in missing] if rows else []
                unnamed += [] if rows else [path]
            continue
        filled |= set(row.ours)
        used |= set(row.theirs)
        places, num_heads = tuple(names[name] for name in row.theirs), heads_of(path, arguments)
        if path not in depend_on_input and not path.endswith(DISTANCES) and not IN_BLOCKS.fullmatch(path):
            wrong += _differences(row, checkpoint, names, variables, num_heads)
        steps[path] = Step(row.ours, places, row.form, _reader(row, checkpoint, places, num_heads))
    has_head = arguments["num_classes"] or arguments.get("maps")
    optional = form.ignored if has_head and not new_head else f"{form.ignored}|{form.head_names}"
    if new_head and arguments["pooling"] == "none":
        optional = f"{optional}|{ATTENTION_POOL}"
    surplus = [name for name in names if name not in used and not re.fullmatch(optional, name)]
    _require_none(checkpoint, form, missing, surplus, wrong, unnamed)
    return steps


def fill(model, checkpoint, steps):
    """Checks every number, then assigns the weights."""
    places = sorted({place for step in steps.values() for place in step.places}, key=str)
    bad = [place for place in places if not np.isfinite(checkpoint.array(place)).all()]
    if bad:
        raise ValueError(f"{str(checkpoint.path)!r} has numbers that are not finite in {listing(map(str, bad))}")
    variables = variables_of(model)
    for step in sorted(steps.values(), key=lambda step: str(step.places)):  # what is stacked is read once
        for path, array in zip(step.paths, step.read(), strict=True):
            variables[path].assign(array)


def matching(form, path, placeholders):
    """Yields the rows of a format's table, placeholders filled, that contain the weight of a path."""
    for row in form.rows:
        for ours in _tuple(row.ours):
            pattern = re.escape(ours).replace(r"\{i\}", r"(?P<i>\d+)").replace(r"\{j\}", r"(?P<j>\d+)")
            match = re.fullmatch(pattern.replace(r"\{path\}", "(?P<path>.+)"), path)
            if match:
                values = match.groupdict()
                values |= {f"{key}1": int(value) + 1 for key, value in values.items() if key != "path"}
                yield Match(
                    tuple(name.format(**values) for name in _tuple(row.ours)),
                    tuple(name.format(**values, **placeholders) for name in _tuple(row.theirs)),
                    row.form,
                )


def heads_of(path, arguments):
    """Returns the number of attention heads where a weight belongs: in a block, or in the pool."""
    of_pool = arguments["pool"]["num_heads"] if path.startswith("pool/") else None
    return arguments["num_heads"] if of_pool is None else of_pool


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _differences(row, checkpoint, names, variables, num_heads=None):
    """Lists the tensors of a row whose shapes do not fit our weights."""
    shapes = [checkpoint.shape(names[name]) for name in row.theirs]
    needed = [array.shape for array in row.form.write([dummy(variables[p].shape) for p in row.ours], num_heads)]
    if row.form is GROUP_NORM:  # newer files have them flat
        shapes = [(1, 1, 1, *shape) if len(shape) == 1 else shape for shape in shapes]
    return [f"{name} is {shape}, not {n}" for name, shape, n in zip(row.theirs, shapes, needed) if shape != n]


def _reader(row, checkpoint, places, num_heads):
    return lambda: row.form.read([checkpoint.array(place) for place in places], num_heads)


def _require_none(checkpoint, form, missing, surplus, wrong, unnamed):
    """Raises one error with the lists that are not empty."""
    parts = [
        f"{what}: {listing(names)}"
        for what, names in (
            ("missing in the file", missing),
            ("not in the model", surplus),
            ("of another shape", wrong),
            (f"weights that {form.name} has no name for", unnamed),
        )
        if names
    ]
    if parts:
        others = [*missing, *surplus, *wrong]
        only_head = others and all(re.match(form.head_names, name) for name in others)
        hint = " For a head of your own, pass head='new'." if only_head else ""
        raise ValueError(
            f"{str(checkpoint.path)!r} does not match the model; {'; '.join(parts)}.{hint}{checkpoint.kind()}"
        )

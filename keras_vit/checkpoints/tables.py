"""What a name table is made of: rows, and the forms that arrays take on either side."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_vit import checks
from keras_vit.variants import MAX_BLOCKS, VARIANTS

CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
HALF = {"mean": 0.5, "std": 0.5}
OUR_UNIT = "stem/stage{i}_unit{j}"


class Missing(str):
    """Why an argument cannot be read off a file: the caller must pass it."""


class Assumed(str):
    """What an argument was taken from, where published files with the same tensors differ: the caller is warned."""


class Form(NamedTuple):
    """How the arrays of a row differ: `read(theirs, heads)` gives ours, `write(ours, heads)` theirs; lists both."""

    read: Callable
    write: Callable


class Row(NamedTuple):
    """One of our weights and what a format calls it; several on either side where one is cut into several.

    Names have `{i}` and `{j}` for block, stage and unit, `{i1}` and `{j1}` for the same counted from 1, and what the
    format's `words` gives.
    """

    ours: str | tuple
    theirs: str | tuple
    form: Form


class Format(NamedTuple):
    """A format of checkpoints: its table and its rules.

    - `detect(names)`: whether a file's names are this format's.
    - `canonical(shapes)`: from the names in `rows` to the file's names, or to pairs `(name, index)` into stacked ones.
    - `architecture(shapes, checkpoint)`: `vit`'s arguments; how the source's evaluation prepares images; and a
      dictionary of where the arguments that no tensor shows are from, some of them `Missing` or `Assumed`.
    - `express(arguments, arrays)`: the arrays as they are written, and the JSON files beside them.
    - `words(arguments)`: what fills the braces of the names, for a model with these arguments.
    - `ignored`: names, as a regular expression, that a model need not use.
    - `heads`: likewise for what belongs to the head.
    - `resample`: how the format's own code resizes positions; `resample_patches`: and patch kernels.
    """

    name: str
    rows: tuple
    detect: Callable
    canonical: Callable
    architecture: Callable
    express: Callable
    words: Callable
    ignored: str
    heads: str
    resample: str
    resample_patches: str


def each(read, write):
    """A form that takes arrays one by one."""
    return Form(
        lambda arrays, heads: [read(a, heads) for a in arrays], lambda arrays, heads: [write(a, heads) for a in arrays]
    )


def joined(form, parts=3):
    """A form that puts several of theirs side by side, on the last axis, into one of ours."""
    return Form(
        lambda arrays, heads: [np.concatenate(form.read(arrays, heads), axis=-1)],
        lambda arrays, heads: form.write(np.split(arrays[0], parts, axis=-1), heads),
    )


def parted(form, parts=2):
    """A form that cuts one of theirs, on the first axis, into several of ours."""
    return Form(
        lambda arrays, heads: form.read(np.split(arrays[0], parts, axis=0), heads),
        lambda arrays, heads: [np.concatenate(form.write(arrays, heads), axis=0)],
    )


SAME = each(lambda a, heads: a, lambda a, heads: a)
LINEAR = each(lambda a, heads: a.T, lambda a, heads: a.T)  # PyTorch's (out, in)
CONV = each(lambda a, heads: a.transpose(2, 3, 1, 0), lambda a, heads: a.transpose(3, 2, 0, 1))  # PyTorch's OIHW
GROUP_NORM = each(lambda a, heads: a.reshape(-1), lambda a, heads: a.reshape(1, 1, 1, -1))  # old Flax
HEADS_IN = each(lambda a, heads: a.reshape(len(a), -1), lambda a, heads: a.reshape(len(a), heads, -1))  # (in, heads, d)
HEADS_OUT = each(lambda a, heads: a.reshape(-1, a.shape[-1]), lambda a, heads: a.reshape(heads, -1, a.shape[-1]))
HEADS_BIAS = each(lambda a, heads: a.reshape(-1), lambda a, heads: a.reshape(heads, -1))
# Ours is Keras's attention, (in, heads, d), and theirs one PyTorch matrix.
LINEAR_HEADS_IN = each(lambda a, heads: a.T.reshape(a.shape[1], heads, -1), lambda a, heads: a.reshape(len(a), -1).T)
LINEAR_HEADS_OUT = each(lambda a, heads: a.T.reshape(heads, -1, len(a)), lambda a, heads: a.reshape(-1, a.shape[-1]).T)
FLAT_TO_HEADS = Form(HEADS_BIAS.write, HEADS_BIAS.read)


def norm(ours, theirs, scale, shift, form=SAME):
    """Two rows: a normalisation's scale and shift."""
    return Row(f"{ours}/gamma", f"{theirs}{scale}", form), Row(f"{ours}/beta", f"{theirs}{shift}", form)


def dense(ours, theirs, weight, bias, form=SAME):
    """Two rows: a dense layer's matrix and bias."""
    return Row(f"{ours}/kernel", f"{theirs}{weight}", form), Row(f"{ours}/bias", f"{theirs}{bias}", SAME)


def torch_norm(ours, theirs):
    """Two rows: a PyTorch normalisation."""
    return norm(ours, theirs, ".weight", ".bias")


def torch_dense(ours, theirs):
    """Two rows: a PyTorch linear layer."""
    return dense(ours, theirs, ".weight", ".bias", LINEAR)


def renamed(shapes, aliases):
    """Returns the names under which a table knows a file's, after some replacements, and the file's own.

    Raises:
        ValueError: If two of the file's names become one.
    """
    found = {}
    for name in shapes:
        short = name
        for pattern, replacement in aliases:
            short = re.sub(pattern, replacement, short)
        if short in found:
            raise ValueError(f"Two tensors are the same weight: {found[short]} and {name}.")
        found[short] = name
    return found


def blocks(shapes, pattern):
    """Returns how many blocks there are.

    Raises:
        ValueError: Unless they are numbered from 0 without a gap, and at most `MAX_BLOCKS`.
    """
    found = {int(match[1]) for match in map(pattern.match, shapes) if match}
    if not found or found != set(range(len(found))):
        raise ValueError(f"Blocks are numbered from 0 on, without a gap. Found: {sorted(found)[:10]}")
    if len(found) > MAX_BLOCKS:
        raise ValueError(f"A model has at most {MAX_BLOCKS} blocks. Found: {len(found)}")
    return len(found)


def need(shapes, name, rank):
    """Returns the shape of a tensor that an architecture is read off."""
    if name not in shapes or len(shapes[name]) != rank or 0 in shapes[name]:
        raise ValueError(
            f"The architecture is read off {name!r}, with {rank} axes. "
            f"Found: {shapes.get(name, 'no such tensor')}; the file has {listing(shapes)}"
        )
    return shapes[name]


def published_heads(width):
    """Returns the number of heads of the published models of a width, and where that is from; `None` if `Missing`."""
    for row in VARIANTS.values():
        if row.width == width:
            return row.num_heads, f"published models of width {width}"
    if width % 64:
        return None, Missing(
            f"No tensor shows the number of heads, and none is published for width {width}: pass num_heads."
        )
    return width // 64, Assumed("64 channels a head, as in most published models")


def stages(shapes, pattern):
    """Returns the number of units of each stage of a ResNet, from names that number both."""
    found = {tuple(map(int, match.groups())) for match in map(pattern.match, shapes) if match}
    counts = [sum(stage == i for stage, _ in found) for i in sorted({stage for stage, _ in found})]
    first = min(found, default=(0, 0))
    if found != {(first[0] + i, first[1] + j) for i, count in enumerate(counts) for j in range(count)}:
        raise ValueError(f"Stages and units are numbered without a gap. Found: {sorted(found)[:10]}")
    return tuple(counts)


def grid(arguments):
    """Returns `(rows, columns)` of the patches that `vit`'s arguments give; what is left at the edge is not counted."""
    size = checks.pair("image_size", arguments["image_size"])
    if arguments.get("stem") is not None:
        size = arguments["stem"].compute_output_shape((None, *size, arguments["channels"]))[1:3]
    return tuple(side // step for side, step in zip(size, checks.pair("patch_size", arguments["patch_size"])))


def stride(arguments):
    """Returns the height and width in pixels of what becomes a token."""
    of_stem = 1 if arguments.get("stem") is None else 4 * 2 ** max(len(arguments["stem"].stages) - 1, 0)
    return tuple(side * of_stem for side in checks.pair("patch_size", arguments["patch_size"]))


def channels_of(arguments, name):
    """Returns a mean or deviation as a list, one number a channel."""
    return np.broadcast_to(arguments[name], (arguments["channels"],)).tolist()


def same(one, other):
    """Returns whether two values of an argument mean the same: one number for all channels, or one for each."""
    if any(value is None or isinstance(value, (str, bool)) for value in (one, other)):
        return one == other
    lengths = {np.size(one), np.size(other)} - {1}
    return len(lengths) < 2 and np.allclose(one, other, rtol=1e-6, atol=0)


def listing(names, limit=10):
    """Returns the first names and the count."""
    names = sorted(name if name.isprintable() else repr(name) for name in map(str, names))
    more = f", ... ({len(names)} in all)" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more

"""Name tables: their rows, how arrays differ between formats, and helpers that read an architecture off shapes."""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_vit.models.variants import MAX_BLOCKS, VARIANTS
from keras_vit.utils import checks

CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
HALF = {"mean": 0.5, "std": 0.5}
DINOV3_HEADS = {192: 3, 384: 6, 768: 12, 1024: 16, 1280: 20, 4096: 32}  # by width
OUR_UNIT = "stem/stage{i}_unit{j}"


class Missing(str):
    """The reason why no file shows an argument: the caller must pass it."""


class Assumed(str):
    """The source of an argument in which published files with the same tensors differ: the caller is warned."""


class Otherwise(str):
    """What the source does otherwise than a model can, whatever its arguments: the caller is warned."""


class Form(NamedTuple):
    """Converts the arrays of a row: `read(theirs, num_heads)` to ours, `write(ours, num_heads)` to theirs, as lists."""

    read: Callable
    write: Callable


class Row(NamedTuple):
    """One of our weights and its name in a format; several names if one tensor is split into several.

    Placeholders in names: `{i}` and `{j}` for block, stage and unit, `{i1}` and `{j1}` for the same counted from 1, and
    those of the format's `placeholders`.
    """

    ours: str | tuple
    theirs: str | tuple
    form: Form


NEVER = r"(?!)"  # matches no name


class Format(NamedTuple):
    """A format of checkpoints: its table and its rules.

    - `detect(names)`: whether a file's names are of this format.
    - `architecture(shapes, checkpoint)`: `vit`'s arguments; how the source's evaluation prepares images; and a
      dictionary of the origins of the arguments that no tensor shows, some of them `Missing` or `Assumed`. Of a text
      tower or decoder: `text_tower`'s or `text_decoder`'s arguments; metadata that says whose tokens it takes, and the
      decoder's ids of start, end and padding; and the origins.
    - `aliases`: pairs of a regular expression and its replacement, from a file's names to those in `rows`.
    - `canonical(shapes)`: in place of `aliases`: maps the names in `rows` to the file's names, or to `(name, index)` or
      `(name, index, axis)`: a block of a stacked tensor.
    - `express(arguments, arrays)`: the arrays to write, and the JSON files to write next to them; `None` if
      `save_checkpoint` does not write this format.
    - `suits(arguments)`: whether its library writes a model with these arguments so, and not in its next format.
    - `placeholders(arguments)`: values of the placeholders in names, for a model with these arguments.
    - `ignored`: regular expression of names that a model need not use.
    - `head_names`: regular expression of names that belong to the head.
    - `resample`: how the format's own code resizes positions; `resample_patches`: how it resizes patch kernels;
      `resample_distances`: how it resizes relative positions, see `resampling.resize_distances`.
    """

    name: str
    rows: tuple
    detect: Callable
    architecture: Callable
    aliases: tuple = ()
    canonical: Callable | None = None
    express: Callable | None = None
    suits: Callable = lambda arguments: True
    placeholders: Callable = lambda arguments: {}
    ignored: str = NEVER
    head_names: str = NEVER
    resample: str = "bicubic"
    resample_patches: str = "bilinear"
    resample_distances: str | None = None

    def names(self, shapes):
        """Returns a dictionary from the names in `rows` to places in a file with tensors of these shapes."""
        return self.canonical(shapes) if self.canonical else renamed(shapes, self.aliases)

    @property
    def library(self):
        """The first word of its name."""
        return self.name.partition("-")[0]


def each(read, write):
    """A form that converts arrays one by one."""
    return Form(
        lambda arrays, heads: [read(a, heads) for a in arrays], lambda arrays, heads: [write(a, heads) for a in arrays]
    )


def joined(form, parts=3):
    """A form that concatenates several of their arrays on the last axis into one of ours."""
    return Form(
        lambda arrays, heads: [np.concatenate(form.read(arrays, heads), axis=-1)],
        lambda arrays, heads: form.write(np.split(arrays[0], parts, axis=-1), heads),
    )


def parted(form, parts=2, axis=0):
    """A form that splits one of their arrays, on the first axis or another, into several of ours."""
    return Form(
        lambda arrays, heads: form.read(np.split(arrays[0], parts, axis=axis), heads),
        lambda arrays, heads: [np.concatenate(form.write(arrays, heads), axis=axis)],
    )


SAME = each(lambda a, heads: a, lambda a, heads: a)
LINEAR = each(lambda a, heads: a.T, lambda a, heads: a.T)  # PyTorch's (out, in)
CONV = each(lambda a, heads: a.transpose(2, 3, 1, 0), lambda a, heads: a.transpose(3, 2, 0, 1))  # PyTorch's OIHW
DEPTHWISE = each(lambda a, heads: a.transpose(2, 3, 0, 1), lambda a, heads: a.transpose(2, 3, 0, 1))
GROUP_NORM = each(lambda a, heads: a.reshape(-1), lambda a, heads: a.reshape(1, 1, 1, -1))  # old Flax
HEADS_IN = each(lambda a, heads: a.reshape(len(a), -1), lambda a, heads: a.reshape(len(a), heads, -1))  # (in, heads, d)
HEADS_OUT = each(lambda a, heads: a.reshape(-1, a.shape[-1]), lambda a, heads: a.reshape(heads, -1, a.shape[-1]))
HEADS_BIAS = each(lambda a, heads: a.reshape(-1), lambda a, heads: a.reshape(heads, -1))
# Ours is the kernel of Keras's attention, (in, heads, d); theirs is a PyTorch matrix.
LINEAR_HEADS_IN = each(lambda a, heads: a.T.reshape(a.shape[1], heads, -1), lambda a, heads: a.reshape(len(a), -1).T)
LINEAR_HEADS_OUT = each(lambda a, heads: a.T.reshape(heads, -1, len(a)), lambda a, heads: a.reshape(-1, a.shape[-1]).T)
FLAT_TO_HEADS = Form(HEADS_BIAS.write, HEADS_BIAS.read)
UNBIASED = Form(  # a kernel and a bias of ours, from a PyTorch matrix without a bias
    lambda arrays, heads: [arrays[0].T, np.zeros(len(arrays[0]), "float32")], lambda ours, heads: [ours[0].T]
)


def norm(ours, theirs, scale, shift, form=SAME):
    """Two rows: the scale and shift of a normalization."""
    return Row(f"{ours}/gamma", f"{theirs}{scale}", form), Row(f"{ours}/beta", f"{theirs}{shift}", form)


def dense(ours, theirs, weight, bias, form=SAME):
    """Two rows: the kernel and bias of a dense layer."""
    return Row(f"{ours}/kernel", f"{theirs}{weight}", form), Row(f"{ours}/bias", f"{theirs}{bias}", SAME)


def torch_norm(ours, theirs):
    """Two rows: a PyTorch normalization."""
    return norm(ours, theirs, ".weight", ".bias")


def torch_dense(ours, theirs):
    """Two rows: a PyTorch linear layer."""
    return dense(ours, theirs, ".weight", ".bias", LINEAR)


def renamed(shapes, aliases):
    """Replaces aliases in a file's names. Returns a dictionary from the table's names to the file's own.

    A table of no registers is left out.

    Raises:
        ValueError: If two of the file's names become the same.
    """
    names = {}
    for name in shapes:
        if name.endswith("register_tokens") and isinstance(shapes, dict) and 0 in shapes[name]:
            continue
        short = name
        for pattern, replacement in aliases:
            short = re.sub(pattern, replacement, short)
        if short in names:
            raise ValueError(f"Two tensors are the same weight: {names[short]} and {name}.")
        names[short] = name
    for head in ("head", "classifier"):  # a linear layer of a `Sequential`, alone or after what has no weights
        inside = [name for name in names if name.startswith(f"{head}.")]
        last = next((name.rpartition(".")[0] for name in inside if re.fullmatch(r"\w+\.\d+\.weight", name)), None)
        if last and set(inside) <= {f"{last}.weight", f"{last}.bias"} and len(shapes[names[f"{last}.weight"]]) == 2:
            names |= {name.replace(last, head): names.pop(name) for name in inside}
    return names


def shared(names, one, each, count):
    """Returns a file's names with one for each of several blocks in place of that of a tensor that all of them share.

    Args:
        names: Dictionary from the table's names to the file's own.
        one: Name of the shared tensor.
        each: Name of a block's, with `{i}`.
        count: Number of blocks.

    Raises:
        ValueError: If blocks have one of their own too.
    """
    if one not in names:
        return names
    own = [each.format(i=i) for i in range(count)]
    if set(own) & set(names):
        raise ValueError(f"Blocks must have relative positions of their own, or share them. Received: both, with {one}")
    return {name: place for name, place in names.items() if name != one} | dict.fromkeys(own, names[one])


def classes_of(shapes, head="head"):
    """Returns the number of classes of a linear head, with or without a bias; 0 without such a head."""
    shape = shapes.get(f"{head}.weight", ())
    return shape[0] if len(shape) == 2 else 0


def blocks(shapes, pattern):
    """Returns the number of blocks.

    Raises:
        ValueError: Unless they are numbered from 0 without a gap, and at most `MAX_BLOCKS`.
    """
    numbers = {int(match[1]) for match in map(pattern.match, shapes) if match}
    if not numbers or numbers != set(range(len(numbers))):
        raise ValueError(f"Blocks must be numbered from 0 without a gap. Received: {sorted(numbers)[:10]}")
    if len(numbers) > MAX_BLOCKS:
        raise ValueError(f"A model must have at most {MAX_BLOCKS} blocks. Received: {len(numbers)}")
    return len(numbers)


def need(shapes, name, rank):
    """Returns the shape of a tensor that shows the architecture; raises ValueError if it has another rank."""
    if name not in shapes or len(shapes[name]) != rank or 0 in shapes[name]:
        raise ValueError(
            f"The file needs a tensor {name!r} with {rank} axes. "
            f"Received: {shapes.get(name, 'no such tensor')}; the file has {listing(shapes)}"
        )
    return shapes[name]


def published_heads(width):
    """Returns the number of heads of published models of a width, and its origin; `None` and `Missing` if unknown."""
    for row in VARIANTS.values():
        if row.width == width:
            return row.num_heads, f"published models of width {width}"
    if width % 64:
        return None, Missing(
            f"No tensor shows the number of heads, and no model of width {width} is published: pass num_heads."
        )
    return width // 64, Assumed("64 channels a head, as in most published models")


def stages(shapes, pattern):
    """Returns the number of units of each stage of a ResNet, from names that number both."""
    pairs = {tuple(map(int, match.groups())) for match in map(pattern.match, shapes) if match}
    counts = [sum(stage == i for stage, _ in pairs) for i in sorted({stage for stage, _ in pairs})]
    first = min(pairs, default=(0, 0))
    if pairs != {(first[0] + i, first[1] + j) for i, count in enumerate(counts) for j in range(count)}:
        raise ValueError(f"Stages and units must be numbered without a gap. Received: {sorted(pairs)[:10]}")
    return tuple(counts)


def grid(arguments):
    """Returns `(rows, columns)` of the patches of a model with these arguments; a remainder at the edge is no patch.

    Of a model of clips, `(steps, rows, columns)` of its tubelets, but of a factorised one, whose time has its own.
    """
    size = checks.pair("image_size", arguments["image_size"])
    if arguments.get("stem") is not None:
        size = arguments["stem"].compute_output_shape((None, *size, arguments["channels"]))[1:3]
    joint = arguments.get("frames") and not arguments.get("time_depth")
    steps = (arguments["frames"] // arguments["tubelet"],) if joint else ()
    return steps + tuple(side // step for side, step in zip(size, checks.pair("patch_size", arguments["patch_size"])))


def square_of(count):
    """Returns the square grid whose relative positions have this number of distances, or `None`."""
    side = (math.isqrt(max(count, 0)) + 1) // 2
    return (side, side) if (2 * side - 1) ** 2 == count else None


def stride(arguments):
    """Returns the height and width in pixels from one token to the next."""
    of_stem = 1 if arguments.get("stem") is None else 4 * 2 ** max(len(arguments["stem"].stages) - 1, 0)
    return tuple(side * of_stem for side in checks.pair("patch_size", arguments["patch_size"]))


def channels_of(arguments, name):
    """Returns a mean or deviation as a list with one number per channel."""
    return np.broadcast_to(arguments[name], (arguments["channels"],)).tolist()


def same(one, other):
    """Returns whether two values of an argument are equal; one number for all channels equals a list of it."""
    if any(value is None or isinstance(value, (str, bool, dict)) for value in (one, other)):
        return one == other
    lengths = {np.size(one), np.size(other)} - {1}
    return len(lengths) < 2 and np.allclose(one, other, rtol=1e-6, atol=0)


def listing(names, limit=10):
    """Lists the first names; adds the count if there are more."""
    names = sorted(name if name.isprintable() else repr(name) for name in map(str, names))
    more = f", ... ({len(names)} in all)" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more

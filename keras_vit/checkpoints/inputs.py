"""Fits weights to a model's image size, patch size and channels: the first kernel, the patches', the positions."""

import math
import re

import numpy as np

from keras_vit.checkpoints import adapt
from keras_vit.checkpoints.tables import grid, square_of
from keras_vit.utils.resampling import resize_distances, resize_grid, resize_patches

REGISTERS = "encoder/register_tokens"
TOKENS = ("encoder/class_token", "encoder/distillation_token", REGISTERS)
POSITION, PROJECTION = "encoder/position_embedding", "encoder/projection/kernel"
DISTANCES = "/distances/table"  # the end of the paths of relative positions
TIME = "steps/table"  # positions of the time steps of a factorised encoder
IN_BLOCKS = re.compile(r"position_\d+/table")  # paths of positions between blocks


def stem_kernel_path(arguments):
    """Returns the path of the stem's first kernel, which reads the images' channels; `None` without a stem."""
    weights = [] if arguments["stem"] is None else arguments["stem"].weights
    return next((weight.path for weight in weights if len(weight.shape) == 4), None)


def adapt_steps(steps, model, arguments, description):
    """Replaces the steps that depend on the model's input, a dictionary as of `match.steps_for`."""
    checkpoint, form, _, options = description.source
    source, class_position = options.grid or description.grid, description.arguments["tokens"].get("class_position")
    root = stem_kernel_path(arguments)
    if root in steps:
        shape = next(tuple(v.shape) for v in model.weights if v.path == root)
        steps[root] = _stem_kernel(steps[root], shape, checkpoint)
    steps[PROJECTION] = _projection(steps[PROJECTION], model, arguments, checkpoint, form, options)
    for path in [path for path in steps if path == POSITION or IN_BLOCKS.fullmatch(path)]:
        method = options.resample or form.resample
        _position(path, steps, model, arguments, checkpoint, method, source, class_position)
    if TIME in steps:
        steps[TIME] = _time(steps[TIME], model, checkpoint)
    for path in [path for path in steps if path.endswith(DISTANCES)]:
        method = options.resample or form.resample_distances
        steps[path] = _distances(steps[path], model, arguments, checkpoint, method, source)


def dummy(shape):
    """Returns an array of a shape that takes no memory."""
    return np.broadcast_to(np.float32(0), tuple(shape))


def read_shape(form, shape):
    """Returns the shape of a tensor as ours."""
    return form.read([dummy(shape)], None)[0].shape


def _kernel_shape(step, checkpoint):
    """Returns a convolution's shape as (height, width, channels, out)."""
    shape = checkpoint.shape(step.places[0])
    try:
        kernel = read_shape(step.form, shape)
    except ValueError:  # another number of axes
        kernel = ()
    if len(kernel) != 4:
        raise ValueError(f"{step.places[0]} of {str(checkpoint.path)!r} must have 4 axes. Received: shape={shape}")
    return kernel


def _stem_kernel(step, target, checkpoint):
    shape = _kernel_shape(step, checkpoint)
    if shape[:2] + shape[3:] != target[:2] + target[3:]:
        raise ValueError(f"The stem's first kernel is {shape} in {str(checkpoint.path)!r}, not {target}.")
    adapt.channels(dummy(shape), target[2])  # raises if they cannot be adapted
    return step._replace(read=lambda: [adapt.channels(step.read()[0], target[2])])


def _projection(step, model, arguments, checkpoint, form, options):
    """Resizes the patches' kernel to the model's channels and patch size, and flattens it."""
    if "tubelet" in arguments:
        return _tubelet_projection(step, model, arguments, checkpoint)
    *patch, channels, width = _kernel_shape(step, checkpoint)
    patch, target, stem = tuple(patch), tuple(arguments["patch_size"]), arguments["stem"]
    wanted_channels = model.get_layer("patches").input.shape[-1]
    if width != arguments["width"] or (stem is not None and channels != wanted_channels):
        raise ValueError(
            f"{str(checkpoint.path)!r} projects {channels} channels to {width}, "
            f"and the model {wanted_channels} to {arguments['width']}."
        )
    if patch != target and options.patches == "require":
        raise ValueError(
            f"{str(checkpoint.path)!r} has patches of {patch[0]} x {patch[1]} pixels, and the model of "
            f"{target[0]} x {target[1]}. Pass patches='resize' to resample the kernels."
        )
    adapt.channels(dummy((1, 1, channels, 1)), wanted_channels)  # raises if they cannot be adapted
    method = form.resample_patches if options.patches == "resize" else options.patches

    def read():
        kernel = adapt.channels(step.read()[0], wanted_channels)
        kernel = kernel if patch == target else resize_patches(kernel, target, method)
        return [kernel.reshape(-1, width)]  # (patch height * width * channels, width)

    return step._replace(read=read)


def _tubelet_projection(step, model, arguments, checkpoint):
    """Brings the kernel of tubelets to the model's channels, and flattens it."""
    shape = read_shape(step.form, checkpoint.shape(step.places[0]))
    *tubelet, channels, width = shape
    count, own = model.get_layer("patches").input.shape[-1], [arguments["tubelet"], *arguments["patch_size"]]
    if tubelet != own or width != arguments["width"]:
        raise ValueError(
            f"{str(checkpoint.path)!r} has tubelets of {' x '.join(map(str, tubelet))} for a width of {width}, and the "
            f"model of {' x '.join(map(str, own))} for {arguments['width']}."
        )
    adapt.channels(dummy((1, 1, channels, 1)), count)  # raises if they cannot be adapted

    def read():
        kernel = step.read()[0]
        kernel = adapt.channels(kernel.reshape(-1, 1, channels, width), count)  # (time * height * width, 1, c, width)
        return [kernel.reshape(-1, width)]

    return step._replace(read=read)


def _position(path, steps, model, arguments, checkpoint, method, source_grid, class_position):
    """Resamples positions to the model's grid.

    Positions of prefix tokens stay in the table if the model's table covers them, else are added to the tokens.
    """
    step, encoder = steps[path], model.get_layer("encoder")
    shape = read_shape(step.form, checkpoint.shape(step.places[0]))
    prefix, target = encoder.num_own, grid(arguments)
    if len(shape) != 3 or shape[0] != 1 or shape[2] != encoder.width:
        raise ValueError(
            f"Positions of {str(checkpoint.path)!r} have the shape {shape}, not (1, tokens, {encoder.width})."
        )
    registers = encoder.registers if REGISTERS in steps else 0  # new ones have no position in the file
    prefix_size = prefix - encoder.registers + registers
    cover, source = adapt.covered(shape[1], prefix_size, registers, source_grid, target, class_position)

    def parts():
        return adapt.table(step.read()[0], prefix, cover, source, target, method)

    if encoder.class_position or path != POSITION:
        steps[path] = step._replace(read=lambda: [np.concatenate(parts(), axis=1)])
        return
    steps[POSITION] = step._replace(read=lambda: [parts()[1]])
    start = 0
    for path in (path for path in TOKENS if path in steps and cover):
        token = steps[path]
        count = read_shape(token.form, checkpoint.shape(token.places[0]))[1]
        steps[path] = token._replace(
            places=token.places + step.places,
            read=lambda token=token, at=slice(start, start + count): [token.read()[0] + parts()[0][:, at]],
        )
        start += count


def _time(step, model, checkpoint):
    """Resamples the positions of time steps linearly to the model's; that of the class token stays."""
    shape, count = read_shape(step.form, checkpoint.shape(step.places[0])), model.get_layer("steps").steps
    width = model.get_layer("encoder").width
    if len(shape) != 3 or shape[0] != 1 or shape[1] < 2 or shape[2] != width:
        raise ValueError(
            f"Positions of time in {str(checkpoint.path)!r} have the shape {shape}, not (1, 1 + steps, {width})."
        )

    def read():
        (table,) = step.read()  # (1, 1 + steps, width)
        resized = resize_grid(table[0, 1:], (1, table.shape[1] - 1), (1, count), "bilinear")
        return [np.concatenate([table[:, :1], resized[None]], axis=1)]

    return step._replace(read=read)


def _distances(step, model, arguments, checkpoint, method, source_grid):
    """Resamples relative positions to the model's grid."""
    count, heads = read_shape(step.form, checkpoint.shape(step.places[0]))
    patches = count - 3 * (model.get_layer("encoder").num_prefix > 0)
    source = source_grid if source_grid and math.prod(2 * side - 1 for side in source_grid) == patches else None
    source = source or square_of(patches)
    if source is None or heads != arguments["num_heads"]:
        raise ValueError(
            f"{step.places[0]} of {str(checkpoint.path)!r} must be the distances of a square grid, for "
            f"{arguments['num_heads']} heads; pass another source's as grid=(rows, columns). Received: {(count, heads)}"
        )
    return step._replace(read=lambda: [resize_distances(step.read()[0], source, grid(arguments), method)])

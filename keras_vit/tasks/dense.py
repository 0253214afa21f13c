"""Models with an output at each place of the image: tokens as feature maps, heads, and their weights."""

import math

import keras

from keras_vit.models.inputs import IMAGES
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

SCALES = (4, 8, 16, 32)  # stride, in pixels, of the feature maps that DPT fuses


def encoder(arguments, outputs, what, build=None):
    """Returns the Vision Transformer without head and pooling.

    Args:
        arguments: Arguments of `keras_vit.vit`, a dictionary.
        outputs: The only `num_classes` that they may have, besides 0 and `None`.
        what: Name of the whole model in an error, such as `"segmenter"`.
        build: Function of the arguments, such as `vit` of a task on clips; `None` for that of images.

    Returns:
        Model from images, `(batch, height, width, channels)`, 0..255, to tokens, `(batch, prefix + patches, width)`; or
        from clips, `(batch, frames, height, width, channels)`, to those of all tubelets.

    Raises:
        ValueError: If the arguments ask for a head or pooling.
    """
    from keras_vit.checkpoints.pretrained import from_arguments

    fixed = {"num_classes": (0, None, outputs), "pooling": ("none",)}
    wrong = [f"{name}={arguments[name]!r}" for name in fixed if arguments.get(name, fixed[name][0]) not in fixed[name]]
    if wrong:
        raise ValueError(f"A {what}'s head is the task's: it has no pooling. Received: {', '.join(wrong)}")
    checks.one_of("head", arguments.get("head"), (None, "require", "new"))
    if arguments.get("weights") is not None:  # a classifier's pooling and head are not loaded
        arguments = {"representation_size": None, **arguments, "head": "new"}
    return (build or from_arguments)(**{**arguments, "num_classes": 0, "pooling": "none"})


def finished(encoder, output, arguments, classes, what, inputs=None):
    """Returns the model from an encoder's images to an output, with the weights of the head if `weights` has them.

    Args:
        encoder: Model from `encoder`.
        output: Symbolic output tensor, `(batch, ...)`, computed from the encoder's output.
        arguments: As in `encoder`.
        classes: Names of the classes.
        what: As in `encoder`.
        inputs: Symbolic inputs by name, of a model with more than the encoder's.

    Raises:
        ValueError: With `head="require"`, if the weights have another head.
    """
    from keras_vit.checkpoints.dense_heads import load_head
    from keras_vit.checkpoints.pretrained import location
    from keras_vit.layers.functional import Model

    model = Model(inputs or encoder.input, output, name=encoder.name)
    weights, head = arguments.get("weights"), arguments.get("head")
    if weights is None or head == "new":
        return model
    place = location(weights)  # `None` for published names: none is of these tasks
    loaded = None if place is None else load_head(model, place, classes)
    if not loaded and head:
        raise ValueError(
            f"`weights` must be a {what} with this head and these classes. Received: {checks.shown(weights)}"
        )
    if loaded is False:
        warn(f"{str(weights)!r} has a head of other shapes: the encoder is loaded, and the head is new")
    return model


def head_in(weights):
    """Returns the options for `models.map_heads.with_head` of the head in `weights`; `None` without such a head."""
    from keras_vit.checkpoints import dense_heads
    from keras_vit.checkpoints.pretrained import location

    place = None if weights is None else location(weights)
    return None if place is None else dense_heads.head_in(place)


def dpt(encoder, units, width=None, start=None):
    """Returns the output of a `DPTHead` on four blocks, or on a finer feature map of the stem and three blocks.

    Of clips, it is that of the middle frame: the head sees the tokens of its time step, which attended to all others.

    Args:
        encoder: Model from `encoder`.
        units: Channels of the output.
        width: Channels of the head; `None` for half of the encoder's width, at most 256.
        start: Value of each channel before training, `(units,)`, the same at all positions; `None` for random weights.

    Returns:
        Symbolic tensor, `(batch, rows, columns, units)`.
    """
    from keras_vit.layers import DPTHead
    from keras_vit.models import anatomy

    blocks = anatomy.blocks(encoder)
    tokens = [blocks[math.ceil(i * len(blocks) / 4) - 1].output for i in (1, 2, 3)] + [encoder.output]
    maps = [feature_map(encoder, patches(encoder, x, f"_{i}"), f"map_{i}") for i, x in enumerate(tokens)]
    height, rows = encoder.input_shape[-3], anatomy.grid(encoder)[-2]
    stride, scales = height // rows, SCALES
    stem, factors = _middle_frame(encoder, encoder.get_layer("patches").input), ()
    if any(layer.name == "stem" for layer in encoder.layers) and stem.shape[1] > rows:
        finest = height // stem.shape[1]
        maps, factors, scales = [stem, *maps[1:]], (None,), [finest * 2**i for i in (1, 2, 3)]
    head = DPTHead(
        units,
        width or min(256, max(encoder.output.shape[-1] // 2, 1)),
        factors=(*factors, *(2.0 ** round(math.log2(stride / scale)) for scale in scales)),
        name="head",
        dtype=encoder.dtype_policy,
    )
    output = head(maps)
    if start is not None:
        head.classifier.kernel.assign(keras.ops.zeros(head.classifier.kernel.shape))
        head.classifier.bias.assign(start)
    return output


def patches(encoder, tokens, suffix=""):
    """Returns patch tokens, `(batch, patches, width)`, from tokens, `(batch, prefix + patches, width)`.

    Of clips, those of the middle frame's time step.
    """
    from keras_vit.models import anatomy

    (*steps, rows, columns), first, last = anatomy.grid(encoder), anatomy.num_prefix(encoder), 0
    for count in steps:
        place = middle_of(encoder.input_shape[1]) * count // encoder.input_shape[1]
        first, last = first + place * rows * columns, (count - 1 - place) * rows * columns
    crop = keras.layers.Cropping1D((first, last), name=f"patch_tokens{suffix}", dtype=tokens.dtype)
    return crop(tokens) if first or last else tokens


def middle_of(frames):
    """Returns which of the frames of a model's clips is the middle one, as `sampling.frame_indices` centers them."""
    return frames // 2


def _middle_frame(encoder, x):
    """Returns the middle one of stacked frames, `(batch, rows, columns, channels)`; of images `x` itself."""
    if len(encoder.input_shape) == IMAGES:
        return x
    frames, rows = encoder.input_shape[1], x.shape[1] // encoder.input_shape[1]
    place = middle_of(frames)
    sides = ((place * rows, (frames - 1 - place) * rows), (0, 0))
    return keras.layers.Cropping2D(sides, data_format="channels_last", name="middle_frame", dtype=x.dtype)(x)


def feature_map(encoder, tokens, name):
    """Returns patch tokens, `(batch, patches, width)`, as a feature map, `(batch, rows, columns, width)`."""
    from keras_vit.models import anatomy

    size = *anatomy.grid(encoder)[-2:], tokens.shape[-1]
    return keras.layers.Reshape(size, name=name, dtype=tokens.dtype)(tokens)

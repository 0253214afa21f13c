"""The model of segmentation by sentences: two towers and a decoder, new ones or those of other weights."""

import math

from keras_vit.checkpoints.own_models import own_file
from keras_vit.checkpoints.pretrained import from_pretrained
from keras_vit.explain.towers import Towers, tokens_for
from keras_vit.layers import FiLMDecoder
from keras_vit.models import anatomy
from keras_vit.models.open_segmenter import PARTS, decoder_with_pairs, joined, open_segmenter
from keras_vit.tasks import dense
from keras_vit.traits import Traits
from keras_vit.utils import checks


def built(task, arguments):
    """Builds the model with a new text tower and decoder, each image with its own text; see `open_segmenter`.

    Args:
        task: A `Segment` with `text=True`.
        arguments: Arguments of `keras_vit.vit`; `weights` are of the image tower.

    Raises:
        ValueError: For a decoder that does not fit the images.
    """
    image = dense.encoder(arguments, 0, "segmenter")
    text = task.new_tower(task.tower or {}, arguments.get("dtype"))
    depth = len(anatomy.blocks(image))
    return _with_decoder(task, image, text, [math.ceil(i * depth / 3) - 1 for i in (1, 2, 3)])


def started(task, arguments):
    """Builds the model with the towers of `weights`, and with their decoder if they have one.

    Args:
        task: As in `built`.
        arguments: `weights` of both towers: a CLIPSeg, a run of this task, a CLIP or a run of `Contrast`; and of
            `image_size`, `dtype` and `head` those that differ from them.

    Raises:
        ValueError: For weights of another kind, other images or texts than theirs, or a decoder that does not fit.
    """
    weights, head, own = arguments["weights"], arguments.get("head"), own_file(arguments["weights"]) is not None
    asked = {name: arguments.get(name) for name in ("image_size", "dtype")}
    asked = {name: value for name, value in asked.items() if value is not None and (name == "dtype" or not own)}
    model = from_pretrained(weights, part="both", **asked)
    structure = Traits(model).structure
    if structure not in ("towers", "open_segmenter"):
        raise ValueError(
            "`weights` must be a segmenter of texts, such as CLIPSeg, or two towers, such as CLIP. "
            f"Received: {str(weights)!r}"
        )
    image, text = map(model.get_layer, PARTS[:2])
    for tower in (image, text):  # a file keeps what was frozen
        tower.trainable = False
        tower.trainable = True
    _check_towers(task, image, text, arguments)
    if structure == "towers" or head == "new":
        if head == "require":
            raise ValueError(f"`weights` must have a decoder of masks. Received: {str(weights)!r}, head='require'")
        depth = len(anatomy.blocks(image))
        return _with_decoder(task, image, text, [i * depth // 4 for i in (1, 2, 3)])  # CLIPSeg's of 12 blocks
    if task.head not in ("film", {"kind": "film"}):
        raise ValueError(
            "The decoder of `weights` has its own sizes: set model.head='new' for another. "
            f"Received: task.head={task.head!r}"
        )
    return joined(image, text, _checked(decoder_with_pairs(model.get_layer(PARTS[2]), True), image))


def _check_towers(task, image, text, arguments):
    """Raises ValueError unless towers that were loaded take what the task gives them."""
    task.check_words_of(arguments["weights"])
    if task.words or task.tokens:
        tokens_for(Towers(image, text, 1.0, None), task.ids_of())
    if text.input_shape[1] != task.length:
        raise ValueError(
            f"Texts must have as many ids as in model.weights, {text.input_shape[1]}. "
            f"Received: task.length={task.length}"
        )
    shape, size = image.input_shape[1:], arguments.get("image_size")
    if size is not None and checks.pair("image_size", size) != shape[:2]:
        raise ValueError(f"Images must be of the size in model.weights, {shape[:2]}. Received: image_size={size}")
    if (channels := arguments.get("channels", shape[2])) != shape[2]:
        raise ValueError(f"Images must have the channels of model.weights, {shape[2]}. Received: channels={channels}")


def _with_decoder(task, image, text, blocks):
    """Returns the segmenter of two towers with a new decoder of the task's head, by default on these blocks."""
    options, depth = dict(task.head_options), len(anatomy.blocks(image))
    own, encoder = options.pop("blocks"), image.get_layer("encoder")
    blocks = sorted({max(i, 0) for i in blocks}) if own is None else list(own)
    if blocks[-1] >= depth:
        raise ValueError(f"head.blocks must be numbers from 0 to {depth - 1}. Received: {blocks}")
    grid, size = anatomy.grid(image), image.input_shape[1:3]
    sides = {side / count for side, count in zip(size, grid)}
    if len(sides) > 1 or not min(sides).is_integer():
        raise ValueError(f"The decoder needs square patches that fill images. Received: {grid} patches on {size}")
    if encoder.windows > 1:
        raise ValueError("The decoder needs tokens in the order of their patches. Received: tokens in windows")
    side, units = int(min(sides)), text.output_shape[-1]
    decoder = FiLMDecoder(grid, side, units, name=PARTS[2], dtype=encoder.dtype_policy, pairs=True, **options)
    return open_segmenter(image, text, _checked(decoder, image), blocks)


def _checked(decoder, image):
    """Returns a decoder; raises ValueError unless its masks are as large as the images."""
    size = tuple(image.input_shape[1:3])
    if decoder.size != size:
        raise ValueError(
            f"Masks must be of the images' size, {size}, as refined=True draws them of patches of 16 pixels only. "
            f"Received: masks of {decoder.size}"
        )
    return decoder

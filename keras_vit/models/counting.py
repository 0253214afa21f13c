"""Counts parameters and multiply-adds (MACs) of models."""

import math
from functools import partial
from typing import NamedTuple

import keras

from keras_vit.layers import CrossAttention, MergingBlock, MultiHeadSelfAttention, TokenPool
from keras_vit.models.variants import NAMES, parse
from keras_vit.models.vit import vit
from keras_vit.utils import checks
from keras_vit.utils.keras_private import shapes_only, sublayers

TRANSPOSED = keras.layers.Conv2DTranspose
CONVOLUTIONS = (keras.layers.Conv2D, keras.layers.DepthwiseConv2D, keras.layers.SeparableConv2D, TRANSPOSED)


class Size(NamedTuple):
    """Size of one variant, as `list_variants` returns it."""

    name: str
    width: int
    depth: int
    mlp_dim: int
    num_heads: int
    parameters: int
    gmacs: float
    source: str


class LayerSize(NamedTuple):
    """Cost of one layer, as `by_layer` returns it."""

    name: str
    kind: str
    output: tuple  # shape for one image, of the first output
    parameters: int
    macs: int  # for one image


def list_variants(image_size: int | tuple[int, int] = 224, num_classes: int = 1000) -> list[Size]:
    """Lists every variant at its published patch sizes, with parameters and multiply-adds.

    Args:
        image_size: Integer or `(height, width)`, in pixels. Variants with patches that do not divide it are left out.
        num_classes: Number of classes of the head.

    Returns:
        A list of `Size`. `gmacs` counts 10^9 multiply-adds for one image, attention included.
    """
    sizes = []
    for name in NAMES:
        encoder, stride, hybrid = parse(name)
        if any(side % (stride or hybrid.stride) for side in checks.pair("image_size", image_size)):
            continue
        count = partial(_count, name, encoder.depth, image_size=image_size, num_classes=num_classes)
        parameters, macs = shapes_only(count)
        sizes.append(Size(name, *encoder[:4], parameters, macs / 1e9, (hybrid or encoder).source))
    return sizes


def count_macs(model: keras.Model) -> int:
    """Counts the multiply-adds of one image through dense layers, 2-D convolutions and this package's attention.

    Of texts of any length, one word counts. Norms, activations and softmax are not counted, as in the published
    tables, nor your own layers. A layer that is called more than once counts once.

    Args:
        model: A built Keras model.

    Returns:
        An integer.
    """
    checks.model(model)
    return sum(_layer_macs(layer) for layer in sublayers(model, include_self=False))


def by_layer(model: keras.Model) -> list[LayerSize]:
    """Counts parameters and multiply-adds of each layer, in the model's order.

    Args:
        model: A built functional Keras model.

    Returns:
        A list of `LayerSize`. Their sums are `model.count_params()` and `count_macs(model)`.
    """
    rows = []
    for layer in model.layers:
        inside = [layer, *sublayers(layer, include_self=False)]
        output, macs = tuple(keras.tree.flatten(layer.output)[0].shape[1:]), sum(_layer_macs(part) for part in inside)
        rows.append(LayerSize(layer.name, type(layer).__name__, output, layer.count_params(), macs))
    return rows


def _sizes(shape):
    """Returns a shape without its batch; of texts of any length, it is that of one word."""
    return tuple(size or 1 for size in shape[1:])


def _layer_macs(layer):
    if isinstance(layer, CrossAttention):
        (tokens, width), (context, _) = map(_sizes, layer.get_build_config()["shapes_dict"].values())
        return 2 * tokens * context * width
    shape = (None, *_sizes((layer.get_build_config() or {}).get("input_shape") or ()))
    if isinstance(layer, keras.layers.Dense):
        return math.prod(shape[1:]) * layer.units
    if isinstance(layer, CONVOLUTIONS):
        kernels = [v for v in layer.weights if v.path.endswith("kernel")]
        positions = shape if isinstance(layer, TRANSPOSED) else layer.compute_output_shape(shape)
        return math.prod(positions[1:3]) * sum(math.prod(v.shape) for v in kernels)
    if isinstance(layer, MultiHeadSelfAttention):
        seen = shape[1] // (layer.windows["count"] ** 2 if layer.windows else 1)
        return 2 * shape[1] * seen * shape[2]  # scores, then the weighted sum of values
    if isinstance(layer, MergingBlock):
        return layer.merging_macs(*shape[1:])
    if isinstance(layer, TokenPool) and layer.pooling == "map":
        tokens, width = shape[1] - layer.start, shape[2]
        return 2 * width**2 + 2 * tokens * width**2 + 2 * tokens * width  # query, output; key, value; attention
    return 0


def _count(name, depth, **arguments):
    """Returns (parameters, multiply-adds). Both are linear in depth, so one and two blocks are enough."""
    counts = []
    for blocks in (1, 2):
        model = vit(name, depth=blocks, **arguments)
        counts.append((model.count_params(), count_macs(model)))
    return tuple(one + (depth - 1) * (two - one) for one, two in zip(*counts))

"""The convolutional stem that `vit` applies before patching."""

import math

import keras

from keras_vit.layers.base import check_channels_last
from keras_vit.layers.inputs.conv_stem import ConvStem
from keras_vit.layers.inputs.resnet_stem import ResNetStem
from keras_vit.utils import checks


def stem_for(stem, sizes, dtype, norm=True):
    """Returns the layer called "stem" that `vit`'s argument describes.

    Args:
        stem: As in `vit`; `None` for the variant's own.
        sizes: The model's `variants.Sizes`.
        dtype: Precision policy of a stem that is built here.
        norm: Whether the convolutions of `(filters, stride)` pairs have batch normalization.

    Returns:
        A Keras layer or model from images, `(batch, height, width, channels)`, to a feature map, also of rank 4; `None`
        to cut patches from the image.

    Raises:
        ValueError: For anything else, or a model with several inputs or outputs.
    """
    if stem is None:
        return None if sizes.stages is None else ResNetStem(sizes.stages, name="stem", dtype=dtype)
    if stem == "conv":
        return ConvStem(_widths(sizes), name="stem", dtype=dtype)
    if isinstance(stem, (tuple, list)):
        if not stem or any(not isinstance(one, (tuple, list)) or len(one) not in (2, 3) for one in stem):
            raise ValueError(
                "A stem of convolutions must be (filters, stride) pairs, or with the convolutions of a residual branch "
                f"as a third number. Received: stem={checks.shown(stem)}"
            )
        return ConvStem(*zip(*((*one, 0)[:3] for one in stem)), norm=norm, name="stem", dtype=dtype)
    if isinstance(stem, keras.Model):
        if len(stem.inputs) != 1 or len(stem.outputs) != 1:
            raise ValueError(f"A stem must have one input and one output. Received: {stem.name!r}")
        check_channels_last(stem, "stem")
        return keras.Model(stem.inputs[0], stem.outputs[0], name="stem")  # the same layers and weights
    if not isinstance(stem, keras.layers.Layer):
        raise ValueError(
            "`stem` must be 'conv', (filters, stride) pairs, a Keras layer or a Keras model. "
            f"Received: stem={checks.shown(stem)}"
        )
    check_channels_last(stem, "stem")
    if not stem.built:
        stem.name = "stem"
    return stem


def patch_size_on(feature_map, image, stride):
    """Returns the patch size on a feature map, `(height, width)`, for patches `stride` pixels apart in the image.

    Args:
        feature_map: Shape of the stem's output, or of the image without a stem, batch first.
        image: `(height, width)` of the image.
        stride: Distance of two patches in pixels of the image.

    Raises:
        ValueError: If it is not the shape of a feature map, or no patch size divides it.
    """
    if len(feature_map) != 4 or None in feature_map[1:]:
        raise ValueError(
            f"A stem must return (batch, rows, columns, channels). Received: output shape {tuple(feature_map)}"
        )
    rows, columns = feature_map[1:3]
    sides = [stride * on_map / pixels for on_map, pixels in zip((rows, columns), image)]
    if any(side < 1 or side % 1 for side in sides):
        raise ValueError(
            f"Patches of {stride} pixels do not fit a stem that makes {rows} x {columns} of an image of "
            f"{image[0]} x {image[1]}. Pass `patch_size`, which counts on the feature map."
        )
    return tuple(int(side) for side in sides)


def _widths(sizes):
    """Returns the channels of a stem that halves the image until each position is a patch; they double to the width."""
    halvings = math.log2(sizes.stride) if sizes.stride else 0
    if halvings < 1 or halvings % 1:
        raise ValueError(f"stem='conv' needs a patch size that is a power of two. Received: patches of {sizes.stride}")
    return [sizes.width >> i for i in reversed(range(int(halvings)))]

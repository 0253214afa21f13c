"""Depth of images at their own aspect ratio: the weights of a model of one size, at the size of each image."""

import functools
import math
import os
import re
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_vit.models.backbone import check_plain
from keras_vit.models.inputs import image_shape
from keras_vit.preparing.evaluation_rule import keeping_aspect
from keras_vit.preparing.preprocessing import listed
from keras_vit.traits import traits_of
from keras_vit.utils.depth_maps import resized_map
from keras_vit.utils.resampling import resize_grid

SIZES = 8  # whose own layers are kept, the last used
LARGEST = 6  # times the model's own number of patches: the memory of attention grows with its square
PARTS = r"rescale|patches|encoder|norm_pre|block_\d+|norm|pool|head"  # what a model is made of, after its input


def estimate_depth(model: keras.Model, images: Any) -> list[np.ndarray]:
    """Estimates how far each pixel of images is, at each image's own size.

    A model whose published preprocessing keeps the aspect ratio, as Depth Anything's, sees each image at its own: both
    sides are scaled by one factor, which brings one of them to the model's length, and rounded to multiples of the
    patch. Of the two possible factors, the one nearer to 1 is taken. Positions are resampled as in the original. Any
    other model sees images of its one size. Maps are resized back bicubically, as transformers'
    `post_process_depth_estimation` does.

    Args:
        model: A model of depth: from `from_pretrained("hf://depth-anything/Depth-Anything-V2-Small-hf")`, or trained by
            `Depth`.
        images: As in `keras_vit.preprocess`.

    Returns:
        A list of float32 arrays, `(height, width)`, one for each image: meters, or relative inverse depth, as the
        model was trained.

    Raises:
        ValueError: For another model, or one whose images are cropped; for an image more than about 6 times as long as
            wide, or one that `keras_vit.preprocess` refuses.
        FileNotFoundError: If a file does not exist.

    Example:

    >>> estimate_depth(model, "photo.jpg")[0].shape
    (480, 640)
    """
    about = traits_of(model, "`model` must estimate depth, such as Depth Anything.", gives="depth")
    own = own_aspect(about) or _OneSize(about)
    maps = []
    for image in listed(images):
        size, pixels = own.read(image)
        maps.append(np.maximum(resized_map(own(pixels[None])[0, ..., 0], size), 0))
    return maps


def own_aspect(about):
    """Returns the `OwnAspect` of a model whose source keeps the aspect ratio, by its `Traits`; `None` for another."""
    aspect, head, model = about.rule.get("aspect") or {}, about.map_head, about.model
    if head is None or "positions" not in aspect or about.gives != "depth":
        return None
    plain = all(re.fullmatch(PARTS, layer.name) for layer in model.layers[1:])
    fits = all(aspect["multiple"] % side == 0 for side in model.get_layer("patches").patch_size)
    return OwnAspect(about, aspect, head) if plain and fits else None


class _OneSize:
    """What `OwnAspect` is, for a model that sees all images at its one size."""

    def __init__(self, about):
        rule = about.rule
        if rule["resize"] != "direct":
            raise ValueError(
                "`model` must see all of an image, and the metadata of its first layer say that it is cut: "
                f"preprocess(model, images) is what it sees. Received: resize={rule['resize']!r}"
            )
        self.model = about.model
        self.preparation = about.preparation

    def read(self, image):
        return self.preparation.resized(image, lambda shape: self.preparation.size)

    def __call__(self, images):
        return ops.convert_to_numpy(self.model(images, training=False))


class OwnAspect:
    """A model of depth at the size of each image. Blocks are the model's; layers of one grid are copied for each size.

    Args:
        about: The `Traits` of a model with a `DepthHead`.
        aspect: `aspect` in its evaluation rule; see `keras_vit.preprocess`.
        head: The `map_head` of these traits.

    Call arguments:
        images: Array `(batch, height, width, channels)`, both sides multiples of the patch.

    Output shape:
        `(batch, height, width, 1)`, an array.
    """

    def __init__(self, about, aspect, head):
        check_plain(about.model, "Depth at an image's own aspect ratio", lora=False)
        self.model = about.model
        self.preparation = about.preparation
        self.aspect = aspect
        self.taps = head["blocks"]
        self.normed = head["normed"]
        self.layers_of = functools.lru_cache(SIZES)(self._layers_of)

    def read(self, image):
        """Returns the `(height, width)` of an image, and its pixels at the size for the model."""
        name = repr(str(image)) if isinstance(image, (str, os.PathLike)) else "an array"
        return self.preparation.resized(image, functools.partial(self.size_of, name=name))

    def size_of(self, shape, name="an image"):
        """Returns the size at which the model sees an image of `(height, width)`; ValueError for a very long one."""
        full = image_shape(self.model)[:2]
        size = keeping_aspect(shape, full, self.aspect["multiple"])
        if math.prod(size) > LARGEST * math.prod(full):
            raise ValueError(
                f"An image must be less than about {LARGEST} times as long as wide to keep its aspect ratio: cut it. "
                f"Received: {name} of {shape[1]} x {shape[0]} pixels"
            )
        return size

    def __call__(self, images):
        part = self.model.get_layer
        patches = part("patches")(part("rescale")(ops.convert_to_tensor(images, "float32")))
        encoder, head = self.layers_of(tuple(images.shape[1:3]), patches.shape[-1])
        x, tokens = encoder(patches), []  # (batch, prefix + patches, width)
        x = part("norm_pre")(x) if any(layer.name == "norm_pre" for layer in self.model.layers) else x
        for i in range(self.taps[-1] + 1):
            x = part(f"block_{i}")(x)
            tokens += [part("norm")(x) if self.normed else x] if i in self.taps else []
        return ops.convert_to_numpy(head(tokens if len(tokens) > 1 else tokens[0]))

    def _layers_of(self, size, values):
        """Returns copies of the encoder and the head for images of a size."""
        own, head = self.model.get_layer("encoder"), self.model.get_layer("head")
        patch, source = self.model.get_layer("patches").patch_size, head.grid
        grid = tuple(side // step for side, step in zip(size, patch))
        encoder = type(own).from_config({**own.get_config(), "grid": grid})
        encoder.build((None, math.prod(grid), values))
        _fill(encoder, own, functools.partial(self._positions, own.num_prefix * own.class_position, source, grid))
        other = type(head).from_config({**head.get_config(), "grid": grid, "size": head.size and size})
        shape = (None, encoder.num_prefix + math.prod(grid), own.width)
        other.build([shape] * len(self.taps) if len(self.taps) > 1 else shape)
        _fill(other, head)
        return encoder, other

    def _positions(self, prefix, source, target, table):
        patches = resize_grid(table[0, prefix:], source, target, self.aspect["positions"])
        return np.concatenate([table[:, :prefix], patches[None]], axis=1)


def _fill(layer, own, resampled=None):
    """Sets the weights of a copy of a layer, of another shape by a function of them."""
    for weight, value in zip(layer.weights, map(ops.convert_to_numpy, own.weights), strict=True):
        weight.assign(value if weight.shape == value.shape else resampled(value))

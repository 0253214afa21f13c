"""Prepares images of any size as the evaluation of a model's source did."""

import os
from typing import Any

import keras
import numpy as np

from keras_vit.layers.inputs.rescale import Rescale
from keras_vit.models.autoencoder import takes_latents
from keras_vit.models.backbone import input_shape_of
from keras_vit.models.inputs import CLIPS, IMAGES
from keras_vit.models.metadata import metadata
from keras_vit.preparing.clip_preparation import prepared
from keras_vit.preparing.evaluation_rule import DEFAULT, before_crop, checked, crop_start
from keras_vit.preparing.of_bands import of_bands, within
from keras_vit.preparing.padded import padded
from keras_vit.preparing.pixel_range import range_of, warn_unscaled
from keras_vit.utils import bands, checks, deep_files
from keras_vit.utils.images import plain_pixels, read_pixels, strips, warn_if_shallow
from keras_vit.utils.resampling import area_matrix, resize_matrix
from keras_vit.utils.value_range import ends

TENSORFLOW = {"bilinear": "bilinear", "bicubic": "bicubic-table"}  # without antialiasing


def preprocess(model: keras.Model, images: Any) -> np.ndarray:
    """Resizes and crops images as the evaluation of the model's source did.

    The metadata of the model's first layer has the rule as `evaluation`:

    - `resize`: `"direct"` squashes an image to the model's size. `"crop"` resizes its shorter side to
      `size / crop_pct` and takes the center; `"squash"` resizes both sides so. `"window"` takes the center as it is.
      `"aspect"` cuts the image to the model's aspect ratio, then resizes it: as Keras's
      `image_dataset_from_directory(..., crop_to_aspect_ratio=True)`. `"pad"` pads an image on the right and below
      with black to a square, and resizes that bilinearly after a Gaussian filter, as OWLv2's processor does.
    - `crop_pct`: a number from 0 to 1; for `"squash"` also a pair, for height and width.
    - `crop_offset`: where the crop begins if the rest is odd. `"round"`: at the rounded half of it, as torchvision and
      timm do. `"floor"`: at the half rounded down, as transformers does.
    - `interpolation` and `antialias`: with `antialias` Pillow resizes, else TensorFlow's own rule applies;
      `"area"` averages areas.
    - `as_floats`: that the source resizes floats by TensorFlow's rule, with `antialias` too, as KerasHub does: nothing
      is rounded, and what bicubic interpolation puts beyond the range stays.
    - `full_size`: models whose patches do not divide this size, such as timm's with patches of 14 at 384 pixels,
      ignore its last rows and columns. Images are resized to `full_size`, then cut.
    - `aspect`: that the source keeps the aspect ratio; only `keras_vit.estimate_depth` and `predict` follow it. Sides
      are multiples of its `multiple`, and positions are resampled by the method `positions`.
    - `photos`: that the source cuts photos into `"windows"`, or fits them and adds black, `"padded"`, or resizes them
      to the model's size, `"whole"`; only `keras_vit.segment` follows it.

    The model's first layer applies mean and deviation.

    Of a model of clips, `frames` of the metadata says which frames: `stride`, the step from one to the next in the
    middle of the clip, or `segments`, one of each of as many equal parts. A clip that is too short repeats its last;
    with `centered`, for boxes of the middle frame, which is seen at half of a file's duration, its first and its last.

    Args:
        model: A model from `keras_vit.vit` or `keras_vit.from_checkpoint`.
        images: Image files, Pillow images, or arrays `(height, width)` or `(height, width, channels)` of pixels in the
            model's range, 0 to 255 unless it states another, in any sizes; or a single one. Files are decoded as in
            training, upright by their EXIF data. A model of three channels takes gray images too. For a model of clips,
            clip files, or arrays `(frames, height, width, channels)`.

    Returns:
        float32 array, `(batch, height, width, channels)`, pixels in that range; of clips `(batch, frames, height,
        width, channels)`.

    Raises:
        TypeError: If `model` is not a Keras model, or an image is of another type.
        ValueError: For a file that is not an image or too large, or an array without pixels; for a picture of bytes, if
            the model takes others.
        FileNotFoundError: If a file does not exist.

    Example:

    >>> preprocess(model, ["cat.jpg", "dog.png"]).shape
    (2, 224, 224, 3)
    """
    return Preparation(model)(images)


class Preparation:
    """How images become what a model takes: its size, its rule and its range, which are looked up once.

    Args:
        model: As in `preprocess`; errors as there.
    """

    def __init__(self, model):
        if not isinstance(model, keras.Model):
            raise TypeError(f"`model` must be a Keras model. Received: {type(model).__name__}")
        shape = input_shape_of(model)
        if not isinstance(shape, tuple) or len(shape) not in (IMAGES, CLIPS) or None in shape[1:]:
            raise ValueError(f"`model` must take images of one known size. Received: input shape {shape}")
        if takes_latents(model):
            raise ValueError(f"`model` must take images. Received: {model.name!r}, a decoder, which takes latents")
        self.model = model
        self.shape = shape
        self.size = shape[-3:-1]
        self.rule = evaluation_rule(model)
        self.range = range_of(model)
        self.reading = bands.kept_in(metadata(model))  # of a model of bands

    def __call__(self, images):
        """Returns what `preprocess` does."""
        if len(self.shape) == CLIPS:
            return prepared(self.model, images, self._cut, self.range)
        if not (images := listed(images)):
            raise ValueError("`images` must contain an image. Received: an empty list")
        pixels = np.stack([self._open(image, self._cut) for image in images])
        if self.range is None:
            warn_unscaled(self.model, pixels)
        return pixels

    def whole(self, image):
        """Returns the pixels of an image at its own size, `(height, width, channels)`; errors as in `preprocess`."""
        return self._open(image, lambda pixels: pixels)

    def sized(self, image):
        """Returns the `(height, width)` of an image, and what `preprocess` makes of it, `(*size, channels)`."""
        return self._open(image, lambda pixels: (pixels.shape[:2], self._cut(pixels)))

    def resized(self, image, size_of):
        """Returns the `(height, width)` of an image, and its pixels at the size that a function makes of it.

        They are resized as in `preprocess`, and float32 `(*size, channels)`.
        """

        def both(pixels):
            shape = pixels.shape[:2]
            return shape, _within(_resize(pixels, size_of(shape), self.rule), self.rule, self.range)

        return self._open(image, both)

    def _open(self, image, then):
        """Does what the function `_open` does, with the model's range and bands."""
        named = isinstance(image, (str, os.PathLike))
        if named and self.range is not None and (self.reading is not None or deep_files.is_named(image)):
            return then(of_bands(image, self.reading, self.shape[-1], self.range))
        if self.reading is not None and not named and not _is_pillow(image):
            image = within(image, self.reading, self.range)
        return _open(image, self.shape[-1], then, self.range)

    def _cut(self, pixels):
        """Returns the pixels of an image, `(height, width, channels)`, resized and cropped."""
        height, width = self.size
        low = 0 if self.range is None else ends(self.range)[0]
        return _within(_prepare(pixels, self.rule["full_size"], self.rule, low)[:height, :width], self.rule, self.range)


def evaluation_rule(model):
    """Returns how the evaluation of a model's source prepares images, with defaults filled in.

    Returns:
        A dictionary of `resize`, `crop_pct`, `crop_offset`, `interpolation`, `antialias` and `full_size`; see
        `preprocess`.

    Raises:
        ValueError: For an invalid rule, such as one from a damaged configuration.
    """
    size = list(input_shape_of(model)[-3:-1])
    rule = {**DEFAULT, **metadata(model).get("evaluation", {})}
    return checked({**rule, "full_size": (_is_own(model) and rule.get("full_size")) or size})


def _is_own(model):
    """Returns whether a model has the first layer itself, and not in a nested model."""
    return any(isinstance(layer, Rescale) for layer in model.layers)


def data_resize(size, rule):
    """Returns what `data.augment.cuts` takes as `resize` to follow an evaluation rule, for images of a size."""
    if rule["resize"] == "squash":
        return tuple(before_crop(size, rule))
    if rule["resize"] == "crop":
        return min(size) / rule["crop_pct"]
    return None if rule["resize"] == "direct" else rule["resize"]


def _prepare(image, size, rule, black=0):
    """Resizes and crops one image, `(height, width, channels)`; what is padded has the value `black`."""
    shape = image.shape[:2]
    if rule["resize"] == "direct":
        return _resize(image, size, rule)
    if rule["resize"] == "pad":
        return padded(image, size, black)
    if rule["resize"] == "window":
        share = min(1, *(have / want for have, want in zip(shape, size)))  # a smaller image is enlarged
        box = [round(share * want) for want in size]
        top, left = ((have - want) // 2 for have, want in zip(shape, box))
        return _resize(image[top : top + box[0], left : left + box[1]], size, rule)
    if rule["resize"] == "aspect":
        ratio = [side * want // other for side, want, other in zip(shape[::-1], size, size[::-1])]
        box = [max(min(pair), 1) for pair in zip(shape, ratio)]
        top, left = ((have - want) // 2 for have, want in zip(shape, box))
        return _resize(image[top : top + box[0], left : left + box[1]], size, rule)
    target = before_crop(size, rule)
    if rule["resize"] == "squash":
        larger = target
    elif target[0] == target[1]:
        larger = [int(target[0] * have / min(shape)) for have in shape]
    else:
        ratio = min(have / want for have, want in zip(shape, target))
        larger = [round(have / ratio) for have in shape]
    image = _resize(image, larger, rule)
    top, left = crop_start(image.shape, size, rule)
    return image[top : top + size[0], left : left + size[1]]


def _within(pixels, rule, limits):
    """Returns resized pixels without what bicubic interpolation puts beyond the range, if that is known."""
    return pixels if limits is None or rule.get("as_floats") else np.clip(pixels, *ends(limits))


def _resize(image, size, rule):
    method = f"{rule['interpolation']}-antialias" if rule["antialias"] else TENSORFLOW.get(rule["interpolation"])
    if not rule["antialias"] or rule.get("as_floats") or rule["interpolation"] == "area":
        matrix = area_matrix if rule["interpolation"] == "area" else resize_matrix
        rows, columns = (matrix(s, t, method) for s, t in zip(image.shape, size))
        return np.matmul(columns, _weighted(rows, image)).astype("float32")
    from PIL import Image

    method = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}[rule["interpolation"]]
    bands = image[..., 0] if image.shape[2] == 1 else image
    if image.shape[2] in (1, 3) and bands.dtype == np.uint8:
        resized = np.asarray(Image.fromarray(bands).resize(size[::-1], method), "float32")
    else:  # floats, and other numbers of channels, one by one
        parts = [
            Image.fromarray(band.astype("float32")).resize(size[::-1], method) for band in np.moveaxis(image, 2, 0)
        ]
        resized = np.stack([np.asarray(part) for part in parts], axis=2)
    return resized.reshape(*size, image.shape[2])


def _weighted(matrix, image):
    """Returns `(target, columns, channels)`: each row is a weighted sum of the image's rows, by `(target, rows)`.

    Rows without weight are left out, and few columns are converted to float64 at a time.
    """
    used = matrix.any(0)
    if not used.all():
        matrix, image = matrix[:, used], image[used]
    values = image.reshape(len(image), -1)
    sums = np.empty((len(matrix), values.shape[1]))
    for some in strips(values.shape[1], len(values)):
        sums[:, some] = matrix @ values[:, some]
    return sums.reshape(len(matrix), *image.shape[1:])


def listed(images, axes=4):
    """Returns images as a list, also a single one; with `axes=5` clips."""
    if isinstance(images, (str, os.PathLike)) or _is_pillow(images) or getattr(images, "ndim", axes) < axes:
        return [images]
    if isinstance(images, (bytes, dict)) or not hasattr(images, "__iter__"):
        raise TypeError(f"`images` must be image files or arrays, or a list of them. Received: {type(images).__name__}")
    return list(images)


def _is_pillow(image):
    from PIL import Image

    return isinstance(image, Image.Image)


def _open(image, channels, then, value_range=checks.BYTES):
    """Returns what a function makes of the pixels of a file or an array, `(height, width, channels)`."""
    if isinstance(image, (str, os.PathLike)) or _is_pillow(image):
        if channels not in (1, 3):
            raise ValueError(
                f"A model of image files must have 1 or 3 channels. Received: a model of {channels}, and {str(image)!r}"
            )
        if value_range != checks.BYTES:
            of = "of {:g} to {:g}".format(*(value_range or (0, 0)))
            of = "that rescales nothing, or of which that cannot be told" if value_range is None else of
            raise ValueError(
                "A model of image files must take pixels from 0 to 255, and rescale them first, such as by "
                f"keras_vit.Rescale(). Received: a model {of}, and {str(image)!r}. Call model.predict with arrays "
                "of pixels as it was trained on"
            )
        if not _is_pillow(image):
            return read_pixels(image, channels, then)
        pixels = plain_pixels(image, channels)
        if image.mode.startswith("I;16"):
            warn_if_shallow(pixels.max())
        return then(pixels)
    try:
        pixels = np.asarray(image)
    except ValueError:  # a list of lists of different lengths
        pixels = np.empty((), object)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3:
        kind = f"an array of shape {pixels.shape}" if hasattr(image, "shape") else type(image).__name__
        raise TypeError(f"An image must be a file, or an array (height, width[, channels]). Received: {kind}")
    if not pixels.size:
        raise ValueError(f"An image must have pixels. Received: an array of shape {pixels.shape}")
    if channels == 3 and pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)  # as of gray files
    return then(checks.pixels(pixels[None], (None, None, channels), value_range=value_range)[0])

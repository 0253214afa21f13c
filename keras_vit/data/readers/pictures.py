"""Images and masks of a caller's dataset: arrays, Pillow images, encoded files, or paths."""

import io
import os
import warnings

import numpy as np
import tensorflow as tf

from keras_vit.data.parallel import each
from keras_vit.data.readers.decoding import decode, error_reason
from keras_vit.utils import checks, images, instance_maps
from keras_vit.utils.cores import cores
from keras_vit.utils.depth_maps import depth_file, depth_pixels
from keras_vit.utils.warned import refuse_or_leave_out

AT_ONCE = 256  # files that are handed to tf.data
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # their first bytes


def image(value, channels):
    """Returns an image as the bytes of a file, as pixels, `(height, width, channels)`, or as why it cannot be read."""
    try:
        value = _file(value)
    except (ValueError, FileNotFoundError) as error:
        return str(error).removesuffix(".")
    if isinstance(value, bytes):
        return value
    if hasattr(value, "getbands"):  # of Pillow
        return images.plain_pixels(value, channels if channels in (1, 3) else 3)
    pixels = np.asarray(value)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or pixels.dtype.kind not in "uif":
        raise ValueError(
            "An image must be an array (height, width, channels), a Pillow image or an encoded file. Received: "
            f"{type(value).__name__}, shape={pixels.shape}, dtype={pixels.dtype}"
        )
    return pixels


def mask(value):
    """Returns a segmentation mask as uint8, `(height, width)`."""
    value, bits = _file(value), 8
    if isinstance(value, bytes):
        bits = value[24] if value[:4] == b"\x89PNG" else 0  # in the header
        value = images.opened(value)
    if hasattr(value, "getbands"):
        if value.mode not in ("1", "L", "P") or not bits:
            raise ValueError(f"A mask must be a gray PNG, or one with a palette. Received: mode {value.mode!r}")
        stretched = value.mode == "L" and bits < 8  # by Pillow
        value = np.asarray(value).astype("uint8") // (255 // (2**bits - 1) if stretched else 1)
    values = np.asarray(value)
    values = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    fits = values.ndim == 2 and values.dtype.kind in "uib"
    if not fits or (values.size and not 0 <= values.min() <= values.max() <= 255):
        raise ValueError(
            "A mask must be class indices from 0 to 255 of the shape (height, width). Received: "
            f"shape={values.shape}, dtype={values.dtype}"
        )
    return values.astype("uint8")


def instances(value):
    """Returns a map of objects as int32, `(height, width)`; an array, since files of others have other numbers."""
    if isinstance(value, (str, bytes, os.PathLike, dict)):
        raise ValueError(
            "An instance mask must be an array of integers, such as `keras_vit.instance_map` returns. "
            f"Received: {type(value).__name__}"
        )
    return instance_maps.pixels(np.asarray(value))


def depth(value):
    """Returns the depth of each pixel, float32 `(height, width)`, 0 in holes."""
    if isinstance(value, (str, os.PathLike)):
        return depth_pixels(depth_file(value))
    value = _file(value)
    return depth_pixels(np.asarray(value) if hasattr(value, "getbands") else value)


def _file(value):
    """Returns the bytes of a file, given as these, as a path, or as a dictionary of both; any other value as it is."""
    if isinstance(value, dict) and {"bytes", "path"} <= set(value):  # of Hugging Face's `Image(decode=False)`
        value = value["bytes"] if value["bytes"] is not None else value["path"]
        if isinstance(value, bytes) and value[:4] in TIFF:  # so it keeps Pillow images of palettes, CMYK or 16 bits
            return _tiff(value)
    if hasattr(value, "dtype") and np.ndim(value) == 0:
        value = np.asarray(value).item()
    return images.encoded(value) if isinstance(value, (str, os.PathLike)) else value


def _tiff(data):
    """Returns the bytes of a TIFF as a Pillow image; raises ValueError for one that cannot be decoded."""
    from PIL import Image

    try:
        with images.LOCK, warnings.catch_warnings(action="ignore"):
            picture = Image.open(io.BytesIO(data), formats=("TIFF",))
            if picture.width * picture.height <= images.MOST_PIXELS:
                picture.load()
                return picture
    except Exception as error:  # Pillow raises many kinds of errors
        raise ValueError(f"is a TIFF that cannot be read: {error}") from None
    raise ValueError(f"is too large: it has more than {images.MOST_PIXELS // 10**6} million pixels")


def together(items, on_bad="raise"):
    """Returns images as one array of pixels if they have one size, else as a vector of files.

    Args:
        items: Results of `image`.
        on_bad: `Data.bad_images`.

    Returns:
        uint8 or float32 `(images, height, width, channels)`, or a vector of bytes; and the positions of the images that
        it has among `items`.
    """
    if not any(isinstance(item, (bytes, str)) for item in items) and len({item.shape for item in items}) == 1:
        pixels = checks.pixels(np.stack(items))
        whole = pixels.dtype.kind in "ui" or not any((part % 1).any() for part in pixels)
        return pixels.astype("uint8" if whole else "float32", copy=False), range(len(items))
    files = each(_png, items, "encoding images")
    faults = [None] * len(files) if _all_decode(files) else each(_fault, files)
    bad = [f"image {i} ({fault})" for i, fault in enumerate(faults) if fault]
    refuse_or_leave_out(bad, len(items), "images", on_bad)
    readable = [i for i, fault in enumerate(faults) if not fault]
    return np.array([files[i] for i in readable], object), readable


def _png(pixels):
    """Returns pixels as the bytes of a PNG, any other result of `image` as it is."""
    from PIL import Image

    if isinstance(pixels, (bytes, str)):
        return pixels
    checks.pixels(pixels[None])
    if pixels.shape[-1] not in (1, 3) or (pixels.dtype.kind == "f" and (pixels % 1).any()):
        raise ValueError(
            "Images of different sizes must be whole numbers, in one or three channels, and batches of gray ones have "
            "a channel axis, (batch, height, width, 1). "
            f"Received: shape={pixels.shape}, dtype={pixels.dtype}"
        )
    file, pixels = io.BytesIO(), pixels.astype("uint8")
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _all_decode(files):
    """Returns whether all files are images, in a fraction of the time that it takes to ask for each fault."""
    if any(isinstance(file, str) or images.fault(file) for file in files):
        return False

    def parts():
        return (files[i : i + AT_ONCE] for i in range(0, len(files), AT_ONCE))

    dataset = tf.data.Dataset.from_generator(parts, output_signature=tf.TensorSpec((None,), "string")).unbatch()

    def size(item):
        return tf.size(decode(item, 3, orientation=tf.constant(1)))  # not turned: that cannot fail

    sizes = dataset.map(size, num_parallel_calls=cores(), deterministic=False)
    try:
        return sizes.reduce(np.int64(0), lambda count, _: count + 1) == len(files)
    except tf.errors.OpError:
        return False


def _fault(data):
    """Returns why the bytes of a file are no image, or `None`; a text says it already."""
    if isinstance(data, str):
        return data
    try:
        fault = images.fault(data)
        if fault is None:
            with images.in_turn(data):
                decode(tf.constant(data), 3, images.orientation(data))
    except Exception as error:  # any error of the decoder is a fault of this file
        fault = error_reason(error)
    return fault


def maps_together(values, pixels, what, encode):
    """Returns masks or depth as one array, `(images, height, width, 1)`, or as files where the images are files.

    Args:
        values: A map of each image, `(height, width)`.
        pixels: The images.
        what: What one is, such as `"A mask"`.
        encode: Function from a map to the bytes of a file.
    """
    sizes = [image.shape[:2] if pixels.ndim == 4 else images.image_size(image) for image in pixels]
    wrong = next((i for i, (values_of, size) in enumerate(zip(values, sizes)) if values_of.shape != size), None)
    if wrong is not None:
        raise ValueError(
            f"{what} must have the size of its image, {sizes[wrong]}. Received: {values[wrong].shape} of image {wrong}"
        )
    if pixels.ndim == 4:
        return np.stack(values)[..., None]
    return np.array(each(encode, values, "encoding targets"), object)

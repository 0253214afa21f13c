"""Image files from any source: which are read, how large they may be, and their pixels as TensorFlow decodes them."""

import contextlib
import io
import math
import os
import stat
import threading
import warnings

import numpy as np

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
MOST_PIXELS = 128_000_000
TOO_MANY = "is too large: it has more than {} million pixels"
MOST_BYTES = 2**29
MOST_OBLONG = (
    100  # longer to shorter side: resizing the shorter side to the model's would fill the memory with the longer one
)
GRAY = np.array([0.2989, 0.587, 0.114], "float32")  # tf.image.rgb_to_grayscale
GRAY_MODES, COLOR_MODES = ("1", "L", "LA", "I;16"), ("P", "RGB", "RGBA")  # of Pillow
ORIENTATION = 0x0112  # the tag of EXIF; of its values 1 to 8, in order:
TURNS = (  # whether rows and columns are swapped, then steps along the rows and along the columns of the result
    *((0, 1, 1), (0, 1, -1), (0, -1, -1), (0, -1, 1)),
    *((1, 1, 1), (1, 1, -1), (1, -1, -1), (1, -1, 1)),
)
LOCK = threading.Lock()  # all threads share the filters of warnings
LARGE, TURN = 2**24, threading.Lock()  # pixels of images that are decoded one at a time, however many threads read
STRIP = 2**22  # values that are converted at once


def colored(image):
    """Returns an image as float32 of three channels: of more the first three, of fewer the mean three times."""
    image = np.asarray(image, "float32")
    return image[..., :3] if image.shape[-1] >= 3 else np.repeat(image.mean(-1, keepdims=True), 3, -1)


def encoded(path, most_pixels=MOST_PIXELS):
    """Returns the bytes of an image file, without decoding it.

    Args:
        path: A regular file, or a link to one.
        most_pixels: A larger image is refused.

    Raises:
        FileNotFoundError: If there is no file.
        ValueError: If the path is not a regular file; or if its header shows another format or too large an image.
    """
    name = os.path.expanduser(os.fsdecode(path))
    try:
        status = os.stat(name)  # before opening: a pipe would wait for its writer
        if not stat.S_ISREG(status.st_mode):
            reason = "is not a regular file"
        elif status.st_size > MOST_BYTES:
            reason = f"is too large: it has more than {MOST_BYTES // 2**20} MiB"
        else:
            with open(name, "rb", buffering=0) as file:
                data = file.read()
            reason = fault(data, most_pixels)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {name!r}.") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if reason:
        raise ValueError(f"{name!r} {reason}.")
    return data


def read_pixels(path, channels, then=lambda pixels: pixels):
    """Returns the pixels of an image file, like `plain_pixels`; raises like `encoded`, and if decoding fails.

    Args:
        path: The file.
        channels: As in `plain_pixels`.
        then: Function of the pixels, whose result is returned. While it runs, no other thread decodes a large image.
    """
    data = encoded(path)
    with in_turn(data):
        return then(_decoded(path, data, channels))


def _decoded(path, data, channels):
    try:
        pixels = decoded(data, channels)
    except Exception as error:  # any error of the decoder is a fault of this file
        raise ValueError(f"{os.fsdecode(path)!r} cannot be read as an image: {error}.") from None
    if is_deep(data):
        warn_if_shallow(pixels.max())
    return pixels


def decoded(data, channels):
    """Returns the pixels of the bytes of an image file, as `plain_pixels`."""
    with opened(data) as image:
        return plain_pixels(image, channels)


def is_deep(data):
    """Returns whether the bytes of an image file have 16 bits per channel."""
    return data[:4] == b"\x89PNG" and data[24:25] == b"\x10"


def warn_if_shallow(highest, which="A 16-bit image has"):
    """Warns of images of 16 bits that use the lowest twelve or fewer, by the highest of their upper eight bits."""
    if 0 <= highest < 16:
        warnings.warn(
            f"{which} no value above 4095 of 65535, and is almost black to a model, which gets the upper eight bits. "
            "If its values have 12 bits, train with data.value_range=(0, 4095), or multiply them by 16 before saving",
            stacklevel=3,
        )


def in_turn(data):
    """Returns a context manager for an encoded image: of all threads, one at a time is inside with a large image."""
    return TURN if math.prod(image_size(data)) > LARGE else contextlib.nullcontext()


def strips(rows, values):
    """Yields slices that divide the rows of an array, each of `values` numbers, into a few at a time."""
    step = max(STRIP // max(values, 1), 1)
    return (slice(first, first + step) for first in range(0, rows, step))


def plain_pixels(image, channels):
    """Returns the pixels of a `PIL.Image.Image`; of JPEG and PNG as TensorFlow decodes them.

    Alpha is dropped. Of 16 bits the upper eight are kept. The image is turned upright as its EXIF data say. Besides the
    image as Pillow holds it, four bytes a pixel, memory holds the result.

    Args:
        image: The image, at its current frame.
        channels: 1 (gray) or 3 (red, green and blue).

    Returns:
        uint8 array, `(height, width, channels)`.
    """
    number = _orientation(image)
    if image.mode in ("F", "I"):
        raise ValueError(f"A Pillow image must have 8 or 16 bits per channel. Received: mode {image.mode!r}")
    mode = "RGBA" if image.has_transparency_data else "RGB"
    pixels = np.empty((image.height, image.width, channels), "uint8")
    for rows in strips(image.height, 4 * image.width):
        part = image.crop((0, rows.start, image.width, min(rows.stop, image.height)))
        pixels[rows] = _plain_part(part, mode, channels)
    return turned(pixels, number)


def _plain_part(image, mode, channels):
    """Returns some rows of `plain_pixels`."""
    if image.mode.startswith("I;16"):
        return (np.asarray(image) >> 8).astype("uint8")[..., None]
    colors = np.asarray(image.convert(mode))[..., :3]
    if channels == 3:
        return colors
    gray = (colors * np.float32(1 / 255)) @ GRAY
    return (gray * np.float32(255.5)).astype("uint8")[..., None]


def save_like(original, pixels, path):
    """Writes pixels as a PNG with the alpha channel, the color profile and the EXIF data of another image.

    The pixels are upright, so the orientation is left out.

    Args:
        original: A `PIL.Image.Image`, opened and of any size. If it is gray and all pixels are, so is the file. Its
            color profile is left out if it is for other channels, such as cyan, magenta, yellow and black.
        pixels: uint8 array, `(height, width, 1)` or `(height, width, 3)`.
        path: The file.
    """
    from PIL import Image

    original.load()  # EXIF data may be behind the pixels
    original = upright(original)
    gray = original.mode in GRAY_MODES and (pixels == pixels[..., :1]).all()
    image = Image.fromarray(pixels[..., 0] if gray or pixels.shape[-1] == 1 else pixels)
    keys = ["exif"]
    if original.mode in (GRAY_MODES if image.mode == "L" else COLOR_MODES):
        keys.append("icc_profile")
    more = {key: original.info[key] for key in keys if original.info.get(key)}
    if original.has_transparency_data:
        alpha = (original if "A" in original.getbands() else original.convert("RGBA")).getchannel("A")
        image.putalpha(alpha.resize(image.size, Image.Resampling.BICUBIC))
    image.save(path, "PNG", **more)


def mask_pixels(mask):
    """Returns a segmentation mask's values, `(height, width)`.

    Args:
        mask: The bytes of a PNG, gray or with a palette of class indices; or an array, `(height, width)` or
            `(height, width, 1)`.
    """
    if isinstance(mask, bytes):
        with opened(mask) as image:
            mask = np.asarray(image)
    return np.asarray(mask).reshape(np.shape(mask)[:2])


def opened(data):
    """Opens the bytes of an image file as a `PIL.Image.Image`, not decoded yet, if its format is one of `FORMATS`."""
    from PIL import Image

    with LOCK, warnings.catch_warnings(action="ignore"):  # of sizes and damaged EXIF data
        return Image.open(io.BytesIO(data), formats=FORMATS)


def image_size(data):
    """Returns the `(height, width)` of an encoded image as it is seen: after `turned`."""
    with opened(data) as image:
        return image.size if orientation(data) > 4 else image.size[::-1]


def orientation(data):
    """Returns the orientation that EXIF data in the bytes of an image file state, from 1 to 8; 1 if they state none.

    Only the header is decoded. A rotation in other data, such as XMP, is not read.
    """
    name = {0xFF: b"Exif\0\0", 0x89: b"eXIf", ord("R"): b"EXIF"}.get(data[0] if data else 0)
    if name is None or name not in data:
        return 1
    try:
        with opened(data) as image:
            return _orientation(image)
    except Exception:  # of a bad header: the decoder will say so
        return 1


def upright(image):
    """Returns a `PIL.Image.Image` turned as its EXIF data say, without their orientation; an upright one as it is."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image) if _orientation(image) > 1 else image


def turned(pixels, number):
    """Returns pixels, `(height, width, ...)`, turned upright from an orientation."""
    swapped, down, right = TURNS[number - 1]
    return (np.swapaxes(pixels, 0, 1) if swapped else pixels)[::down, ::right]


def _orientation(image):
    """Returns the orientation in a Pillow image's EXIF data."""
    from PIL import Image

    exif = Image.Exif()
    if image.format == "PNG":
        image.load()  # they may be behind the pixels
    try:
        with LOCK, warnings.catch_warnings(action="ignore"):
            exif.load(image.info.get("exif"))
            value = exif.get(ORIENTATION)
    except Exception:  # damaged data: viewers show the image as it is stored
        value = None
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def fault(data, most_pixels=MOST_PIXELS):
    """Returns why an encoded image must not be decoded, or `None`. Reads only its header."""
    from PIL import Image

    try:
        with opened(data) as image:
            sides, area = image.size, image.width * image.height
    except Image.DecompressionBombError:
        area = math.inf
    except Exception:  # Pillow raises many kinds of errors for bad headers
        return "is not a PNG, JPEG, BMP, GIF or WebP image"
    if area < math.inf and max(sides) > MOST_OBLONG * min(sides):
        return f"is too oblong: it has {sides[0]} x {sides[1]} pixels, an aspect ratio over {MOST_OBLONG}:1"
    if area > most_pixels:
        return TOO_MANY.format(most_pixels // 10**6)
    return None

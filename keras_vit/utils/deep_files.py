"""Pictures with more than 8 bits or three channels: TIFF, PNG of 16 bits, and NumPy's `.npy` and `.npz`."""

import functools
import io
import math
import os
import zipfile

import numpy as np

from keras_vit.utils import images, tiff_files
from keras_vit.utils.extras import need
from keras_vit.utils.files import regular
from keras_vit.utils.raster import NOTHING, Raster, upright

NUMPY, ZIP, PNG = b"\x93NUMPY", b"PK", b"\x89PNG\r\n\x1a\n"  # first bytes of files
ENDINGS = (".tif", ".tiff", ".npy", ".npz")
HEADER = 2**16  # bytes of an array's header, at most
RATIO = 1032  # what a byte of a compressed array can become
MOST_BYTES = 2**31  # of a picture that is decoded whole
GRAY16, COLORS16 = 0, {2: "RGB", 4: "gray with alpha", 6: "RGB with alpha"}  # of PNG


def is_named(path):
    """Returns whether a path ends like that of a TIFF or an array."""
    return os.fsdecode(path).lower().endswith(ENDINGS)


def is_deep(path):
    """Returns whether a path names a file that `opened` reads: by its ending, or a PNG whose header says 16 bits."""
    if is_named(path):
        return True
    name = os.fsdecode(path).lower()
    if not name.endswith((".png", ".apng")) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return images.is_deep(file.read(32))


def opened(path, pages=None, array=None, labels=False):
    """Opens a picture without decoding it.

    Args:
        path: A TIFF, a PNG of 16 bits, a `.npy` or a `.npz` file. Arrays are `(height, width)` or `(height, width,
            bands)`. Of a PNG alpha is dropped; of a TIFF it is a band.
        pages: What the pages of a TIFF are; `"bands"` of one picture, in the file's order. `None` if it has one, or
            says itself that they are channels. For `"frames"` see `frames`.
        array: Name of the array in a `.npz`; `None` if it has one.
        labels: Whether values are labels: palettes are then read as indices.

    Returns:
        A `Raster`.

    Raises:
        FileNotFoundError: If there is no file.
        ImportError: Without the extra `tiff`, for TIFF and colored PNGs.
        ValueError: For another file, a damaged one, or one that cannot hold what its header claims.
    """
    if pages == "frames":
        raise ValueError('`pages` must be "bands" or None for a picture; `frames` opens a clip. Received: "frames"')
    return _opened(path, pages, array, labels)[0]


def frames(path, array=None):
    """Opens each frame of a clip like `opened`: the pages of a TIFF, or an array `(frames, height, width, bands)`.

    Returns:
        A list of `Raster`.
    """
    return _opened(path, "frames", array, False)


def _opened(path, pages, array, labels):
    name = os.path.expanduser(os.fsdecode(path))
    if not os.path.exists(name):
        raise FileNotFoundError(f"There is no file {name!r}.")
    regular(name)
    try:
        with open(name, "rb") as file:
            head = file.read(32)
        if head[:4] in tiff_files.MAGIC:
            return tiff_files.rasters(name, pages, labels)
        if head[:8] == PNG and images.is_deep(head):
            return [_png(name, head)]
        if head[: len(NUMPY)] == NUMPY:
            return _arrays(name, *_of_npy(name), pages, NOTHING)
        if head[: len(ZIP)] == ZIP:
            return _arrays(name, *_of_npz(name, array), pages)
        raise ValueError("is not a TIFF, a PNG of 16 bits, a .npy or a .npz file")
    except ValueError as error:
        raise ValueError(f"{name!r} {str(error).removesuffix('.')}.") from None
    except OSError as error:
        raise ValueError(f"{name!r} cannot be read: {error.strerror or error}.") from None


def _png(path, head):
    """Returns the `Raster` of a PNG of 16 bits. Pillow keeps all bits of gray ones; of others it drops half."""
    data = images.encoded(path)
    kind, number = head[25], images.orientation(data)
    width, height = (int.from_bytes(head[i : i + 4], "big") for i in (16, 20))
    if kind == GRAY16:
        bands = 1
    elif kind in COLORS16:
        need(f"PNG of 16 bits, {COLORS16[kind]},", "tiff", "imagecodecs")
        bands = 1 if kind == 4 else 3
    else:
        raise ValueError(f"is a damaged PNG: its kind of color is {kind}")

    def decoded():
        encoded = images.encoded(path)
        if kind == GRAY16:
            with images.opened(encoded) as image:
                return np.asarray(image).astype("uint16")[..., None]
        import imagecodecs

        return imagecodecs.png_decode(encoded)[..., :bands]

    raster = Raster((height, width, bands), np.dtype("uint16"), _kept(path, decoded), (height, width))
    return upright(raster, number)


def _of_npy(path):
    """Returns the type and the shape of the array in a `.npy` file, and a function that maps it into memory."""
    with open(path, "rb") as file:
        shape, dtype = _header(file, os.path.getsize(path))
    return dtype, shape, lambda: np.load(path, mmap_mode="r", allow_pickle=False)


def _of_npz(path, array):
    """Returns the same of an array in a `.npz` file, whose function decompresses it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            name = next(iter(members)) if array is None and len(members) == 1 else array
            if name not in members:
                known = ", ".join(map(repr, list(members)[:10])) or "none"
                raise ValueError(f"must have one array, or the name of one must be given. It has: {known}")
            info = members[name]
            most = min(info.file_size, info.compress_size * RATIO, MOST_BYTES)
            with archive.open(info) as file:
                shape, dtype = _header(io.BytesIO(file.read(HEADER)), most)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"is a damaged .npz file: {error}") from None

    def decoded():
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[name]

    return dtype, shape, functools.cache(decoded)


def _header(file, most):
    """Returns shape and type of an array by its header; raises ValueError unless `most` bytes can hold it."""
    try:
        version = np.lib.format.read_magic(file)
        read = {1: np.lib.format.read_array_header_1_0}.get(version[0], np.lib.format.read_array_header_2_0)
        shape, _, dtype = read(file)
    except Exception as error:  # NumPy raises many kinds of errors for bad headers
        raise ValueError(f"is a damaged array: {str(error).splitlines()[0]}") from None
    if dtype.str[1:] not in tiff_files.TYPES:
        raise ValueError(f"must be an array of integers of 8, 16 or 32 bits, or of floats. Received: dtype={dtype}")
    if min(shape, default=0) < 1 or math.prod(shape) * dtype.itemsize > most:
        raise ValueError(f"is a damaged array: it claims the shape {shape}, which its bytes do not hold")
    return shape, dtype


def _arrays(path, dtype, shape, load, pages, block=None):
    """Returns the `Raster` of each frame of an array."""
    wanted = "(frames, height, width, bands)" if pages == "frames" else "(height, width) or (height, width, bands)"
    if len(shape) not in ((3, 4) if pages == "frames" else (2, 3)):
        raise ValueError(f"must be an array {wanted}. Received: shape={shape}")
    clip = pages == "frames"
    if not clip and len(shape) == 3 and shape[0] * tiff_files.SMALL <= min(shape[1:]):
        raise ValueError(f"must be an array (height, width, bands), bands last. Received: shape={shape}")
    count, shape = (shape[0], shape[1:]) if clip else (1, shape)
    shape = shape if len(shape) == 3 else (*shape, 1)

    def window_of(i):
        def window(top, left, height, width):
            try:
                values = load()[i] if clip else load()
                part = values[top : top + height, left : left + width]
                return np.array(part.reshape(height, width, shape[2]), dtype.newbyteorder("="))
            except Exception as error:  # any error of the decoder is a fault of this file
                raise ValueError(f"{path!r} is a damaged array: {error}.") from None

        return window

    return [Raster(shape, dtype.newbyteorder("="), window_of(i), block or shape[:2]) for i in range(count)]


def _kept(path, decode):
    """Returns the function `Raster.window` of a picture that is decoded whole, once."""
    decode = functools.cache(decode)

    def window(top, left, height, width):
        try:
            pixels = decode()
        except Exception as error:  # any error of the decoder is a fault of this file
            raise ValueError(f"{path!r} cannot be read as an image: {error}.") from None
        return pixels[top : top + height, left : left + width].copy()

    return window

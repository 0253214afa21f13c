"""Files of depth: 16-bit PNGs and NumPy's `.npy`. A pixel of 0 or NaN is a hole: nothing is known there."""

import io
import os

import numpy as np

from keras_vit.utils import images
from keras_vit.utils.files import regular
from keras_vit.utils.resampling import resize_matrix

ENDINGS = (".png", ".npy")
NUMPY = b"\x93NUMPY"  # the first bytes of a `.npy` file
TYPES = ("<f4", "<f8", "<f2", "<u2")  # of numbers in `.npy` files


COLORS = np.array(  # of a map from its smallest to its largest value, evenly spaced: dark blue to yellow
    [[13, 8, 86], [84, 2, 163], [139, 10, 165], [185, 50, 137], [219, 92, 104], [244, 136, 73], [254, 188, 43],
     [240, 249, 33]],
    "float32",
)  # fmt: skip


def depth_file(path):
    """Returns the bytes of a file of depth, without decoding it; errors as `images.encoded`."""
    if os.fsdecode(path).lower().endswith(".png"):
        return images.encoded(path)
    if os.path.getsize(regular(path)) > images.MOST_BYTES:
        raise ValueError(f"{os.fsdecode(path)!r} is too large: it has more than {images.MOST_BYTES // 2**20} MiB.")
    with open(path, "rb") as file:
        return file.read()


def fault(path):
    """Returns why a file of depth cannot be used, or `None`."""
    try:
        depth_pixels(depth_file(path))
    except Exception as error:  # any error of the decoder is a fault of this file
        return str(error).removeprefix(f"{os.fsdecode(path)!r} ").removesuffix(".")
    return None


def resized_map(values, size):
    """Returns a map of another size, `(rows, columns)`, bicubically as PyTorch's `interpolate`; float32.

    So transformers brings depth back to its photograph.
    """
    rows, columns = (resize_matrix(have, want, "bicubic").astype("float32") for have, want in zip(values.shape, size))
    return values if values.shape == tuple(size) else np.matmul(rows @ values, columns.T)


def colored_map(values):
    """Returns a map as an image, uint8 `(rows, columns, 3)`: its smallest value dark blue, its largest yellow."""
    values = np.asarray(values, "float32")
    place = (values - values.min()) / max(float(np.ptp(values)), 1e-12) * (len(COLORS) - 1)
    bands = [np.interp(place, np.arange(len(COLORS)), band) for band in COLORS.T]
    return np.rint(np.stack(bands, axis=-1)).astype("uint8")


def depth_pixels(depth):
    """Returns the depth of each pixel, float32 `(rows, columns)`, 0 in holes.

    Args:
        depth: The bytes of a 16-bit gray PNG or of a `.npy` file; or an array, `(rows, columns)` or `(rows, columns,
            1)`.

    Raises:
        ValueError: For another file, an array of another shape, negative or infinite depth, or nothing but holes.
    """
    values = _decoded(depth) if isinstance(depth, bytes) else np.asarray(depth)
    values = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    if values.ndim != 2 or values.dtype.kind not in "fui" or not values.size:
        raise ValueError(
            "A depth map must be numbers of the shape (rows, columns). Received: "
            f"shape={values.shape}, dtype={values.dtype}"
        )
    values = np.nan_to_num(values.astype("float32"), nan=0.0, posinf=np.inf, neginf=-np.inf)
    if values.min() < 0 or np.isinf(values).any():
        raise ValueError(
            f"Depth must be finite and at least 0; 0 and NaN are holes. Received: {values.min():g} to {values.max():g}"
        )
    if not values.any():
        raise ValueError("A depth map must have a pixel above 0; 0 and NaN are holes. Received: nothing but holes")
    return values


def _decoded(data):
    """Returns the numbers in the bytes of a file."""
    if data[: len(NUMPY)] == NUMPY:
        values = np.load(io.BytesIO(data), allow_pickle=False)
        if values.dtype.str not in TYPES or (np.isfortran(values) and values.ndim > 1):
            raise ValueError(
                f"A .npy file of depth must be of {', '.join(np.dtype(name).name for name in TYPES)}, row by row. "
                f"Received: {values.dtype.str}{', column by column' * bool(np.isfortran(values))}"
            )
        return values
    if data[:8] != b"\x89PNG\r\n\x1a\n" or (data[24], data[25]) != (16, 0):  # in the header: bits, and gray
        raise ValueError("A depth map must be a gray PNG of 16 bits or a .npy file. Received: another file")
    with images.opened(data) as image:
        return np.asarray(image)


def npy_bytes(values):
    """Returns the bytes of a `.npy` file of float32."""
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(values, "<f4"))
    return file.getvalue()


def depth_png(values, **words):
    """Returns the bytes of a gray PNG of 16 bits.

    Args:
        values: Array `(rows, columns)`; it is rounded, and clipped to 0..65535.
        **words: Texts to write into the file, by their names.
    """
    from PIL import Image, PngImagePlugin

    info, file = PngImagePlugin.PngInfo(), io.BytesIO()
    for name, text in words.items():
        info.add_text(name, text)
    Image.fromarray(np.clip(np.rint(values), 0, 65535).astype("uint16")).save(file, "PNG", pnginfo=info)
    return file.getvalue()

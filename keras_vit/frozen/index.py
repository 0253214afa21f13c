"""The file of an embedded folder: vectors, paths, and which model they come from."""

import json
import pathlib
import zipfile
from typing import NamedTuple

import numpy as np

from keras_vit import checks
from keras_vit.files import replacing

NAMES = ("vectors", "paths", "left_out", "about")  # arrays of the file


class Index(NamedTuple):
    """An embedded folder."""

    vectors: np.ndarray  # float32, (images, width), or (images, rows, columns, width) of patch tokens
    paths: np.ndarray  # texts, (images,), relative to `folder`
    left_out: np.ndarray  # texts, (files, 2): images that could not be read, and why
    about: dict  # `folder`; `share`; `model`, its name if it was named; `fingerprint` of the model

    def file(self, i):
        """Returns the path of an image."""
        return pathlib.Path(self.about["folder"], str(self.paths[i]))


def load_index(*files) -> Index:
    """Loads the files that `embed_folder` wrote; several shares of a folder become one index.

    Args:
        *files: Paths of `.npz` files.

    Returns:
        An `Index`: a named tuple of `vectors`, `paths`, `left_out` and `about`.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: For a file that is damaged or no index; for files of different models, or other than all shares.
    """
    if not files:
        raise ValueError("At least one file of an index is needed. Received: none")
    parts = [_read(checks.path("file", file)) for file in files]
    first = parts[0].about
    if len(parts) == 1:
        return parts[0]
    for file, part in zip(files, parts):
        if part.about["fingerprint"] != first["fingerprint"]:
            raise ValueError(f"Shares must have one model. Received: {str(files[0])!r} and {str(file)!r}")
    shares = sorted(part.about["share"] for part in parts)
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in NAMES[:3]]
    if shares != [[i, len(parts)] for i in range(len(parts))] or len(set(joined[1])) < len(joined[1]):
        raise ValueError(
            f"Files must be all shares of one folder, each once. Received: shares {', '.join(map(str, shares))}, and "
            f"{len(joined[1]) - len(set(joined[1]))} images twice"
        )
    return Index(*joined, {**first, "share": [0, 1]})


def opened(index):
    """Returns an `Index`, loaded if it is given as a path."""
    return index if isinstance(index, Index) else load_index(index)


def flat(index):
    """Returns an index of one finite vector for each image; raises ValueError for any other."""
    if index.vectors.ndim != 2:
        raise ValueError(
            "The index must have one vector for each image. "
            f"Received: patch tokens of shape {index.vectors.shape}; embed without tokens=True"
        )
    if not np.isfinite(index.vectors).all():
        raise ValueError("The vectors of the index must be finite. Received: NaN or infinity")
    return index


def _read(path):
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    try:
        with np.load(path) as arrays:  # never unpickles
            vectors, paths, left_out, about = (arrays[name] for name in NAMES)
        about = json.loads(str(about))
        fits = vectors.dtype == "float32" and vectors.ndim in (2, 4) and paths.shape == vectors.shape[:1]
        if not fits or not {"folder", "share", "model", "fingerprint"} <= set(about):
            raise ValueError("its arrays do not fit together")
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        reason = str(error).partition(". ")[0].rstrip(".")  # NumPy goes on to recommend unpickling
        raise ValueError(f"{str(path)!r} is not a whole file from `embed_folder`: {reason}.") from None
    return Index(vectors, paths, left_out, about)


def count(path):
    """Returns the number of images in a file, without reading the vectors."""
    with np.load(path) as arrays:
        return len(arrays["paths"])


def join(parts, path, shape, about):
    """Joins parts of an index into its file, one part in memory at a time.

    Args:
        parts: Paths of `.npz` files with `vectors`, `paths` and `left_out`.
        path: The file to write; a failure leaves what was there.
        shape: Shape of an image's vectors.
        about: Dictionary for `Index.about`.

    Returns:
        `Index.left_out`.

    Raises:
        ValueError: If no image could be read.
        OSError: If writing fails.
    """
    paths, left_out = [], [np.zeros((0, 2), "U1")]
    for part in parts:
        with np.load(part) as arrays:
            paths.append(arrays["paths"])
            left_out.append(arrays["left_out"])
    paths, left_out = np.concatenate(paths), np.concatenate(left_out)
    if not len(paths):
        raise ValueError(f"No image could be read. The first of {len(left_out)}: {left_out[0][1]}")
    header = {"descr": "<f4", "fortran_order": False, "shape": (len(paths), *shape)}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as file:
        with file.open("vectors.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array_header_2_0(entry, header)
            for part in parts:
                with np.load(part) as arrays:
                    entry.write(np.ascontiguousarray(arrays["vectors"], "<f4").data)
        for name, array in (("paths", paths), ("left_out", left_out), ("about", np.array(json.dumps(about)))):
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return left_out

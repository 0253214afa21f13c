"""The file of an embedded folder: vectors, paths, and which model they come from."""

import heapq
import json
import math
import os
import pathlib
import zipfile
from typing import NamedTuple

import numpy as np

from keras_vit.utils import checks
from keras_vit.utils.files import regular, replacing

NAMES = ("vectors", "paths", "left_out", "about")  # arrays of the file
STAMPS = "stamps"  # another one: size and time of change of each image's file, int64, (images, 2)
KEYS = {"folder", "share", "model", "fingerprint"}  # of `about`


class Index(NamedTuple):
    """An embedded folder."""

    vectors: np.ndarray  # float32, (images, width), or (images, rows, columns, width) of patch tokens
    paths: np.ndarray  # texts, (images,), relative to `folder`
    left_out: np.ndarray  # texts, (files, 2): images that could not be read, and why
    about: dict  # `folder`; `share`; `model`, its name if it was named; `fingerprint` of the model; `changes` to a file

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
        ValueError: For a file that is damaged or no index, or whose vectors are not finite or all zero; for files of
            different models, or other than all shares.
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
        with np.load(regular(path)) as arrays:  # never unpickles
            vectors, paths, left_out, about = (arrays[name] for name in NAMES)
        about = json.loads(str(about))
        fits = vectors.dtype == "float32" and vectors.ndim in (2, 4) and paths.shape == vectors.shape[:1]
        if not fits or not set(about) >= KEYS:
            raise ValueError("its arrays do not fit together")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors.reshape(len(vectors), -1), axis=1)
        if not np.isfinite(lengths).all() or not lengths.any():
            raise ValueError("its vectors are none, all zero, or not finite")
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        raise _damaged(path, error) from None
    return Index(vectors, paths, left_out, about)


def _damaged(path, error):
    reason = str(error).partition(". ")[0].rstrip(".")  # NumPy goes on to recommend unpickling
    return ValueError(f"{str(path)!r} is not a whole file from `embed_folder`: {reason}.")


def count(path):
    """Returns the number of images in a file, without reading the vectors."""
    with np.load(regular(path)) as arrays:
        return len(arrays["paths"])


def known(path):
    """Returns what a file has, without reading the vectors: a dictionary of `paths`, `left_out`, `about` and `stamps`.

    Raises:
        ValueError: If it is damaged or no index.
    """
    try:
        with np.load(regular(path)) as arrays:
            found = {name: arrays[name] for name in (*NAMES[1:], STAMPS)}
        with zipfile.ZipFile(path) as file, file.open("vectors.npy") as entry:
            count, *_ = _header(entry)
        found["about"] = json.loads(str(found["about"]))
        if not count == len(found["paths"]) == len(found[STAMPS]) or not set(found["about"]) >= KEYS:
            raise ValueError("its arrays do not fit together")
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        raise _damaged(path, error) from None
    return found


def check_whole(path):
    """Raises ValueError unless the checksums of all arrays of a file are right."""
    try:
        with zipfile.ZipFile(path) as file:
            wrong = file.testzip()
        if wrong:
            raise ValueError(f"the checksum of {wrong!r} is wrong")
    except Exception as error:
        raise _damaged(path, error) from None


def join(parts, path, shape, about, stamps, kept=None):
    """Joins parts of an index, and rows of an older file, into a file; one part in memory at a time.

    Args:
        parts: Paths of `.npz` files with `vectors`, `paths` and `left_out`.
        path: The file to write; a failure leaves what was there.
        shape: Shape of an image's vectors.
        about: Dictionary for `Index.about`.
        stamps: `(size, time of change)` of each image by its path, in the order of the index.
        kept: Rows of the older file at `path` by their image's path, in the order of the file.

    Raises:
        ValueError: If no image could be read.
        OSError: If writing fails.
    """
    kept, (read, left_out) = kept or {}, names_in(parts)
    if not kept and not read:
        raise ValueError(f"No image could be read. The first of {len(left_out)}: {left_out[0][1]}")
    place = {name: i for i, name in enumerate(stamps)}
    header, paths = {"descr": "<f4", "fortran_order": False, "shape": (len(kept) + len(read), *shape)}, []
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as file:
        with file.open("vectors.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array_header_2_0(entry, header)
            rows = heapq.merge(_kept_rows(path, kept), _part_rows(parts), key=lambda row: place[row[0]])
            for name, vectors in rows:
                paths.append(name)
                entry.write(vectors)
        more = {"paths": np.array(paths), "left_out": left_out, "about": np.array(json.dumps(about))}
        more[STAMPS] = np.array([stamps[name] for name in paths], "int64")
        for name, array in more.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def names_in(parts):
    """Returns the paths of the images in parts, a set, and those that could not be read, as `Index.left_out`."""
    paths, left_out = set(), [np.zeros((0, 2), "U1")]
    for part in parts:
        with np.load(part) as arrays:
            paths |= set(arrays["paths"].tolist())
            left_out.append(arrays["left_out"])
    return paths, np.concatenate(left_out)


def _kept_rows(path, kept):
    """Yields the path of each image that is kept of a file, and the bytes of its vectors."""
    if not kept:
        return
    with zipfile.ZipFile(path) as file, file.open("vectors.npy") as entry:
        _, *shape = _header(entry)
        size, at = 4 * math.prod(shape), 0
        for name, row in kept.items():
            entry.seek(size * (row - at), os.SEEK_CUR)
            at = row + 1
            yield name, entry.read(size)


def _part_rows(parts):
    for part in parts:
        with np.load(part) as arrays:
            yield from zip(arrays["paths"].tolist(), np.ascontiguousarray(arrays["vectors"], "<f4"))


def _header(entry):
    """Reads the header of an array of float32, whose data come next; returns its shape."""
    version = np.lib.format.read_magic(entry)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, in_columns, dtype = read(entry)
    if in_columns or dtype != "<f4":
        raise ValueError("its vectors are not float32")
    return shape

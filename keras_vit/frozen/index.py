"""The file of an embedded folder: vectors, paths, and which model they come from."""

import json
import os
import pathlib
import zipfile
from typing import NamedTuple

import numpy as np

from keras_vit.frozen import moved
from keras_vit.utils import checks
from keras_vit.utils.files import regular, replacing

NAMES = ("vectors", "paths", "left_out", "about")  # arrays of the file
PROJECTION = "projection"  # another one, of CLIP: what projects its vectors into the space of texts
STAMPS = "stamps"  # another one: size and time of change of each image's file, int64, (images, 2)
KEYS = {"folder", "share", "model", "fingerprint"}  # of `about`


class Index(NamedTuple):
    """An embedded folder."""

    vectors: np.ndarray  # float32, (images, width), or (images, rows, columns, width) of patch tokens
    paths: np.ndarray  # texts, (images,), relative to `folder`
    left_out: np.ndarray  # texts, (files, 2): images that could not be read, and why
    # `folder`; `share`; `model`, its name if named; `fingerprint` of it; `vectors`, which of it; `changes` to a file
    about: dict
    projection: np.ndarray | None = None  # float32, (width + 1, numbers): kernel and bias of CLIP's projection

    def file(self, i):
        """Returns the path of an image."""
        return pathlib.Path(self.about["folder"], str(self.paths[i]))


def load_index(*files, folder: str | os.PathLike | None = None) -> Index:
    """Loads the files that `embed_folder` wrote; several shares of a folder become one index.

    Args:
        *files: Paths of `.npz` files.
        folder: Where the folder of the images is now. `None` for where it was; if it is not there, a folder next to
            the file with the same images is taken, and a warning names it.

    Returns:
        An `Index`: a named tuple of `vectors`, `paths`, `left_out` and `about`.

    Raises:
        FileNotFoundError: If a file does not exist, or `folder` does not have the images of the index.
        ValueError: For a file that is damaged or no index, or whose vectors are not finite or all zero; for files of
            different models, or other than all shares.
    """
    if not files:
        raise ValueError("At least one file of an index is needed. Received: none")
    parts = [_read(checks.path("file", file)) for file in files]
    first = parts[0].about
    place = moved.place_of(parts[0].paths, first["folder"], files[0], folder)
    if len(parts) == 1:
        return parts[0]._replace(about={**first, "folder": place})
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
    return Index(*joined, {**first, "share": [0, 1]}, parts[0].projection)


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
    index = Index(**stored(path, NAMES, [PROJECTION]))
    vectors = index.vectors
    with np.errstate(over="ignore"):
        fits = vectors.dtype == "float32" and vectors.ndim in (2, 4) and index.paths.shape == vectors.shape[:1] != (0,)
        lengths = np.linalg.norm(vectors.reshape(len(vectors), -1), axis=1) if fits else np.zeros(1)
    if not np.isfinite(lengths).all() or not lengths.any():
        raise _damaged(path, "its vectors do not fit its paths, or are none, all zero, or not finite")
    return index


def stored(path, names, optional=()):
    """Returns arrays of a file by their names, with `about` as a dictionary; optional ones only if they are there.

    Raises:
        ValueError: If it is damaged or no index.
    """
    try:
        with np.load(regular(path)) as arrays:  # never unpickles
            arrays_by_name = {name: arrays[name] for name in (*names, *set(optional).intersection(arrays.files))}
        arrays_by_name["about"] = json.loads(str(arrays_by_name["about"]))
        if not set(arrays_by_name["about"]) >= KEYS or not isinstance(arrays_by_name["about"]["folder"], str):
            raise ValueError("its arrays do not fit together")
        if "paths" in arrays_by_name:
            arrays_by_name["paths"] = moved.with_slashes(arrays_by_name["paths"], arrays_by_name["about"]["folder"])
    except Exception as error:  # zipfile, zlib and NumPy raise many kinds for damaged files
        raise _damaged(path, error) from None
    return arrays_by_name


def check_lengths(path, arrays):
    """Raises ValueError unless the arrays of a file are of the same images; of the vectors only the header is read."""
    try:
        with zipfile.ZipFile(path) as file, file.open("vectors.npy") as vectors:
            np.lib.format.read_magic(vectors)
            (rows, *_), _, _ = np.lib.format.read_array_header_1_0(vectors)
    except Exception as error:
        raise _damaged(path, error) from None
    if not rows == len(arrays["paths"]) == len(arrays[STAMPS]):
        raise _damaged(path, f"it has {rows} vectors, {len(arrays['paths'])} paths and {len(arrays[STAMPS])} stamps")


def _damaged(path, error):
    reason = str(error).partition(". ")[0].rstrip(".")  # NumPy goes on to recommend unpickling
    return ValueError(f"{str(path)!r} is not a whole file from `embed_folder`: {reason}.")


def count(path):
    """Returns the number of images in a file, without reading the vectors."""
    with np.load(regular(path)) as arrays:
        return len(arrays["paths"])


def write(path, vectors, paths, left_out, stamps, about, projection=None):
    """Writes a file; a failure leaves what was there. Arguments are the arrays, which may be of other types."""
    more = {} if projection is None else {PROJECTION: projection}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(
            file,
            vectors=vectors,
            paths=np.array(paths),
            left_out=np.array(left_out, "U").reshape(-1, 2),
            about=np.array(json.dumps(about)),
            stamps=np.array(stamps, "int64"),
            **more,
        )

"""Embeds a folder of images: resumes after an interruption, and adds new images to an older file."""

import hashlib
import json
import math
import os
import pathlib
import shutil

import filelock
import keras
import numpy as np

from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import STAMPS, check_whole, join, known, names_in
from keras_vit.utils import checks, warned
from keras_vit.utils.files import read as read_file
from keras_vit.utils.files import regular, replacing
from keras_vit.utils.folders import in_folder, shown
from keras_vit.utils.progress import counted

PART_IMAGES, PART_BYTES = 1024, 2**26  # of one part, at most: what is computed again after a kill
ABOUT, LOCK = "about.json", ".lock"


def embed_folder(
    folder: str | os.PathLike,
    model: keras.Model | str | os.PathLike,
    out: str | os.PathLike,
    *,
    tokens: bool = False,
    share: tuple[int, int] = (0, 1),
    batch_size: int = 32,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes the vectors of all images in a folder into one file, or brings such a file up to date.

    If the file exists, only images that are new, or whose size or time of change is another one, are computed; those
    that are gone are dropped. Its `about` says how many.

    Finished parts are kept in the folder `OUT.partial` until the file is whole: the same call resumes after an
    interruption. Only one part's vectors are in memory. Images that cannot be read are listed in the file and
    in a warning.

    Args:
        folder: Searched with all its subfolders, through links too; hidden ones are left out.
        model: A model, whose head is left out; or what `from_pretrained` takes, such as `"S/14-dinov2"`, a
            recipe with shipped weights, or a run directory. Images are prepared by `preprocess`.
        out: File to write, which ends in `.npz`: `load_index` reads it, and so does `numpy.load`.
        tokens: Whether to write a vector for each patch instead of one for each image.
        share: `(i, n)`: only every n-th image, from the i-th, to divide a folder among machines. Give each its own
            `out`; `load_index(*files)` joins them. New images move others to another share.
        batch_size: Number of images that are computed at once.
        overwrite: Whether to compute all images again, although a file exists, or parts of another model or of other
            images.

    Returns:
        The path of the file. Its arrays are `vectors`, float32, `(images, width)` or with `tokens`
        `(images, rows, columns, width)`; `paths`, relative to the folder; `left_out`, pairs of a path and why it could
        not be read; `about`, JSON with the folder, the model and `changes`, the numbers of images that were `kept`,
        `changed`, `new` and `dropped`; `stamps`, size and time of change of each image's file.

    Raises:
        FileNotFoundError: If the folder does not exist.
        FileExistsError: If the file exists and is of another folder, share or model, damaged, or no index.
        ValueError: For a folder without images, if no image can be read or features are not finite; if another process
            writes this file; if the unfinished parts are of another model, or of other images.
        OSError: If writing fails, for example on a full disk. Parts that were finished remain.
    """
    return embed(folder, model, out, tokens=tokens, share=share, batch_size=batch_size, overwrite=overwrite)[0]


def embed(folder, model, out, *, tokens=False, share=(0, 1), batch_size=32, overwrite=False):
    """Returns the path and the `changes` of `embed_folder`; arguments and errors as there."""
    folder, out = checks.path("folder", folder), checks.path("out", out)
    share = _share(share)
    checks.switch(overwrite=overwrite)
    if out.suffix != ".npz":
        raise ValueError(f"`out` must end in .npz. Received: {str(out)!r}")
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    about = {"folder": str(folder.resolve()), "share": [*share]}
    _older(out, about, overwrite)
    files = in_folder(folder)[share[0] :: share[1]]
    if not files:
        raise ValueError(f"Each share needs an image. Received: share={share}, and fewer images in {str(folder)!r}")
    embedder = Embedder(model, tokens, batch_size)
    each = max(min(PART_BYTES // (4 * math.prod(embedder.shape)), PART_IMAGES), 1)
    embedder.batch_size = min(batch_size, each)
    about |= {"model": embedder.name, "fingerprint": embedder.fingerprint()}
    _older(out, about, overwrite)
    partial = out.with_name(f"{out.name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(partial / LOCK, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ValueError(f"Another process is writing {str(out)!r}. Wait for it, or choose another file.") from None
    try:
        older = _older(out, about, overwrite)  # another process may have written it meanwhile
        stamps = {str(path.relative_to(folder)): _stamp(path) for path in files}
        then = {} if older is None else dict(zip(older["paths"].tolist(), map(tuple, older[STAMPS].tolist())))
        kept = {name: row for row, (name, stamp) in enumerate(then.items()) if stamps.get(name) == stamp}
        new = {name: path for name, path in zip(stamps, files) if name not in kept}
        claim = {**about, "images": _digest({name: stamps[name] for name in new}), "part": each}
        _claim(partial, claim, overwrite or older is not None)  # what an older file lacks is little
        parts = _write_parts(embedder, new, partial, each, claim)
        read, left_out = names_in(parts)
        changed = len(then.keys() & read)
        dropped = len(then) - len(kept) - changed
        changes = {"kept": len(kept), "changed": changed, "new": len(read) - changed, "dropped": dropped}
        if older is None or read or dropped or left_out.tolist() != older["left_out"].tolist():
            if kept:
                check_whole(out)
            join(parts, out, embedder.shape, {**about, "changes": changes}, stamps, kept)
        shutil.rmtree(partial)
    finally:
        lock.release()
    if len(left_out):
        faults = [shown(fault) for _, fault in left_out]
        warned.left_out(f"{len(left_out)} of {len(files)} images, which cannot be read", faults)
    return out, changes


def _older(out, about, overwrite):
    """Returns what is in the file that is to grow, or `None`; raises unless it is what `about` says."""
    if out.is_dir():
        raise ValueError(f"`out` must be a file. Received: the folder {str(out)!r}")
    if overwrite or not out.exists():
        return None
    try:
        older = known(out)
    except ValueError as error:
        raise FileExistsError(f"{error} Pass overwrite=True to replace it.") from None
    differ = [name for name in about if name != "model" and older["about"][name] != about[name]]
    if differ:
        raise FileExistsError(
            f"{str(out)!r} exists, and differs in {', '.join(differ)}. Choose another file, or pass overwrite=True to "
            "replace it."
        )
    return older


def _share(share):
    i, n = share if isinstance(share, (tuple, list)) and len(share) == 2 else (None, None)
    if type(i) is not int or type(n) is not int or not 0 <= i < n:
        raise ValueError(f"`share` must be (i, n) with 0 <= i < n. Received: share={share!r}")
    return i, n


def _claim(partial, about, overwrite):
    """Writes what is embedded into the folder of parts, or compares it with that of the parts that are there."""
    file, parts = partial / ABOUT, [*partial.glob("*.npz")]
    try:
        known = json.loads(read_file(file)) if file.exists() else {}
    except ValueError:
        known = {}
    differ = [name for name in about if known.get(name) != about[name]]
    if not differ:
        return
    if parts and not overwrite:
        raise ValueError(
            f"{str(partial)!r} has unfinished parts that differ in {', '.join(differ)}. Pass overwrite=True to begin "
            "anew, or choose another file."
        )
    for path in parts:
        path.unlink()
    with replacing(file) as temporary:
        temporary.write_text(json.dumps(about))


def _stamp(path):
    """Returns the size of a file and its time of change, in nanoseconds; zeros for a link to nowhere."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _digest(values):
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()


def _write_parts(embedder, files, partial, each, claim):
    """Writes the parts that are not there yet, or are damaged, of `each` images; returns the paths of all.

    Args:
        embedder: An `Embedder`.
        files: Image files by their names in the index.
        partial: The folder of parts.
        each: Images of a part.
        claim: What the parts are of. Each has a digest of it and of its images, so that none is taken for another.
    """
    names = [*files]
    pieces = {partial / f"{first:012}.npz": names[first : first + each] for first in range(0, len(names), each)}
    of = {path: _digest([claim, piece]) for path, piece in pieces.items()}
    missing = {path: piece for path, piece in pieces.items() if not _whole(path, piece, of[path], embedder.shape)}

    def batches():
        for path, piece in missing.items():
            found = []
            for batch in embedder.batches([files[name] for name in piece]):
                found.append(batch)
                yield batch.images
            _write_part(path, found, piece, of[path])

    for _ in counted(batches(), sum(map(len, missing.values())), "embedding"):
        pass
    return [*pieces]


def _whole(path, names, of, shape):
    """Returns whether a part is there and whole: NumPy checks the checksums of what it reads."""
    try:
        with open(regular(path), "rb") as file, np.load(file) as arrays:
            vectors, paths, left_out = arrays["vectors"], arrays["paths"], arrays["left_out"]
            same = str(arrays["of"]) == of
    except Exception:  # zipfile, zlib and NumPy raise many kinds for damaged files
        return False
    fits = vectors.shape == (len(paths), *shape) and vectors.dtype == "float32" and np.isfinite(vectors).all()
    return bool(same and fits and sorted([*paths.tolist(), *left_out[:, 0].tolist()]) == sorted(names))


def _write_part(path, batches, names, of):
    names, paths, left_out = iter(names), [], []
    for batch in batches:
        here = [next(names) for _ in batch.images]
        paths += [here[i] for i in batch.read]
        left_out += [(here[i], fault) for i, fault in batch.faults.items()]
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(
            file,
            vectors=np.concatenate([batch.vectors for batch in batches]),
            paths=np.array(paths, "U"),
            left_out=np.array(left_out, "U").reshape(-1, 2),
            of=np.array(of),
        )

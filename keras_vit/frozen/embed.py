"""Embeds a folder of images: resumes after an interruption, and adds new images to an older file."""

import hashlib
import json
import math
import os
import pathlib
import shutil
import time

import filelock
import keras
import numpy as np

from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import NAMES, STAMPS, check_lengths, stored, write
from keras_vit.utils import checks, warned
from keras_vit.utils.clip_files import ENDINGS, is_clip
from keras_vit.utils.files import closing, naming, replacing
from keras_vit.utils.files import read as read_file
from keras_vit.utils.folders import files_in, in_folder, shown
from keras_vit.utils.progress import counted

SECONDS = 5.0  # of work that is done again after a kill, at most, and the batch that was interrupted
PROGRESS, VECTORS, LOCK = "progress.json", "vectors", ".lock"


def embed_folder(
    folder: str | os.PathLike,
    model: keras.Model | str | os.PathLike,
    out: str | os.PathLike,
    *,
    tokens: bool = False,
    projected: bool = False,
    share: tuple[int, int] = (0, 1),
    batch_size: int = 32,
    overwrite: bool = False,
    frames: int | None = None,
) -> pathlib.Path:
    """Writes the vectors of all images, or clips, in a folder into one file, or brings such a file up to date.

    If the file exists, only images that are new, or whose size or modification time has changed, are computed; those
    that are gone are dropped. Its `about` says how many.

    What is done is kept in the folder `OUT.partial` until the file is complete: the same call resumes after an
    interruption. Only one batch's vectors are in memory; of a file that grows, all of them twice. Images that cannot be
    read are listed in the file and in a warning.

    Args:
        folder: Searched with all its subfolders, through links too; hidden ones are left out.
        model: A model, whose head is left out; or what `from_pretrained` takes, such as `"S/14-dinov2"`, a
            recipe with shipped weights, or a run directory. Images are prepared by `preprocess`.
        out: File to write, which ends in `.npz`: `load_index` reads it, and so does `numpy.load`.
        tokens: Whether to write a vector for each patch instead of one for each image.
        projected: Whether to keep the head of a model of images and texts, CLIP's projection: vectors are then those
            that are compared with texts, as from transformers' `get_image_features`. SigLIP's always are.
        share: `(i, n)`: only every n-th image, from the i-th, to divide a folder among machines. Give each its own
            `out`; `load_index(*files)` joins them. New images move others to another share.
        batch_size: Number of images that are computed at once.
        overwrite: Whether to compute all images again, instead of keeping a file that exists, or unfinished work of
            another model or of other images.
        frames: For a model of images, to embed clips: the frames of each whose vectors are averaged; see `by_frames`.
            `None` for images, and for a model of clips, which reads clips.

    Returns:
        The path of the file. Its arrays are `vectors`, float32, `(images, width)` or with `tokens`
        `(images, rows, columns, width)`; `paths`, relative to the folder; `left_out`, pairs of a path and why it could
        not be read; `about`, JSON with the folder, the model and `changes`, the numbers of images that were `kept`,
        `changed`, `new` and `dropped`; and which `vectors` these are; `stamps`, size and time of change of each image's
        file.

    Raises:
        FileNotFoundError: If the folder does not exist.
        FileExistsError: If the file exists and is of another folder, share or model, damaged, or no index.
        ValueError: For a folder without images, if no image can be read or features are not finite; if another process
            writes this file; if unfinished work is of another model, or of other images.
        OSError: If writing fails, for example on a full disk. What was done remains.
    """
    options = {"tokens": tokens, "projected": projected, "share": share, "batch_size": batch_size, "frames": frames}
    return embed(folder, model, out, **options, overwrite=overwrite)[0]


def embed(
    folder, model, out, *, tokens=False, projected=False, share=(0, 1), batch_size=32, overwrite=False, frames=None
):
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
    if frames is not None or not any(map(is_clip, files_in(folder))):
        _files(folder, frames is not None)  # an empty folder is an error before a model is loaded
    embedder = Embedder(model, tokens, batch_size, projected, frames)
    files = _files(folder, embedder.of_clips)[share[0] :: share[1]]
    if not files:
        raise ValueError(f"Each share needs an image. Received: share={share}, and fewer images in {str(folder)!r}")
    about |= {} if frames is None else {"frames": frames}
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
        stamps = {path.relative_to(folder).as_posix(): _stamp(path) for path in files}
        then = {} if older is None else dict(zip(older["paths"].tolist(), map(tuple, older[STAMPS].tolist())))
        kept = {name: row for row, (name, stamp) in enumerate(then.items()) if stamps.get(name) == stamp}
        new = {name: path for name, path in zip(stamps, files) if name not in kept}
        claim = {**about, "images": _digest({name: stamps[name] for name in new})}
        progress = _begun(partial, claim, 4 * math.prod(embedder.shape), overwrite or older is not None)
        vectors = _embed_new(embedder, new, partial, progress)
        left_out = progress["left_out"]
        faults = dict(left_out)
        names = [name for name in new if name not in faults]
        if not kept and not names:
            raise ValueError(f"No image could be read. The first of {len(left_out)}: {left_out[0][1]}")
        changed = len(then.keys() & names)
        dropped = len(then) - len(kept) - changed
        changes = {"kept": len(kept), "changed": changed, "new": len(names) - changed, "dropped": dropped}
        if older is None or names or dropped or left_out != older["left_out"].tolist():
            if kept:
                names = [name for name in stamps if name in kept or name not in faults]
                vectors = _joined(stored(out, ("vectors", "about"))["vectors"], kept, vectors, names)
            about |= {"changes": changes, "vectors": embedder.vectors, "projected": projected}
            write(out, vectors, names, left_out, [stamps[name] for name in names], about, embedder.projection)
        del vectors  # closed, for systems that delete no open file
    finally:
        lock.release()
    shutil.rmtree(partial, ignore_errors=True)
    if left_out:
        warned.left_out(f"{len(left_out)} of {len(files)} images, which cannot be read", [*map(shown, faults.values())])
    return out, changes


def _files(folder, clips):
    """Returns the paths of all images in a folder, or of all clips; raises ValueError if there is none."""
    if not clips:
        return in_folder(folder)
    found = [pathlib.Path(path) for path in files_in(folder) if is_clip(path)]
    if not found:
        raise ValueError(f"There is no clip in the folder {str(folder)!r}. Known endings: {', '.join(ENDINGS)}.")
    return found


def _joined(older, old_rows, new, names):
    """Returns the vectors of a file that grows, in the order of its names: those that are kept, and the new ones."""
    joined, new = np.empty((len(names), *older.shape[1:]), older.dtype), iter(new)
    for row, name in zip(joined, names):
        row[...] = older[old_rows[name]] if name in old_rows else next(new)
    return joined


def _older(out, about, overwrite):
    """Returns what is in the file that is to grow, or `None`; raises unless it is what `about` says."""
    if out.is_dir():
        raise ValueError(f"`out` must be a file. Received: the folder {str(out)!r}")
    if overwrite or not out.exists():
        return None
    try:
        older = stored(out, (*NAMES[1:], STAMPS))
        check_lengths(out, older)
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
        raise ValueError(f"`share` must be (i, n) with 0 <= i < n. Received: share={checks.shown(share)}")
    return i, n


def _begun(partial, claim, size, restart):
    """Returns the progress of an interrupted call with the same claim, or begins: a dictionary, kept in a JSON file.

    Args:
        partial: The folder of unfinished work.
        claim: What the work is: the folder, the model, the images.
        size: Bytes of an image's vectors.
        restart: Whether to start over where another claim was begun.

    Raises:
        ValueError: If another claim was begun, unless `restart`.
    """
    try:
        progress = json.loads(read_file(partial / PROGRESS))
        differ = [name for name in claim if name != "model" and progress["claim"].get(name) != claim[name]]
        rows = progress["done"] - len(progress["left_out"])
        whole = (partial / VECTORS).stat().st_size >= rows * size
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or damaged
        differ, whole = [], False
    if differ and not restart:
        raise ValueError(
            f"{str(partial)!r} is unfinished work that differs in {', '.join(differ)}. Pass overwrite=True to begin "
            "again, or choose another file."
        )
    return progress if whole and not differ else {"claim": claim, "done": 0, "left_out": []}


def _stamp(path):
    """Returns the size of a file and its time of change, in nanoseconds; zeros for a link to nowhere."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _digest(values):
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()


def _embed_new(embedder, files, partial, progress):
    """Computes the vectors of the images that `progress` lacks; returns those of all that could be read.

    Args:
        embedder: An `Embedder`.
        files: Image files by their names in the index.
        partial: The folder of unfinished work.
        progress: Result of `_begun`; updated.
    """
    names, size = [*files], 4 * math.prod(embedder.shape)
    todo = names[progress["done"] :]

    def finished(rows):
        saved = time.monotonic()
        for batch in embedder.batches([files[name] for name in todo]):
            here = names[progress["done"] : progress["done"] + len(batch.images)]
            with naming(rows.name):
                rows.write(np.ascontiguousarray(batch.vectors, "<f4"))
            progress["left_out"] += [[here[i], fault] for i, fault in batch.faults.items()]
            progress["done"] += len(here)
            if time.monotonic() - saved >= SECONDS or progress["done"] == len(names):
                _save(partial, progress, rows)
                saved = time.monotonic()
            yield batch.images

    with closing(open(partial / VECTORS, "ab")) as rows:  # flushed by `_save`
        rows.truncate(size * (progress["done"] - len(progress["left_out"])))
        for _ in counted(finished(rows), len(todo), "embedding"):
            pass
    if len(names) == len(progress["left_out"]):
        return np.zeros((0, *embedder.shape), "float32")
    return np.memmap(partial / VECTORS, "<f4", "r").reshape(-1, *embedder.shape)


def _save(partial, progress, rows):
    """Saves progress: the vectors first, so that whatever is counted is there."""
    with naming(rows.name):
        rows.flush()
        os.fsync(rows.fileno())
    with replacing(partial / PROGRESS) as temporary:
        temporary.write_text(json.dumps(progress))

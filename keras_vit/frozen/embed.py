"""Embeds a folder of images; a killed process goes on where it was."""

import contextlib
import hashlib
import json
import math
import os
import pathlib
import shutil

import filelock
import keras
import numpy as np

from keras_vit import checks, images
from keras_vit.files import replacing
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import join
from keras_vit.training.progress import counted

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
    """Writes the vectors of all images in a folder into one file.

    Finished parts are kept in the folder `OUT.partial` until the file is whole: the same call resumes after an
    interruption. Only one part's vectors are in memory. Images that cannot be read are listed in the file and at the
    end.

    Args:
        folder: Searched with all its subfolders, through links too; hidden ones are left out.
        model: A model, whose head is left out; or what `from_pretrained` takes, such as `"S/14-dinov2"`, a
            recipe with shipped weights, or a run directory. Images are prepared by `preprocess`.
        out: File to write, which ends in `.npz`: `load_index` reads it, and so does `numpy.load`.
        tokens: Whether to write a vector for each patch instead of one for each image.
        share: `(i, n)`: only every n-th image, from the i-th, to divide a folder among machines. Give each its own
            `out`; `load_index(*files)` joins them.
        batch_size: Number of images that are computed at once.
        overwrite: Whether to replace a file that exists, and parts of another model or of other images.

    Returns:
        The path of the file. Its arrays are `vectors`, float32, `(images, width)` or with `tokens`
        `(images, rows, columns, width)`; `paths`, relative to the folder; `left_out`, pairs of a path and why it could
        not be read; `about`, JSON with the folder and the model.

    Raises:
        FileNotFoundError: If the folder does not exist.
        FileExistsError: If the file exists.
        ValueError: For a folder without images, if no image can be read or features are not finite; if another process
            writes this file; if the unfinished parts are of another model, or of other images.
        OSError: If writing fails, for example on a full disk. Parts that were finished remain.
    """
    folder, out = checks.path("folder", folder), checks.path("out", out)
    share = _share(share)
    checks.switch(overwrite=overwrite)
    if out.suffix != ".npz":
        raise ValueError(f"`out` must end in .npz. Received: {str(out)!r}")
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    _check_free(out, overwrite)
    files = images.in_folder(folder)[share[0] :: share[1]]
    if not files:
        raise ValueError(f"Each share needs an image. Received: share={share}, and fewer images in {str(folder)!r}")
    embedder = Embedder(model, tokens, batch_size)
    each = max(min(PART_BYTES // (4 * math.prod(embedder.shape)), PART_IMAGES), 1)
    embedder.batch_size = min(batch_size, each)
    about = {
        "folder": str(folder.resolve()),
        "share": [*share],
        "model": embedder.name,
        "fingerprint": embedder.fingerprint(),
    }
    partial = out.with_name(f"{out.name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(partial / LOCK, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ValueError(f"Another process is writing {str(out)!r}. Wait for it, or choose another file.") from None
    try:
        _check_free(out, overwrite)  # another process may have written it meanwhile
        _claim(partial, {**about, "images": _listing(files, folder), "part": each}, overwrite)
        parts = _write_parts(embedder, files, folder, partial, each)
        left_out = join(parts, out, embedder.shape, about)
        shutil.rmtree(partial)
    finally:
        lock.release()
    if len(left_out):
        listed = [f"  {images.shown(fault)}" for _, fault in left_out[:10]]
        print(f"Left out {len(left_out)} of {len(files)} images, which cannot be read:", *listed, sep="\n")
    return out


def _check_free(out, overwrite):
    if out.is_dir():
        raise ValueError(f"`out` must be a file. Received: the folder {str(out)!r}")
    if out.exists() and not overwrite:
        raise FileExistsError(f"{str(out)!r} exists. Pass overwrite=True to replace it.")


def _share(share):
    i, n = share if isinstance(share, (tuple, list)) and len(share) == 2 else (None, None)
    if type(i) is not int or type(n) is not int or not 0 <= i < n:
        raise ValueError(f"`share` must be (i, n) with 0 <= i < n. Received: share={share!r}")
    return i, n


def _claim(partial, about, overwrite):
    """Writes what is embedded into the folder of parts, or compares it with that of the parts that are there."""
    file, parts = partial / ABOUT, [*partial.glob("*.npz")]
    try:
        known = json.loads(file.read_text()) if file.exists() else {}
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


def _listing(files, folder):
    """Returns a text that differs for other files, or if one was changed."""
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(os.fsencode(path.relative_to(folder)))
        with contextlib.suppress(OSError):  # a link to nowhere
            status = path.stat()
            digest.update(f"\0{status.st_size} {status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _write_parts(embedder, files, folder, partial, each):
    """Writes the parts that are not there yet, of `each` images; returns the paths of all."""
    pieces = {partial / f"{first:012}.npz": files[first : first + each] for first in range(0, len(files), each)}
    missing = {path: piece for path, piece in pieces.items() if not path.exists()}

    def batches():
        for path, piece in missing.items():
            found = []
            for batch in embedder.batches(piece):
                found.append(batch)
                yield batch.images
            _write_part(path, found, folder)

    for _ in counted(batches(), sum(map(len, missing.values())), "embedding"):
        pass
    return [*pieces]


def _write_part(path, batches, folder):
    name = lambda batch, i: str(batch.images[i].relative_to(folder))  # noqa: E731
    paths = [name(batch, i) for batch in batches for i in batch.read]
    left_out = [(name(batch, i), fault) for batch in batches for i, fault in batch.faults.items()]
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(
            file,
            vectors=np.concatenate([batch.vectors for batch in batches]),
            paths=np.array(paths, "U"),
            left_out=np.array(left_out, "U").reshape(-1, 2),
        )

"""A trained model in a folder or repository: as `push_to_hub` writes it, or Keras's `model.save("hf://...")`."""

import hashlib
import pathlib
import shutil
import zipfile

from keras_vit.checkpoints.files.settings import MAX_JSON, read_json
from keras_vit.utils import downloads, files

PUBLISHED = "keras_vit.json"  # what was published: the files, each with its SHA-256
RUN, TRAINED = "recipe.json", "model.keras"  # in the directory of a run
VECTORS = "model.vectors.npz"  # of training images, by which a classifier tells unknown ones
READ = (RUN, TRAINED, VECTORS, "labels.txt", "data.json")  # of a trained model, all but its own file if there are any
LARGEST = 16 * 2**30  # bytes of a file that is downloaded, at most
KERAS = ("config.json", "metadata.json", "model.weights.h5")  # of Keras, where a model is no zip file


def trained_in(repository, cache=None):
    """Downloads the trained model of a repository; `None` if it has neither this package's nor Keras's.

    Args:
        repository: `hf://owner/name` or `hf://owner/name@revision`.
        cache: As in `downloads.snapshot`.

    Returns:
        A path as `trained_at` returns it.

    Raises:
        ValueError: If a file is damaged, or larger than 16 GB.
        OSError, ImportError: As `downloads.snapshot`.
    """
    folder = downloads.snapshot(repository, [PUBLISHED, "metadata.json"], cache, MAX_JSON)
    if (folder / PUBLISHED).is_file():
        return trained_at(downloads.snapshot(repository, [PUBLISHED, *READ], cache, LARGEST))
    if _is_of_keras(folder):
        return trained_at(downloads.snapshot(repository, [*KERAS], cache, LARGEST))
    return None


def trained_at(folder):
    """Returns the trained model in a folder: the directory of a run, or a `.keras` file; `None` if there is neither.

    What `push_to_hub` wrote is compared with its SHA-256. Keras's files are packed into one, in the cache, so that they
    pass the checks of a file.

    Raises:
        ValueError: If a file is damaged.
    """
    folder = pathlib.Path(folder)
    if (folder / PUBLISHED).is_file():
        _verify(folder)
        return folder if (folder / RUN).is_file() else folder / TRAINED
    if _is_of_keras(folder) and all((folder / name).is_file() for name in KERAS):
        return _packed(folder)
    return None


def _is_of_keras(folder):
    stated = read_json(folder / "metadata.json")
    return "keras_version" in stated and "keras_hub_version" not in stated


def _verify(folder):
    """Raises ValueError unless the files are those that were published."""
    stated = read_json(folder / PUBLISHED).get("files")
    if not isinstance(stated, dict) or TRAINED not in stated:
        raise ValueError(f"{str(folder / PUBLISHED)!r} is damaged: its 'files' must name {TRAINED!r}")
    for name in READ:
        path = folder / name
        if name in stated and not path.is_file():
            raise ValueError(f"{str(folder)!r} is not complete: it has no {name}")
        if path.is_file() and (found := sha256(path)) != stated.get(name):
            raise ValueError(
                f"{str(path)!r} is damaged or another file. SHA-256: expected {stated.get(name)}, found {found}"
            )


def sha256(path):
    """Returns the SHA-256 of a file, 64 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packed(folder):
    """Returns a `.keras` file with the files of a folder. It is made once for each content."""
    parts = [folder / name for name in KERAS]
    digest = hashlib.sha256("".join(map(sha256, parts)).encode()).hexdigest()[:32]
    path = (files.cache() or folder) / "keras" / digest / TRAINED
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for part in parts:
                with open(part, "rb") as file, archive.open(part.name, "w", force_zip64=True) as inside:
                    shutil.copyfileobj(file, inside, 2**20)
    return path

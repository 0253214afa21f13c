"""Publishes a trained model on the Hugging Face hub."""

import glob
import os
import pathlib
import re
import tempfile

import keras

from keras_vit.hub import folder as folders
from keras_vit.hub.content import content_of
from keras_vit.hub.earlier import joined
from keras_vit.runs.trained import Trained
from keras_vit.utils import checks, extras, files

NAME = re.compile(r"(hf://)?(?P<name>[\w][\w.-]*/[\w][\w.-]*)", re.ASCII)


def push_to_hub(
    target: os.PathLike | str | keras.Model | Trained,
    repository: str,
    *,
    license: str | None = None,
    private: bool = False,
    folder: os.PathLike | str | None = None,
) -> str:
    """Publishes a trained model on the Hugging Face hub, with a card that its search reads.

    It uploads the `.keras` file, and of a run also its recipe, the names of its classes, the scores and curves of its
    validation split and the exported files in its directory. Paths are left out of them, and no data are uploaded, but
    the vectors of training images by which a calibrated model tells unknown ones, if it has that rule.
    `load_run`, `from_pretrained` and all commands take `hf://owner/name` then. The names of the classes and the last
    part of the data's path are published: look at the folder first, with `folder`. If the repository has an earlier
    publication, its files that the new one lacks are deleted there; a card that someone has edited stays.

    Args:
        target: As in `load_run`; or any model of images, such as an encoder, of which the file alone is written.
        repository: `"owner/name"`, or `"hf://owner/name"`. It is created if it does not exist.
        license: An identifier of the hub for the license of the weights, such as `"apache-2.0"`.
        private: Whether a new repository can be seen by its owner alone.
        folder: A folder to write everything to, in place of the hub: nothing is uploaded. It must be empty or new.

    Returns:
        The address of what was uploaded, or the path of `folder`.

    Raises:
        ValueError, FileNotFoundError: As `load_run`; ValueError also for another `repository`, or if a file would name
            this machine, its user or a path on it.
        FileExistsError: If `folder` has files.
        ImportError: Without huggingface_hub.
        ConnectionError, PermissionError: If the hub cannot be reached, or does not let this user write.

    Example:

    >>> push_to_hub("runs/cells", "me/cells", license="apache-2.0")  # doctest: +SKIP
    'https://huggingface.co/me/cells/tree/main/'
    """
    match = NAME.fullmatch(repository) if isinstance(repository, str) else None
    if not match:
        raise ValueError(f"`repository` must be 'owner/name'. Received: repository={checks.shown(repository)}")
    extras.need("Publishing", "hub", "huggingface_hub")
    place = None if folder is None else _empty(checks.path("folder", folder))
    content = content_of(target)
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=files.UNFINISHED, dir=place and place.parent) as temporary:
        made = pathlib.Path(temporary, "model")
        made.mkdir()
        folders.write(content, made, match["name"], license)
        if place is None:
            return _upload(made, match["name"], private)
        if place.exists():
            place.rmdir()
        made.rename(place)
    return str(place)


def _empty(path):
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"`folder` must be new or empty. Received: folder={str(path)!r}")
    return path


def _upload(folder, name, private):
    """Uploads a folder in one commit, and returns its address."""
    import huggingface_hub
    from huggingface_hub import errors

    api = huggingface_hub.HfApi(library_name="keras_vit")
    try:
        gone = [glob.escape(file) for file in joined(folder, name)]
        api.create_repo(name, private=private, exist_ok=True)
        said = {"commit_message": "Upload model with keras_vit", "delete_patterns": gone or None}
        return str(api.upload_folder(folder_path=folder, repo_id=name, **said))
    except Exception as error:  # of the hub's library, or of the one that it sends with
        code = getattr(getattr(error, "response", None), "status_code", None)
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        if code in (401, 403) or isinstance(error, errors.LocalTokenNotFoundError):
            raise PermissionError(f"{name!r} cannot be written: {line.rstrip('.')}. Run: hf auth login") from None
        raise ConnectionError(f"{name!r} cannot be written: {line}") from None

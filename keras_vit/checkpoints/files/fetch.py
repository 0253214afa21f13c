"""Finds a checkpoint by its path, or downloads it from a URL or the Hugging Face hub."""

import contextlib
import hashlib
import os
import pathlib
import re
import tempfile
import urllib.parse

import keras

from keras_vit.checkpoints.files import keras_hub, pipeline, repository
from keras_vit.checkpoints.files.settings import MAX_JSON
from keras_vit.checkpoints.files.wrapped import GENERATION, OPEN_CLIP
from keras_vit.utils import checks, downloads, files

_PART = ".part-"  # prefix of a folder with an unfinished download
_SETTINGS = ["config.json", "preprocessor_config.json", "processor_config.json", GENERATION, OPEN_CLIP]
# The first kind that exists, with the index of shards.
_WEIGHTS = [["model*.safetensors*"], ["pytorch_model*.bin*"], ["tf_model.h5"], ["open_clip_model.safetensors"]]
_WEIGHTS += pipeline.WEIGHTS


def fetch(source, *, sha256=None, cache_dir=None, part=None):
    """Downloads a checkpoint if needed, and returns its path. A download is kept, and not repeated.

    Args:
        source: The path of a file or folder, an `https://` or `http://` URL of a file, or a repository of the Hugging
            Face hub as `hf://owner/name` or `hf://owner/name@revision`.
        sha256: SHA-256 of the file, or its first 8 or more hex digits. A cached file with another hash is downloaded
            again.
        cache_dir: Folder for downloads. By default the hub's own cache for a repository, and `keras_vit` in
            the home of Keras (`$KERAS_HOME`, else `~/.keras`) for a URL.
        part: The part that the caller needs, as in `from_checkpoint`: of a repository with several models, that of a
            DiT and its autoencoder, only that part is downloaded.

    Returns:
        The path of the file. For a repository, the path of a folder with its settings and its weights, in safetensors
        if it has them; of what `push_to_hub` or Keras wrote, that of a run or of a `.keras` file.

    Raises:
        ValueError: For a source of another kind, an invalid `sha256`, or a file with another hash.
        OSError: FileNotFoundError if there is no such file, repository or revision; ConnectionError if the server
            cannot be reached, responds with an error or breaks off; PermissionError for a gated repository; OSError for
            a full disk. No partial file is left in the cache.
        ImportError: For a repository, without the package huggingface_hub.
    """
    if sha256 is not None and not (isinstance(sha256, str) and re.fullmatch("[0-9a-fA-F]{8,64}", sha256)):
        raise ValueError(
            f"`sha256` must be 64 hex digits, or the first 8 or more. Received: sha256={checks.shown(sha256)}"
        )
    scheme, mark, _ = str(source).partition("://")
    scheme = scheme.lower() if mark else "path"
    if not isinstance(source, (str, os.PathLike)) or not source or scheme not in ("path", "https", "http", "hf"):
        kaggle = f" Pass the folder of kagglehub.model_download({source[9:]!r})." if scheme == "kaggle" else ""
        raise ValueError(
            f"`source` must be a path, https://, http:// or hf:// address. Received: source={checks.shown(source)}"
            f"{kaggle}"
        )
    if scheme in ("https", "http"):
        home = os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")  # as `get_file` documents it
        return _from_url(source, sha256, _expand(cache_dir or os.path.join(home, "keras_vit")))
    if scheme == "path" and not _expand(source).exists():
        hub = f" Did you mean 'hf://{source}'?" if re.fullmatch(r"[\w-]+/[\w.-]+", str(source)) else ""
        raise FileNotFoundError(f"There is no file or folder {str(source)!r}.{hub}")
    if sha256 and (scheme == "hf" or _expand(source).is_dir()):
        raise ValueError(
            f"`sha256` must be None: {str(source)!r} is not one file. Received: sha256={checks.shown(sha256)}"
        )
    if scheme == "hf":
        return _from_hub(source, cache_dir and _expand(cache_dir), part)
    path = _verified(_expand(source), sha256, source)
    return (path.is_dir() and repository.trained_at(path)) or path


def _expand(path):
    return pathlib.Path(os.path.expanduser(path))


def _verified(path, sha256, name):
    """Returns the path of a file; raises ValueError if its hash differs."""
    if sha256:
        actual = repository.sha256(path)
        if not actual.startswith(sha256.lower()):
            raise ValueError(f"{str(name)!r} is damaged or another file. SHA-256: expected {sha256}, found {actual}")
    return path


def _from_url(url, sha256, cache):
    """Downloads the file of a URL. `get_file` alone would take a killed process's partial file for a whole one."""
    path = cache / hashlib.sha256(url.encode()).hexdigest()[:12] / _file_name(url)
    if path.is_file():
        with contextlib.suppress(ValueError):
            return _verified(path, sha256, path)
    cache.mkdir(parents=True, exist_ok=True)  # else `get_file` uses a shared temporary folder
    files.sweep(cache, _PART)
    with tempfile.TemporaryDirectory(prefix=_PART, dir=cache, ignore_cleanup_errors=True) as folder:
        try:
            part = keras.utils.get_file(path.name, url, cache_dir=folder, cache_subdir="")
            with open(part, "rb+") as file:
                os.fsync(file)
        except Exception as error:  # `get_file` raises no narrower class
            by_hand = (
                f"Put the file at {str(path)!r} (KERAS_HOME names another folder than ~/.keras), or pass its path."
            )
            raise downloads.clear_error(error, url, cache, by_hand) from None
        _verified(part, sha256, url)
        path.parent.mkdir(exist_ok=True)
        os.replace(part, path)
    return path


def _file_name(url):
    """Returns the name to keep the file of a URL under: valid on every disk, and not a path."""
    parts = re.split("[?#]", url)[0].split("/")[3:] or [""]
    name = urllib.parse.unquote(parts[-1])
    if not name.strip("./") or not re.fullmatch("[!-~]+", url):
        raise ValueError(f"A URL must end with the name of a file, in ASCII without spaces. Received: {url!r}")
    return re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[-128:]


def _from_hub(source, cache, part):
    """Downloads the settings of a repository, and its weights of the first kind that it has."""
    if trained := repository.trained_in(source, cache):
        return trained
    if keras_hub.is_preset(downloads.snapshot(source, [keras_hub.METADATA], cache, MAX_JSON)):
        return downloads.snapshot(source, [*keras_hub.FILES], cache, repository.LARGEST)
    for weights in _WEIGHTS:
        folder = downloads.snapshot(source, [*_SETTINGS, *pipeline.SETTINGS, *weights], cache)
        if pipeline.is_pipeline(folder):
            return _of_pipeline(source, folder, cache, part)
        if any(any(folder.glob(name)) for name in weights):
            return folder
    raise FileNotFoundError(
        f"{source!r} has no weights: neither {_WEIGHTS[0][0]} nor {_WEIGHTS[1][0]}. An adapter of PEFT must be merged "
        "into its base model first."
    )


def _of_pipeline(source, folder, cache, part):
    """Downloads the weights of a repository with several models: those of the parts that are needed."""
    patterns = [*pipeline.SETTINGS]
    for name in pipeline.folders(folder, part, source):
        for weights in pipeline.WEIGHTS:
            of_name = [f"{name}/{file}" for file in weights]
            folder = downloads.snapshot(source, [*patterns, *of_name], cache)
            if any(any(folder.glob(file)) for file in of_name):
                patterns += of_name
                break
        else:
            kinds = " nor ".join(weights[0] for weights in pipeline.WEIGHTS)
            raise FileNotFoundError(f"{source!r} has no weights in {name!r}: neither {kinds}")
    return folder

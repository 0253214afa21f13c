"""Downloads parts of a repository of the Hugging Face hub, and says in a sentence why a download failed."""

import errno
import http.client
import os
import pathlib
import re
import shutil

from keras_vit.utils import extras


def snapshot(source, patterns, cache=None):
    """Downloads files of a repository. The hub's own library verifies them, and finds them in its cache when offline.

    Args:
        source: `hf://owner/name` or `hf://owner/name@revision`.
        patterns: Names of the files to download, with `*` for any text.
        cache: Folder for downloads; the hub's own if `None`.

    Returns:
        The path of the folder, which has those of the files that exist.

    Raises:
        ValueError, OSError, ImportError: As `checkpoints.files.fetch`.
    """
    match = re.fullmatch(r"hf://(\w[\w.-]*/\w[\w.-]*)(?:@([^\s@]+))?", source, flags=re.IGNORECASE | re.ASCII)
    if not match:
        raise ValueError(f"A repository must be hf://owner/name or hf://owner/name@revision. Received: {source!r}")
    extras.need(repr(source), "hub", "huggingface_hub")
    from huggingface_hub import constants, errors, snapshot_download

    repo, revision = match.groups()
    cache = cache or pathlib.Path(constants.HF_HUB_CACHE)
    try:
        return pathlib.Path(snapshot_download(repo, revision=revision, cache_dir=cache, allow_patterns=patterns))
    except errors.GatedRepoError:
        raise PermissionError(f"{source!r} is gated. Request access on its page, then run: hf auth login") from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        raise FileNotFoundError(f"There is no {source!r}, or it is private. Then run: hf auth login") from None
    except errors.LocalEntryNotFoundError as error:
        reason = _line(error.__cause__ or error).rstrip(".")
        raise ConnectionError(
            f"{source!r} cannot be reached and is not complete in the cache, {str(cache)!r}: {reason}. "
            f"{_by_hand(match)}"
        ) from None
    except Exception as error:
        raise clear_error(error, source, cache, _by_hand(match)) from None


def _by_hand(match):
    """Returns how to get a repository where there is no network."""
    repo, revision = match.groups()
    words = f"hf download {repo}{f' --revision {revision}' if revision else ''} --local-dir FOLDER"
    return (
        f"Where there is a network, run: {words}; then pass the path of FOLDER, or set HF_HOME to a copy of that "
        "machine's cache."
    )


def clear_error(error, source, folder, instead="To use a local file, pass its path."):
    """Returns the error to raise instead of a download library's.

    Args:
        error: The library's.
        source: What was to be downloaded.
        folder: Where to.
        instead: What to do without a network, a sentence.
    """
    if type(error) is Exception and error.__context__:  # `get_file` wraps the exceptions of urllib
        error = error.__context__
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        free = shutil.disk_usage(folder).free
        return OSError(f"No room in {str(folder)!r} for {source!r}: {os.strerror(error.errno)}, {free:,} bytes free")
    reason, code = _line(getattr(error, "reason", error)), getattr(error, "code", None)
    if isinstance(error, (http.client.InvalidURL, ValueError)):
        return ValueError(f"Cannot download {source!r}: {reason}")
    if code:  # an HTTP error
        error.close()
        reason = f"the server responded {code}, {reason}"
    kind = FileNotFoundError if code == 404 else ConnectionError
    return kind(f"Cannot download {source!r}: {reason.rstrip('.')}. {instead}")


def _line(error):
    return (str(error).strip() or type(error).__name__).partition("\n")[0]

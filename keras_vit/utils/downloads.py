"""Downloads parts of a repository of the Hugging Face hub, and says in a sentence why a download failed."""

import errno
import fnmatch
import http.client
import os
import pathlib
import re
import shutil

from keras_vit.utils import extras


def snapshot(source, patterns, cache=None, largest=None):
    """Downloads files of a repository. The hub's own library verifies them, and finds them in its cache when offline.

    Args:
        source: `hf://owner/name` or `hf://owner/name@revision`.
        patterns: Names of the files to download, with `*` for any text.
        cache: Folder for downloads; the hub's own if `None`.
        largest: Bytes of a file, at most; what is in the cache is not asked for.

    Returns:
        The path of the folder, which has those of the files that exist.

    Raises:
        ValueError, OSError, ImportError: As `checkpoints.files.fetch`; ValueError for a larger file too.
    """
    match = _parts(source)
    if not match:
        raise ValueError(f"A repository must be hf://owner/name or hf://owner/name@revision. Received: {source!r}")
    extras.need(repr(source), "hub", "huggingface_hub")
    from huggingface_hub import constants, errors, snapshot_download

    repo, revision = match.groups()
    cache = cache or pathlib.Path(constants.HF_HUB_CACHE)
    try:
        if largest is not None:
            _check_sizes(source, repo, revision, patterns, largest)
        return pathlib.Path(snapshot_download(repo, revision=revision, cache_dir=cache, allow_patterns=patterns))
    except TooLargeError:
        raise
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


def is_repository(source):
    """Returns whether a source is the address of a repository, `hf://...`."""
    return isinstance(source, str) and source.lower().startswith("hf://")


def _parts(source):
    return re.fullmatch(r"hf://(\w[\w.-]*/\w[\w.-]*)(?:@([^\s@]+))?", source, flags=re.IGNORECASE | re.ASCII)


class TooLargeError(ValueError):
    """A file of a repository is larger than the caller takes."""


def _check_sizes(source, repo, revision, patterns, largest):
    """Raises TooLargeError for a file of the patterns that is larger; without a network, nothing is downloaded."""
    from huggingface_hub import HfApi

    try:
        listed = HfApi().repo_info(repo, revision=revision, files_metadata=True).siblings
    except Exception:  # of the library that sends, too: `snapshot_download` says why, or finds all in the cache
        return
    for file in listed:
        if any(fnmatch.fnmatch(file.rfilename, pattern) for pattern in patterns) and (file.size or 0) > largest:
            raise TooLargeError(
                f"Files of {source!r} must have {largest:,} bytes at most. Received: {file.rfilename!r} of "
                f"{file.size:,} bytes"
            )


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

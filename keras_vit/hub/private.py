"""Keeps a machine's paths and names out of what is published."""

import getpass
import os
import pathlib
import re
import socket
import zipfile

# Options and metadata that may be paths. Others, such as words and labels, are content: they are never changed.
PLACES = {"source", "weights", "autoencoder", "judge", "teacher", "start", "tokens"}
KIND = re.compile(r"(folder|table|file):(.*)", re.DOTALL)
PATH = re.compile(r"(/|~|[A-Za-z]:[\\/]|\.\.?[\\/]|\\\\).*", re.DOTALL)
SHORT = 4  # letters of a name of a user or machine that is looked for: shorter ones are part of many words


def without_paths(values, key=None):
    """Returns JSON values in which each path is its last part: `"folder:/home/me/cells"` becomes `"folder:cells"`.

    Paths are what follows `folder:`, `table:` or `file:`, and what is absolute, below a home, or begins with `./` or
    `../`, in the options of `PLACES`. Names in a project, such as `runs/mae`, stay. Of a URL, the user is left out.
    """
    if isinstance(values, dict):
        return {name: without_paths(value, name) for name, value in values.items()}
    if not isinstance(values, str) or key not in PLACES:
        return values
    if match := KIND.fullmatch(values):
        return f"{match[1]}:{_last(match[2])}"
    return _last(values) if PATH.fullmatch(values) else re.sub(r"://[^/@\s]+@", "://", values)


def _last(path):
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def left_out(values, key=None):
    """Returns the values that `without_paths` changes, a set."""
    if isinstance(values, dict):
        return set().union(*(left_out(value, name) for name, value in values.items()))
    return set() if without_paths(values, key) == values else {KIND.sub(r"\2", values)}


def check(folder, repository, paths=()):
    """Raises ValueError if a file has a path that was left out, one of a home or of here, or this user's name.

    Of the user's and the machine's name, those of at least four letters are looked for, inside paths and addresses,
    since either may be a common word.

    Args:
        folder: What is to be published.
        repository: `"owner/name"`, which may have the user's name.
        paths: Other paths that no file may have.
    """
    places = {pathlib.Path.home(), pathlib.Path.home().resolve(), pathlib.Path(os.curdir).resolve()}
    below = [re.escape(str(place).rstrip("\\/")) for place in places if place != pathlib.Path(place.anchor)]
    names = {name for name in (_user(), socket.gethostname()) if len(name) >= SHORT}
    patterns = [rf"{place}[\\/]" for place in below] + [rf"[/\\@]{re.escape(name)}\b" for name in names]
    patterns += [re.escape(path) for path in paths if PATH.fullmatch(path)]
    looked_for = re.compile("|".join(patterns).encode()) if patterns else None
    for name, content in _contents(folder):
        content = content.replace(b"\\\\", b"\\").replace(f"hf://{repository}".encode(), b"")
        if looked_for and (found := looked_for.search(content)):
            place = found[0].decode(errors="replace")
            raise ValueError(f"Nothing of this machine may be published, and {name!r} names it. Received: {place!r}")


def _user():
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _contents(folder):
    """Yields names of files in a folder, and their bytes; of a `.keras` file those of its JSON."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".keras":
            with zipfile.ZipFile(path) as archive:
                for member in ("config.json", "metadata.json"):
                    yield f"{name}: {member}", archive.read(member)
        elif path.is_file():
            yield name, path.read_bytes()

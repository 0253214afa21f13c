"""Keeps a machine's paths and names out of what is published."""

import getpass
import os
import pathlib
import re
import socket
import zipfile

PATH = re.compile(r"^(?P<kind>folder:|file:)?(?P<path>(/|~|[A-Za-z]:[\\/]|\.\.?[\\/]|\\\\).*)$", re.DOTALL)
TEXTS = (".json", ".txt", ".md", ".csv", ".xml", ".yaml")  # files whose content is read; of a `.keras` file, its JSON
SHORT = 4  # letters of a name of a user or machine that is looked for: shorter ones are part of many words


def without_paths(values):
    """Returns JSON values in which each path is its last part: `"folder:/home/me/cells"` becomes `"folder:cells"`.

    Paths are absolute, below a home, or begin with `./` or `../`; other paths with a separator are names in a project,
    such as `runs/mae`, and stay.
    """
    if isinstance(values, dict):
        return {key: without_paths(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [without_paths(value) for value in values]
    match = PATH.match(values) if isinstance(values, str) else None
    if not match:
        return values
    last = re.split(r"[\\/]", match["path"].rstrip("\\/"))[-1]
    return f"{match['kind'] or ''}{last}"


def check(folder):
    """Raises ValueError if a text in a folder has the path of the home or current directory, or this user's name.

    Of the user's and the machine's name, those of at least four letters are looked for, as whole words inside paths and
    addresses, since either may be a common word.
    """
    home, here = (str(pathlib.Path(place).resolve()) for place in (pathlib.Path.home(), os.curdir))
    found = {place: "a path of this machine" for place in (home, here) if len(pathlib.Path(place).parts) > 2}
    names = {name for name in (_user(), socket.gethostname()) if len(name) >= SHORT}
    patterns = [(re.compile(rf"[/\\@]{re.escape(name)}\b"), name) for name in names]
    for path, text in _texts(folder):
        place = next((place for place in found if place in text), None)
        place = place or next((name for pattern, name in patterns if pattern.search(text)), None)
        if place:
            raise ValueError(
                f"Nothing of this machine may be published, and {path!r} names it. Received: {place!r} in that file"
            )


def _user():
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _texts(folder):
    """Yields names of files in a folder, and their texts."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix in TEXTS:
            yield name, path.read_text(encoding="utf-8", errors="replace")
        elif path.suffix == ".keras":
            with zipfile.ZipFile(path) as archive:
                for member in ("config.json", "metadata.json"):
                    yield f"{name}: {member}", archive.read(member).decode("utf-8", errors="replace")

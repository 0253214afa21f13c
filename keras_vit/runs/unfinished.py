"""A folder whose files are not all written yet: of which model and options those are that it has."""

import hashlib
import json

from keras_vit.utils import files
from keras_vit.utils.weights_digest import WEIGHTS, weights_digest

NAME = ".unfinished.json"  # in the folder, until the last file is written
OPTIONS = "options_sha256"


def facts(trained, *others):
    """Returns what decides about the files of a call, a dictionary of two hashes.

    Args:
        trained: A `Trained`.
        *others: Further arguments of the call, such as texts.
    """
    options = repr((trained.task, trained.bound.data, *others))
    return {WEIGHTS: weights_digest(trained.model), OPTIONS: hashlib.sha256(options.encode()).hexdigest()}


def note(folder, known):
    """Writes `facts` into a folder; where the note of another call is there, one that no call continues."""
    try:
        known = known if _found(folder) == known else {}
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        known = {}
    with files.replacing(folder / NAME) as temporary:
        temporary.write_text(json.dumps(known), encoding="utf-8")


def done(folder):
    """Removes what `note` wrote: all files are there."""
    (folder / NAME).unlink(missing_ok=True)


def check(folder, known):
    """Raises ValueError unless a folder was left by an interrupted call with the same `facts`."""
    try:
        found = _found(folder)
    except FileNotFoundError:
        _refuse(folder, "which no interrupted call left")
    except (OSError, ValueError):
        _refuse(folder, f"whose {NAME} is damaged")
    for name, what in ((WEIGHTS, "another model"), (OPTIONS, "other options")):
        if not isinstance(found, dict) or found.get(name) != known[name]:
            _refuse(folder, f"which has files of {what}")


def _found(folder):
    return json.loads((folder / NAME).read_text(encoding="utf-8"))


def _refuse(folder, why):
    raise ValueError(
        "`resume` needs a folder that an interrupted call of the same model and options left. "
        f"Received: to={str(folder)!r}, {why}"
    )

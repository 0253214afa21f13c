"""Names of classes in the cells of a table, and their order."""

import re

from keras_vit.utils.names import composed
from keras_vit.utils.warned import warn

QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
LISTED = re.compile(rf"\[\s*(?:{QUOTED}\s*(?:,\s*{QUOTED}\s*)*,?\s*)?\]", re.DOTALL)  # Python's, of texts
NOTHING = ("nan", "NaN", "NAN", "None", "null", "NULL")  # what programs write for a value that is missing


def name_of(value, column, names=()):
    """Returns the name of a class that a cell says, in Unicode's form NFC, in which `é` is one character.

    Args:
        value: What the cell has.
        column: Name of the column.
        names: Names that are classes though they look like a missing value.

    Raises:
        ValueError: If it is no name of a class.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"{column!r} must be the name of a class. Received: {value!r:.60}")
    name = composed(str(value)).strip()
    if len(name.splitlines()) != 1 or "\0" in name or not is_utf8(name):
        raise ValueError(f"{column!r} must be the name of a class, one line of UTF-8. Received: {name!r:.60}")
    if LISTED.fullmatch(name):
        raise ValueError(f"{column!r} must be the name of one class, no list. Received: {name!r:.60}")
    if name in NOTHING and name not in names:
        raise ValueError(f"{column!r} must be the name of a class, not of a missing value. Received: {name!r}")
    return name


def tell_nothing(words, columns=()):
    """Warns of words that are read as they are and may have been meant for a missing value.

    Args:
        words: These words, each as often as it is there.
        columns: Names of the columns of a table.
    """
    if words:
        where = f"{' and '.join(map(repr, columns))} has " if columns else "there are "
        warn(
            f"{where}{', '.join(map(repr, dict.fromkeys(words)))}, which programs also write for a missing value: read "
            "as words. Leave these rows out if nothing was meant."
        )


def is_utf8(name):
    """Returns whether a text can be written as UTF-8; half of a surrogate pair, `"\\ud800"`, cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def in_order(names):
    """Returns names sorted; those that are all whole numbers by their value."""
    numbers = all(name.removeprefix("-").isdecimal() for name in names)
    return sorted(names, key=(lambda name: (int(name), name)) if numbers else None)

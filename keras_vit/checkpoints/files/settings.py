"""Reads settings next to weights, and says in one sentence what is damaged."""

import contextlib
import json

MAX_JSON = 2**26  # bytes of a configuration


def read_json(path):
    """Reads a configuration; `{}` if there is none."""
    if not path.is_file():
        return {}
    with one_error(path):
        if path.stat().st_size > MAX_JSON:
            raise ValueError(f"it has {path.stat().st_size:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is not a dictionary")
        return content


class UnreadableError(ValueError):
    """Names a file that cannot be read, and why."""


@contextlib.contextmanager
def one_error(path):
    """Turns any exception of a damaged file into one `UnreadableError`; one of a file inside stays as it is."""
    try:
        yield
    except (ImportError, MemoryError, UnreadableError):
        raise
    except Exception as error:
        raise UnreadableError(f"{str(path)!r} cannot be read: {(str(error) or repr(error)).splitlines()[0]}") from None

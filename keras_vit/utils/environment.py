"""Variables of the environment, the only switch that some libraries have."""

import contextlib
import os


@contextlib.contextmanager
def environment(name, value):
    """A block in which a variable of the environment has a value."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        os.environ |= {} if before is None else {name: before}

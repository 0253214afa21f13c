"""Environment variables, the only switch that some libraries have."""

import contextlib
import os


@contextlib.contextmanager
def environment(name, value):
    """Sets an environment variable within a block."""
    previous = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if previous is None:
            del os.environ[name]
        else:
            os.environ[name] = previous

"""Imports Keras without optional libraries, for commands that answer at once."""

import contextlib
import sys

UNUSED = ("IPython", "matplotlib", "pandas", "sklearn")  # optional to Keras, and a third of the time of its import


class Absent:
    """A finder of modules, by which some libraries are not installed."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextlib.contextmanager
def without(*names):
    """Makes libraries that are not imported yet look as if they were not installed, inside the block."""
    finder = Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def import_keras():
    """Imports Keras. Its wrappers for scikit-learn, and what else needs these libraries, are off in this process."""
    with without(*UNUSED):
        import keras  # noqa: F401

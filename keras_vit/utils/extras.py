"""Packages that only some tasks need: the extras of `pyproject.toml`."""

import importlib.util

DISTRIBUTION = "keras-vision-transformers"


def need(what, extra, *modules):
    """Raises ImportError, with the extra to install, unless these modules can be imported."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"{what} needs {', '.join(missing)}. {install(extra)}")


def install(*extras):
    """Returns how to install extras."""
    return f"Install it: pip install '{DISTRIBUTION}[{','.join(extras)}]'."

"""The checkout that is measured, and where."""

import os
import pathlib
import platform
import subprocess
from importlib.metadata import version


def commit():
    """Returns the short name of the checkout's commit, or an empty string outside a checkout."""
    words = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(words, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()


def about(*packages):
    """Returns the commit, Keras's backend, the machine and the versions of packages, as results have them."""
    import keras

    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    found = {"commit": commit(), "backend": keras.backend.backend(), "device": machine}
    return found | {name: version(name) for name in packages}

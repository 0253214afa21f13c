"""Devices and versions for a measurement."""

import importlib.metadata
import os
import platform

import keras

from keras_vit import __version__

PACKAGES = ("keras", "tensorflow", "jax")


def describe():
    """Returns the devices and library versions of this process, as a dictionary for JSON."""
    others = [name for name in keras.distribution.list_devices() if not name.startswith("cpu")]
    return {
        "device": ", ".join([*others, f"{os.cpu_count()} CPU cores, {platform.machine()}"]),
        "system": platform.system(),
        "python": platform.python_version(),
        "backend": keras.backend.backend(),
        "keras_vit": __version__,
        **{name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

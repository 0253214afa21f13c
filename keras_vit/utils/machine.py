"""What a process runs on: devices, abilities of the processor, versions."""

import importlib.metadata
import pathlib
import platform
import re

import keras

from keras_vit import __version__
from keras_vit.utils.cores import cores

PACKAGES = ("keras", "tensorflow", "jax")
CPUINFO = pathlib.Path("/proc/cpuinfo")  # of Linux
BFLOAT16 = r"\b(avx512_bf16|amx_bf16|bf16)\b"  # instructions of Intel and AMD, and of ARM


def describe():
    """Returns the devices and library versions of this process, as a dictionary for JSON."""
    return {
        "device": ", ".join([*accelerators(), f"{cores()} CPU cores, {platform.machine()}"]),
        "system": platform.system(),
        "python": platform.python_version(),
        "backend": keras.backend.backend(),
        "keras_vit": __version__,
        **{name: version for name in PACKAGES if (version := _version(name))},
    }


def accelerators():
    """Returns the names of the GPUs and TPUs of the backend."""
    return [name for name in keras.distribution.list_devices() if not name.startswith("cpu")]


def lacks_bfloat16():
    """Returns whether the processor has no instructions for bfloat16; `False` if that is unknown, as outside Linux."""
    try:
        text = CPUINFO.read_text()
    except OSError:
        return False
    abilities = re.search(r"^(flags|Features)\s*:.*", text, re.MULTILINE)
    return bool(abilities) and not re.search(BFLOAT16, abilities[0])


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

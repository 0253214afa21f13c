"""Vision Transformers for Keras 3."""

import re
import sys
import typing

from keras_vit.utils import versions

__version__ = "0.1.0"

# While Python looks for the module of `python -m keras_vit`, argv[0] is "-m"; of the installed command, it is its path.
# There, Keras is imported with the first name that is asked for, since its import takes seconds and help needs none.
# Programs get all names, and the layers that Keras loads by name, at once.
_command_line = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv) :][:1] == [__name__]
_command_line |= re.split(r"[/\\]", "".join(sys.argv[:1]))[-1] in (__name__, f"{__name__}.exe")

versions.check_keras()
if typing.TYPE_CHECKING or not _command_line:
    from keras_vit.public import *  # noqa: F403


def __getattr__(name):
    from importlib import import_module, util

    if _command_line:
        if util.find_spec(f"{__name__}.{name}"):  # `from keras_vit import config` asks for a part, not for all names
            return import_module(f"{__name__}.{name}")
        public = vars(import_module("keras_vit.public"))  # without some names, if it is being imported just now
        globals().update({key: value for key, value in public.items() if not key.startswith("_")})
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    from keras_vit import public

    return sorted({*vars(public), *(name for name in globals() if name.startswith("__"))})


del re, sys, typing, versions

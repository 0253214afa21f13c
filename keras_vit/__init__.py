"""Vision Transformers for Keras 3."""

import re
import sys
import typing

__version__ = "0.1.0"

_MOVED = {
    "callbacks": "training.stopping",
    "distillation": "tasks.distillation",
    "distribution": "training.devices",
    "finetuning": "training.finetuning",
    "gradients": "explain.relevance",
    "losses": "tasks.classify",
    "positions": "resampling",
    "rundir": "training.rundir",
    "shapes": "keras_private",
    "snapshots": "training.state",
}

# While Python looks for the module of `python -m keras_vit`, argv[0] is "-m"; of the installed command, it is its path.
# There, Keras is imported with the first name that is asked for, since its import takes seconds and help needs none.
# Programs get all names, and the layers that Keras loads by name, at once.
_command_line = sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv) :][:1] == [__name__]
_LIGHT = ("checks", "files", "metrics", "variants")  # `from keras_vit import files` asks for a name too: without Keras
_command_line |= re.split(r"[/\\]", "".join(sys.argv[:1]))[-1] in (__name__, f"{__name__}.exe")

if typing.TYPE_CHECKING or not _command_line:
    from keras_vit.public import *  # noqa: F403


def __getattr__(name):
    from importlib import import_module

    if name in _MOVED:
        import warnings

        new = f"{__name__}.{_MOVED[name]}"
        warnings.warn(f"keras_vit.{name} is now {new}.", DeprecationWarning, stacklevel=2)
        return import_module(new)
    if _command_line and name not in _LIGHT:
        public = vars(import_module("keras_vit.public"))  # without some names, if it is being imported just now
        globals().update({key: value for key, value in public.items() if not key.startswith("_")})
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    from keras_vit import public

    return sorted({*vars(public), *(name for name in globals() if name.startswith("__"))})


del re, sys, typing

"""The command line: python -m keras_vit COMMAND."""

import os
import sys
import warnings

from keras_vit.commands import checkpoints, recipes, runs, training
from keras_vit.commands.quiet import quiet
from keras_vit.commands.words import call

COMMANDS = {
    "list": recipes.list_,
    "show": recipes.show,
    "copy": recipes.copy,
    "fit": training.fit,
    "evaluate": runs.evaluate,
    "predict": runs.predict,
    "export": runs.export,
    "explain": runs.explain,
    "report": runs.report,
    "demo": runs.demo,
    "checkpoints": checkpoints.checkpoints,
    "convert": checkpoints.convert,
    "tour": training.tour,
}


def main(words=None):
    """Runs one command; an error that its user can mend is one sentence and exit status 2."""
    warnings.formatwarning = lambda message, *where, **more: f"warning: {message}\n"
    try:
        command = call(COMMANDS, sys.argv[1:] if words is None else words, "Vision Transformers for Keras 3.")
        with quiet():
            command()
            sys.stdout.flush()
    except BrokenPipeError:  # such as of `head`, which has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except mendable() as error:
        print(f"error: {sentence(error)}".replace("overwrite=True", "--overwrite"), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stopped:
        print(f"\n{stopped}" if str(stopped) else "\nInterrupted.", file=sys.stderr)
        sys.exit(128 + int(getattr(stopped, "signal", 2)))


def mendable():
    """Returns the kinds of errors that tell of something that the user can mend; of others the trail is shown."""
    tensorflow = sys.modules.get("tensorflow")  # once it is there; for memory, disks and files
    kinds = (ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError)
    return (*kinds, tensorflow.errors.OpError) if tensorflow else kinds


def sentence(error):
    """Returns what an error says: all of ours, and of the system's and TensorFlow's what matters to the user."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{str(error.filename)!r}: {error.strerror}."
    text = getattr(error, "message", str(error))
    return text.splitlines()[0] if hasattr(error, "op") and text else text or type(error).__name__


if __name__ == "__main__":
    main()

"""The command line: python -m keras_vit COMMAND."""

from keras_vit.commands.interrupts import ending, interruptible

with ending():  # the imports take half a second
    import contextlib
    import functools
    import io
    import os
    import re
    import sys
    import warnings

    import tyro

    from keras_vit import __version__
    from keras_vit.commands import (
        checkpoints,
        dashes,
        features,
        finding,
        helping,
        inspecting,
        patches,
        people,
        publishing,
        recipes,
        runs,
        training,
        transferring,
        words,
    )
    from keras_vit.commands.quiet import quiet

COMMANDS = {
    "list": recipes.print_recipes,
    "show": recipes.print_recipe,
    "copy": recipes.copy_recipe,
    "fit": training.train,
    "sweep": training.sweep,
    "evaluate": runs.measure,
    "predict": runs.apply,
    "calibrate": runs.write_calibrated,
    "export": runs.write_exports,
    "explain": runs.draw,
    "report": runs.write_report,
    "demo": runs.open_demo,
    "embed": features.write_vectors,
    "nearest": features.print_nearest,
    "knn": features.print_votes,
    "probe": features.write_probe,
    "inspect": inspecting.print_findings,
    "transfer": transferring.print_transfer,
    "pca": patches.draw_components,
    "anomaly": patches.find_anomalies,
    "zero-shot": words.print_zero_shot,
    "find": finding.print_found,
    "caption": words.print_captions,
    "poses": people.print_poses,
    "checkpoints": checkpoints.print_checkpoints,
    "convert": checkpoints.convert_checkpoint,
    "push": publishing.push,
    "tour": training.tour,
}

# TensorFlow's own pool of memory on a CPU, of up to a terabyte: else each step asks the kernel for its pages again.
MEMORY = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(2**20)}


def main(words=None):
    """Runs one command. An error that the user can correct is one sentence, or tyro's box, with exit status 2."""
    for name, value in MEMORY.items():
        os.environ.setdefault(name, value)
    warnings.formatwarning = lambda message, *where, **more: f"warning: {message}\n"
    prepare_streams()
    try:
        try:
            with interruptible():
                run(sys.argv[1:] if words is None else words, quietly=words is None)
        finally:
            sys.stdout.flush()  # here, where a reader that is gone is no error
    except BrokenPipeError:  # the reader, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except correctable() as error:
        print(f"error: {sentence(error)}".replace("overwrite=True", "--overwrite"), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stopped:
        with contextlib.suppress(OSError):  # the terminal may be gone
            print(f"\n{stopped}" if str(stopped) else "\nInterrupted.", file=sys.stderr)
        sys.exit(128 + int(getattr(stopped, "signal", 2)))


def run(words, quietly=False):
    """Runs the command that the words name; `quietly` without TensorFlow's notes."""
    words = [*map(at_home, words)]
    if words == ["--version"]:
        print(f"keras_vit {__version__}")
        return
    if words and words[0] in COMMANDS and (given := dashes.unknown(COMMANDS[words[0]], words[1:])):
        if quietly:
            quiet()
        dashes.check(COMMANDS[words[0]], words[1:], given)
    with helping.wrapped(words):
        tyro.extras.subcommand_cli_from_dict(
            {name: _quiet(command) if quietly else command for name, command in COMMANDS.items()},
            prog="python -m keras_vit",
            description="Vision Transformers for Keras 3.",
            args=words,
            config=(tyro.conf.FlagCreatePairsOff,),
        )


def at_home(word):
    """Returns a word with the home directory in place of `~`, which a shell leaves as it is in `--to=~/file`."""
    option, path = re.fullmatch(r"(--[\w-]+=)?(.*)", word, re.DOTALL).groups()
    return (option or "") + (os.path.expanduser(path) if path == "~" or path.startswith(("~/", "~" + os.sep)) else path)


def _quiet(command):
    @functools.wraps(command)
    def run(*args, **options):
        quiet()
        return command(*args, **options)

    return run


def prepare_streams():
    """Makes both output streams print any text, and opens those that the caller closed.

    A stream in another encoding than UTF-8, as in the locale C, writes `\\xe9` for what it does not have. A closed one
    gives its number to the next file that is opened, into which a library may then write its notes.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(getattr(sys, name), io.TextIOWrapper):
            getattr(sys, name).reconfigure(errors="backslashreplace")


def correctable():
    """Returns the errors that a user can correct; others are bugs, and show their traceback."""
    tensorflow = sys.modules.get("tensorflow")  # if it was imported; for memory, disks and files
    kinds = (ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError)
    return (*kinds, tensorflow.errors.OpError) if tensorflow else kinds


def sentence(error):
    """Returns the message of an error; of the system's and TensorFlow's errors the part for users."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{str(error.filename)!r}: {error.strerror}."
    text = getattr(error, "message", str(error))
    return text.splitlines()[0] if hasattr(error, "op") and text else text or type(error).__name__


if __name__ == "__main__":
    main()

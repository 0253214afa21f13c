"""Parses the words of a command line into a call. Wrong words are a ValueError with one sentence."""

import collections
import contextlib
import functools
import inspect
import io
import re
import typing

import tyro

from keras_vit import __version__
from keras_vit.commands.types import Changes

PROG = "python -m keras_vit"
FLAGS = (tyro.conf.FlagCreatePairsOff,)


def call(commands, words, description):
    """Returns the call of a command line, as a function without arguments.

    Args:
        commands: Dictionary from names to functions, whose keyword-only arguments are options.
        words: The words after `python -m keras_vit`.
        description: Text of the help, above the commands.

    Raises:
        ValueError: For unknown words, with the names spelled like them.
        SystemExit: After help or the version is printed.
    """
    if not words:
        raise ValueError(f"A command is missing. {_near('', commands)} For help: {PROG} --help")
    name, *rest = words
    if name == "--version":
        print(f"keras_vit {__version__}")
        raise SystemExit
    if name in ("-h", "--help") or name.startswith("--tyro-"):
        tyro.extras.subcommand_cli_from_dict(commands, prog=PROG, description=description, args=words, config=FLAGS)
    if name not in commands:
        raise ValueError(f"There is no command {name!r}. {_near(name, [*commands, '--help', '--version'])}")
    prog = f"{PROG} {name}"

    @functools.wraps(commands[name])
    def bound(*args, **kwargs):
        return functools.partial(commands[name], *args, **kwargs)

    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(bound, prog=prog, args=arranged(commands[name], rest, prog), config=FLAGS)
    except SystemExit as stop:
        if stop.code:
            raise ValueError(f"{sentence(message.getvalue())} For help: {prog} --help") from None
        raise


def arranged(command, words, prog):
    """Returns a command's words with the options first: tyro needs the other words together.

    Raises:
        ValueError: For an unknown option, or for fewer or more words than the command takes.
    """
    parameters = inspect.signature(command).parameters.values()
    known = {f"--{p.name.replace('_', '-')}": _type(p.annotation) for p in parameters if p.kind is p.KEYWORD_ONLY}
    places = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    options, others, rest = [], [], collections.deque(words)
    while rest:
        word = rest.popleft()
        if word == "--":
            others += rest
            break
        if not word.startswith("-"):
            others.append(word)
            continue
        name, equals, _ = word.partition("=")
        name = name.replace("_", "-")
        if name not in (*known, "-h", "--help"):
            hint = _near(name, [*known, "--help"])
            if not hint.startswith("Did") and Changes in [p.annotation for p in places]:
                hint = _as_change(name, word[len(name) + 1 :] or next(iter(rest), "")) or hint
            raise ValueError(f"There is no option {name!r}. {hint}")
        if equals and known.get(name, bool) is bool:
            raise ValueError(f"{name} takes no value. Received: {word!r}")
        options.append(word)
        if known.get(name, bool) is not bool and not equals and rest:
            options.append(rest.popleft())
        while rest and rest[0] in _choices(known.get(name)):
            options.append(rest.popleft())
    if {"-h", "--help"} & {*options}:
        return ["--help"]
    missing = [p.name.upper() for p in places if p.default is p.empty][len(others) :]
    if missing:
        raise ValueError(f"{missing[0]} is missing. For help: {prog} --help")
    many = bool(places) and isinstance(places[-1].default, tuple)
    if len(others) > len(places) and not many:
        first, *_ = more = others[len(places) :]
        choices = [choice for kind in known.values() for choice in _choices(kind)]
        hint = f" {_near(first, choices)}" if choices else ""
        raise ValueError(f"Too many words: {' '.join(more)}.{hint} For help: {prog} --help")
    return [*options, "--", *others]


def sentence(box):
    """Returns the message in tyro's box, up to the first line across it, as one sentence."""
    rows = [row.strip() for row in re.findall(r"^│(.*)│$", box, re.MULTILINE)]
    rows = rows[: next((i for i, row in enumerate(rows) if set(row) == {"─"}), None)]
    text = " ".join(rows or box.split()).removeprefix("Error parsing ")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _near(word, words):
    from keras_vit.utils.checks import near  # imports NumPy, which help does not wait for

    return near(word, words)


def _as_change(option, value):
    """Returns a hint such as "Write optim.epochs=3." for an option named like a recipe's setting, else `None`."""
    from keras_vit.commands.quiet import quiet

    with quiet():  # imports Keras
        from keras_vit import config
        from keras_vit.checkpoints.pretrained import DEFAULTS

    recipe = config.Recipe(name="any", model=dict.fromkeys(DEFAULTS))
    last = option.lstrip("-").replace("-", "_")
    changes = [f"{name}={value or 'VALUE'}" for name in config.names(recipe) if name.rpartition(".")[2] == last]
    return f"Write {' or '.join(changes)}." if changes else None


def _type(annotation):
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is typing.Annotated else annotation


def _choices(kind):
    """Returns the words that an option takes, if it takes several."""
    return typing.get_args(typing.get_args(kind)[0]) if typing.get_origin(kind) is tuple else ()

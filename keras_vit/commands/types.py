"""Types of arguments that several commands take, with their help."""

import pathlib
from typing import Annotated

from tyro.conf import Positional, arg
from tyro.constructors import PrimitiveConstructorSpec


def whole(text):
    """Returns a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"must be a whole number. Received: {text!r}") from None


def word(metavar, make):
    """Returns the markers of an option with one value; help says its default, if it has one."""
    made = PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: make(words[0]),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)],
    )
    return made, arg(help_behavior_hint=lambda default: "" if default == "None" else f"(default: {default})")


def about(text, metavar=None):
    """Returns the help of an argument; the text must say the default, if there is one."""
    return arg(help=text, metavar=metavar, help_behavior_hint="")


RECIPE = "Name of a recipe, or path of your own. It is a program: run only those that you trust."
Name = Annotated[Positional[str], about(RECIPE, "RECIPE")]
Run = Annotated[
    Positional[str], about("Directory of a run, a .keras file, or name of a recipe with trained weights.", "RUN")
]
Changes = Annotated[
    Positional[tuple[str, ...]], about("Changes, such as optim.epochs=3 model.depth=6.", "[NAME=VALUE ...]")
]
Images = Annotated[Positional[tuple[str, ...]], arg(metavar="[IMAGE ...]", help_behavior_hint="")]
Flag = Annotated[bool, arg(help_behavior_hint="")]
Folder = Annotated[pathlib.Path | None, *word("DIR", pathlib.Path)]
File = Annotated[pathlib.Path | None, *word("FILE", pathlib.Path)]
Text = Annotated[str | None, *word("TEXT", str)]
Count = Annotated[int | None, *word("N", whole)]

"""Types of arguments that several commands take, with their help."""

import pathlib
from typing import Annotated

from tyro.conf import Positional, arg


def about(text=None, metavar=None, default=""):
    """Returns the help of an argument, without tyro's note of the default: the text says it."""
    return arg(help=text, metavar=metavar, help_behavior_hint=default)


def named(name, text):
    """Returns the help of an argument of several values, whose name on the command line is another."""
    return arg(name=name, help=text, metavar="NAME ...", help_behavior_hint="")


def stated(default):
    """Returns the note of a default, if there is one."""
    return "" if default == "None" else f"(default: {default})"


RECIPE = "Name of a recipe, or path of your own. It is a program: run only those that you trust."
RUN = "Directory of a run, a .keras file, name of a recipe with trained weights, or hf://owner/name."
CHANGES = "Changes, such as optim.epochs=3 model.depth=6."
MODEL = "Published or shipped weights, a run directory, or a file"
FRAMES = "Of clips, with a model of images: frames of each whose vectors are averaged."
TOKENS = "Folder or repository of the tokenizer; that of the model by default."
Name = Annotated[Positional[str], about(RECIPE, "RECIPE")]
Run = Annotated[Positional[str], about(RUN, "RUN")]
Changes = Annotated[Positional[tuple[str, ...]], about(CHANGES, "[NAME=VALUE ...]")]
Images = Annotated[Positional[tuple[str, ...]], about(metavar="[IMAGE ...]")]
Texts = Annotated[tuple[str, ...], about(metavar="TEXT ...")]
Flag = Annotated[bool, about()]
Folder = Annotated[pathlib.Path | None, about(metavar="DIR", default=stated)]
File = Annotated[pathlib.Path | None, about(metavar="FILE", default=stated)]
Text = Annotated[str | None, about(metavar="TEXT", default=stated)]
Number = Annotated[float | None, about(metavar="X", default=stated)]
Count = Annotated[int | None, about(metavar="N", default=stated)]

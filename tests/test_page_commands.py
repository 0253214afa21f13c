"""The commands on the pages: each exists, with its options, and what is changed of a recipe can be."""

import contextlib
import functools
import io
import pathlib
import re
import shlex

import pytest

import keras_vit
from keras_vit import config
from keras_vit.__main__ import COMMANDS, main

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "saved_models/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECIPES = {path.stem for path in (ROOT / "recipes").glob("*.py")}


def commands(page):
    """Returns the commands of a page, a list of words each: lines of blocks, and code within lines."""
    blocks = re.findall(r"^ *```bash\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in re.sub(r"\\\n", " ", block).splitlines()]
    found = []
    for line in [*lines, *re.findall(r"`([^`\n]+)`", text)]:
        line = line.split("&&")[-1].split("  #")[0].split(" > ")[0].strip()
        spelled = re.match(r"(?:[A-Z_]+=\S+ )*\S*python3? -m keras_vit (.*)", line)
        bare = re.match(r"fit [a-z_0-9]+( |$)", line)
        if spelled or bare:
            found.append(shlex.split(spelled[1] if spelled else line))
    return found


@functools.cache
def options(command):
    """Returns the names of a command's options, as its help lists them."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main([command, "--help"])
    return set(re.findall(r"--[a-z-]+", said.getvalue()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page):
    for words in commands(page):
        if words[0] in ("COMMAND", "--help", "--version", "..."):
            continue
        assert words[0] in COMMANDS, words
        written = {word.split("=")[0] for word in words[1:] if word.startswith("--")}
        assert written <= options(words[0]), words
        if words[0] in ("fit", "show", "sweep", "tour") and words[1] in RECIPES:
            changes = [word for word in words[2:] if re.match(r"[a-z_.]+=", word) and not word.startswith("--")]
            changes = [re.split(",|\\.\\.", word)[0] for word in changes] if words[0] == "sweep" else changes
            keras_vit.load_recipe(words[1], config.parse(changes))


def test_commands_are_found():
    assert sum(len(commands(page)) for page in PAGES) > 100

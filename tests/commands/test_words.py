"""From words to a call: order, help, and one sentence for what is wrong."""

import pathlib
import subprocess
import sys
from typing import Annotated, Literal

import pytest

from keras_vit.commands.types import Changes, Count, Flag, Folder, Name, Run, about
from keras_vit.commands.words import arranged, call, sentence


def fit(
    recipe: Name, changes: Changes = (), *, workdir: Folder = None, tensorboard: Flag = False, save_steps: Count = 5
):
    """Train."""
    return recipe, changes, workdir, tensorboard, save_steps


def export(run: Run, *, quantize: Annotated[tuple[Literal["int8", "dynamic"], ...], about("Formats.")] = ()):
    """Export."""
    return run, quantize


def stop():
    """Stop."""


COMMANDS = {"fit": fit, "export": export, "stop": stop}


def said(*words):
    with pytest.raises(ValueError) as error:
        call(COMMANDS, words, "About.")
    return str(error.value)


@pytest.mark.parametrize(
    "words",
    [
        "fit --workdir runs/a --tensorboard digits a=1 b=2",
        "fit digits --workdir runs/a a=1 --tensorboard b=2",
        "fit digits a=1 b=2 --workdir=runs/a --tensorboard",
        "fit --tensorboard digits a=1 --workdir runs/a -- b=2",
    ],
)
def test_options_stand_anywhere(words):
    assert call(COMMANDS, words.split(), "")() == ("digits", ("a=1", "b=2"), pathlib.Path("runs/a"), True, 5)


@pytest.mark.parametrize("words", ["export runs/a --quantize int8 dynamic", "export --quantize int8 dynamic runs/a"])
def test_an_option_of_several_words_ends_with_them(words):
    assert call(COMMANDS, words.split(), "")() == ("runs/a", ("int8", "dynamic"))


def test_a_word_after_two_dashes_is_no_option():
    assert call(COMMANDS, ["fit", "--save_steps", "7", "--", "--x", "-y"], "")() == ("--x", ("-y",), None, False, 7)


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("", "A command is missing. Known: fit, export, stop. For help: python -m keras_vit --help"),
        ("fitt digits", "There is no command 'fitt'. Did you mean 'fit'?"),
        ("--hlp", "There is no command '--hlp'. Did you mean '--help'?"),
        ("fit digits --workdirr x", "There is no option '--workdirr'. Did you mean '--workdir'?"),
        ("fit --wrkdir", "There is no option '--wrkdir'. Did you mean '--workdir'?"),
        ("fit digits -w", "There is no option '-w'. Known: --workdir, --tensorboard, --save-steps, --help."),
        ("fit", "RECIPE is missing. For help: python -m keras_vit fit --help"),
        ("fit digits --workdir", "Missing value for argument '--workdir'."),
        ("fit digits --tensorboard=yes", "--tensorboard takes no value. Received: '--tensorboard=yes'"),
        ("fit digits --save-steps x", "--save-steps: must be a whole number. Received: 'x'"),
        ("export a --quantize int9", "Invalid choice 'int9' for argument '--quantize'. Expected one of ('int8', 'dyn"),
        ("export a --quantize int8 int9", "Too many words: int9. Did you mean 'int8'?"),
        ("stop now", "Too many words: now. For help: python -m keras_vit stop --help"),
    ],
)
def test_wrong_words_are_one_sentence(words, sentence):
    text = said(*words.split())
    assert text.startswith(sentence) and "\n" not in text and "│" not in text


def test_other_messages_of_tyro_are_one_sentence_too():
    assert sentence("something else\nwent wrong") == "Something else went wrong."


@pytest.mark.parametrize(
    "words, lines", [(["--help"], ("About.", "Train.", "Stop.")), (["fit", "x", "-h"], ("DIR", "N"))]
)
def test_help(words, lines, capsys):
    with pytest.raises(SystemExit) as left:
        call(COMMANDS, words, "About.")
    text = capsys.readouterr().out
    assert not left.value.code and all(line in text for line in lines)


def test_help_and_mistyped_words_wait_for_no_keras():
    script = (
        "import runpy, sys\n"
        "for words in ('--help', 'fit --help', 'fitt', 'fit digits --workdirr x', 'fit', ''):\n"
        "    sys.argv = ['-m', *words.split()]; sys.orig_argv = ['python', '-m', 'keras_vit', *sys.argv[1:]]\n"
        "    try:\n"
        "        runpy.run_module('keras_vit', run_name='__main__', alter_sys=True)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "    assert 'keras_vit' in sys.modules and 'tyro' in sys.modules\n"
        "    heavy = {'keras', 'tensorflow', 'jax', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
        "    assert not heavy, f'{words!r} imports {heavy}'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == 2 and done.stderr.count("error: ") == 4


@pytest.mark.parametrize(
    "words, hint",
    [
        ("fit digits --epochs 3", "Write optim.epochs=3."),
        ("fit digits --batch-size=8", "Write data.batch_size=8."),
        ("fit digits --depth", "Write model.depth=VALUE."),
        ("export runs/a --epochs 3", "Known: --quantize, --help."),
    ],
)
def test_an_option_named_like_a_setting_of_a_recipe_is_shown_as_a_change(words, hint):
    assert said(*words.split()).endswith(f". {hint}")


def test_words_are_arranged_for_tyro():
    assert arranged(fit, ["a", "--workdir", "w", "b=1"], "") == ["--workdir", "w", "--", "a", "b=1"]
    assert arranged(fit, ["--nothing-after", "--help"][1:], "") == ["--help"]

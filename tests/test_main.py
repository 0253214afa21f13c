import functools
import io
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit import __main__
from keras_vit.__main__ import COMMANDS, at_home, main
from keras_vit.commands.quiet import LEVEL
from tests.commands.helpers import run
from tests.marks import slow


def test_every_command_has_help(capsys):
    for command in COMMANDS:
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0 and len(capsys.readouterr().out) > 150, command


@pytest.mark.parametrize(
    "words, message",
    [
        (["fit", "digitz"], "There is no recipe 'digitz'. Did you mean 'digits'"),
        (["fit", "digits", "optim.epoch=3"], "Did you mean 'optim.epochs'"),
        (["fit", "digits", "optim.epochs=three"], "Received: 'three'"),
        (["show", "digits", "epochs"], "Received: 'epochs'"),
        (["report", "mnist", "--to", "report.pdf"], "`to` must end in .html. Received: to='report.pdf'"),
        (["demo", "digits"], "'digits' has no trained weights"),
        (["demo", "mnist", "--port", "70000"], "Received: port=70000"),
        (["evaluate", "nowhere"], "There is no recipe 'nowhere'"),
        (["evaluate", "digits"], "'digits' has no trained weights"),
        (["predict", "mnist"], "At least one image file"),
        (["predict", "mnist", "nothing.png"], "nothing.png"),
    ],
)
def test_what_the_package_refuses_is_one_sentence(words, message, capsys):
    run(*words, status=2)
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "Expected one of {list, show, copy, fit,"),
        (["fitt"], "Unrecognized options: fitt"),
        (["fit"], "Name of a recipe, or path of your own."),
        (["fit", "digits", "--workdirr", "x"], "Perhaps you meant:"),
        (["fit", "digits", "--save-steps", "x"], "invalid literal for int() with base 10: 'x'"),
        (["export", "mnist", "--quantize", "int9"], "invalid choice 'int9' for argument '--quantize'."),
        (["list", "now"], "Unrecognized options: now"),
    ],
)
def test_wrong_words_are_one_box(words, message, capsys):
    run(*words, status=2)
    error = capsys.readouterr().err
    assert message in " ".join(error.replace("│", " ").split()) and len(error.splitlines()) < 24


@pytest.mark.parametrize(
    "words",
    [
        "fit --workdir runs/a --tensorboard digits a=1 b=2",
        "fit digits a=1 b=2 --workdir runs/a --tensorboard",
        "fit digits --tensorboard a=1 b=2 --workdir=runs/a",
        "fit --tensorboard --workdir runs/a -- digits a=1 b=2",
    ],
)
def test_options_stand_before_or_behind_the_other_words(words, monkeypatch):
    called = []
    train = functools.wraps(COMMANDS["fit"])(lambda **options: called.append(options))
    monkeypatch.setitem(__main__.COMMANDS, "fit", train)
    main(words.split())
    options = {"workdir": pathlib.Path("runs/a"), "tensorboard": True, "save_steps": None, "folds": None}
    assert called == [{"recipe": "digits", "changes": ("a=1", "b=2"), **options}]


@pytest.mark.parametrize(
    "error, message",
    [
        (FileNotFoundError(2, "No such file or directory", "x/y"), "'x/y': No such file or directory."),
        (OSError("The disk is full."), "The disk is full."),
        (tf.errors.ResourceExhaustedError(None, None, "OOM when allocating\nmore of it"), "OOM when allocating"),
        (MemoryError("Unable to allocate 3 TiB"), "Unable to allocate 3 TiB"),
        (MemoryError(), "MemoryError"),
        (FileExistsError("It exists: pass overwrite=True."), "It exists: pass --overwrite."),
    ],
)
def test_what_a_user_can_correct_is_a_sentence(error, message, capsys, monkeypatch):
    def fails():
        raise error

    monkeypatch.setitem(__main__.COMMANDS, "list", fails)
    run("list", status=2)
    assert capsys.readouterr().err == f"error: {message}\n"


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setitem(__main__.COMMANDS, "list", lambda: {}["a bug"])
    with pytest.raises(KeyError, match="a bug"):
        main(["list"])


@pytest.mark.parametrize("encoding, wanted", [("ascii", rb"\xe9 \u65e5 \udcff"), ("latin-1", b"\xe9 \\u65e5 \\udcff")])
def test_what_a_terminal_cannot_show_is_escaped(encoding, wanted, monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setitem(__main__.COMMANDS, "list", lambda: print("é 日 \udcff"))
    main(["list"])
    assert screen.buffer.getvalue() == wanted + b"\n"


def test_closed_streams_are_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    main(["list"])
    assert sys.stdout.name == os.devnull


@pytest.mark.skipif(os.name != "posix", reason="pipes of another system")
@pytest.mark.parametrize("words", [["--help"], pytest.param(["checkpoints"], marks=slow)])
def test_a_reader_that_has_enough_is_no_error(words):
    environment = {name: value for name, value in os.environ.items() if name != LEVEL}
    command = [sys.executable, "-m", "keras_vit", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdout.close()
        assert process.wait() == 1 and not process.stderr.read()


STARTS = """
import sys
import threading
sys.argv = ["/somewhere/bin/keras_vit", *sys.argv[1:]]
from keras_vit.__main__ import main
try:
    main()
finally:
    assert not {"keras", "tensorflow"} & set(sys.modules)
"""


@pytest.mark.parametrize(
    "word, line", [("--version", f"keras_vit {keras_vit.__version__}"), ("list", "R50+L/32 "), ("--help", "usage: ")]
)
def test_the_installed_command_waits_for_keras_only_where_it_needs_it(word, line):
    done = subprocess.run([sys.executable, "-c", STARTS, word], capture_output=True, text=True)
    assert not done.returncode and line in done.stdout, done.stderr


@slow
def test_commands_use_tensorflows_memory_pool_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("TF_CPU_ALLOCATOR_USE_BFC", raising=False)
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "8000")
    main(["list"])
    assert os.environ["TF_CPU_ALLOCATOR_USE_BFC"] == "true" and os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "8000"


FAULTS = """
import resource, sys
from keras_vit.__main__ import main
main(["list"])
import tensorflow as tf
x = tf.zeros((4096, 1024))
double = tf.function(lambda x: 2 * x, jit_compile=True)
double(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    double(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults of another system")
def test_the_pool_takes_no_new_pages():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_CPU")}
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout.split()[-1]) < 2000  # 40,000 without: ten times 16 MB in pages of 4 kB


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_a_signal_ends_the_reading_of_words_too(capsys, monkeypatch):
    monkeypatch.setattr(__main__, "run", lambda *given, **more: signal.raise_signal(signal.SIGTERM))
    run("list", status=128 + signal.SIGTERM)
    assert capsys.readouterr().err == "\nInterrupted.\n"


@slow
def test_a_command_is_quiet_and_a_recipe_of_your_own_finds_every_name(tmp_path):
    recipe = tmp_path / "mine.py"
    recipe.write_text(
        "import keras_vit\nfrom keras_vit import Recipe, Optim\nfrom keras_vit.config import Data\n"
        "assert keras_vit.plots\nrecipe = Recipe(name='mine', model={'depth': 1}, data=Data(), optim=Optim(epochs=7))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != LEVEL}
    command = [sys.executable, "-m", "keras_vit", "show", str(recipe)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "name = 'mine'" in done.stdout and "optim.epochs = 7" in done.stdout and not done.stderr


def test_the_home_directory_in_an_option_is_meant(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    words = {"--to=~/a.npz": "--to=/home/me/a.npz", "~/b.png": "/home/me/b.png", "--to=a~b": "--to=a~b", "~b": "~b"}
    words |= {"name=~": "name=~", "--": "--", "data.source=folder:~/pics": "data.source=folder:~/pics", "~": "/home/me"}
    assert {word: at_home(word) for word in words} == words

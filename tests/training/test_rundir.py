import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

from keras_vit import config, vit
from keras_vit.training import locks, rundir, state
from tests.marks import slow

RECIPE = config.Recipe(name="x", model={"width": 8, "image_size": (4, 4)})
DATA = {"arrays": False, "train": "1", "validation": "2"}


@pytest.fixture
def run(tmp_path):
    """A run that has begun: it has a state and a best epoch."""
    rundir.claim(tmp_path / "run", RECIPE, DATA, ("a", "b"))
    vit("mu/4", image_size=8, num_classes=2).save(tmp_path / "run" / rundir.BEST)
    state.save(tmp_path / "run", 1, {}, {})
    return tmp_path / "run"


def test_the_same_run_is_claimed_again_and_read_back(run):
    rundir.claim(run, RECIPE, DATA, ("a", "b"))
    model, recipe, names, data = rundir.load(run, rundir.BEST)
    assert names == ("a", "b") and data == DATA and model.output_shape == (None, 2)
    assert config.to_dict(recipe)["optim"] == config.to_dict(RECIPE)["optim"]


def test_a_run_of_an_earlier_version_is_the_same_run(run):
    """It named options that were removed since, unset: the hash that its models carry is of them too."""
    values = json.loads((run / "recipe.json").read_text())
    values["optim"]["image_sizes"] = []
    (run / "recipe.json").write_text(json.dumps(values))
    rundir.claim(run, RECIPE, DATA, ("a", "b"))
    assert rundir.mark(RECIPE, DATA) == "81e32695a4c51be059877d38ca6eb317"


def test_what_it_reached_is_no_part_of_what_it_is(run):
    reached = config.Recipe(**{**vars(RECIPE), "reached": config.Reached(test_accuracy=0.5)})
    rundir.claim(run, reached, DATA, ("a", "b"))


@pytest.mark.parametrize(
    "recipe, data, said",
    [
        (config.override(RECIPE, {"seed": 3}), DATA, "another recipe.*seed: 0 there, 3 here"),
        (config.override(RECIPE, {"model.width": 9}), DATA, r"Different: model.width: 8 there, 9 here$"),
        (
            config.override(RECIPE, {"optim.epochs": 3, "model.depth": 2}),
            DATA,
            "Different: optim.epochs: 50 there, 3 here; model.depth: nothing there, 2 here$",
        ),
        (RECIPE, {**DATA, "train": "3"}, "other data.*train: '1' there, '3' here"),
    ],
)
def test_another_run_is_refused(run, recipe, data, said):
    with pytest.raises(ValueError, match=said):
        rundir.claim(run, recipe, data, ("a", "b"))


def test_a_finished_run_that_is_to_be_longer_is_a_source_of_weights(run):
    longer = config.override(RECIPE, {"optim.epochs": 60})
    with pytest.raises(ValueError, match=r"optim.epochs: 50 there, 60 here$"):
        rundir.claim(run, longer, DATA, ("a", "b"))
    (run / rundir.BEST).rename(run / rundir.MODEL)
    command = f"python -m keras_vit fit RECIPE.py optim.epochs=60 model.weights={run} --workdir {run}-longer"
    with pytest.raises(ValueError, match=f"60 here. To train longer, .*: {command}, where RECIPE"):
        rundir.claim(run, longer, DATA, ("a", "b"))
    for changes in ({"optim.epochs": 40}, {"optim.epochs": 60, "seed": 1}):
        with pytest.raises(ValueError, match="here$"):
            rundir.claim(run, config.override(RECIPE, changes), DATA, ("a", "b"))


def test_a_task_of_your_own_without_defaults_is_the_same_run(tmp_path):
    @dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
    class Angle(config.Classify):
        angle: int

    recipe = dataclasses.replace(RECIPE, task=Angle(angle=3))
    for step in range(2):
        rundir.claim(tmp_path / "run", recipe, DATA, ("a", "b"))
        state.save(tmp_path / "run", step, {}, {})
    with pytest.raises(ValueError, match="Different: task.angle: 3 there, 4 here"):
        rundir.claim(tmp_path / "run", dataclasses.replace(RECIPE, task=Angle(angle=4)), DATA, ("a", "b"))


def in_a_fork(function):
    """Runs a function in a copy of this process; returns whether it came to its end."""
    child = os.fork()
    if not child:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(9)
    return os.waitpid(child, 0)[1] == 0


def dies(monkeypatch, when):
    """Lets this process die at one of the moments around each write: before, in the middle of, after."""
    count = iter(range(1000))
    write, replace = pathlib.Path.write_text, os.replace

    def tick():
        if next(count) == when:
            os._exit(9)

    def write_text(path, text, *settings):
        tick()
        write(path, text[: len(text) // 2], *settings)
        tick()
        write(path, text, *settings)

    def rename(*paths):
        tick()
        replace(*paths)
        tick()

    monkeypatch.setattr(pathlib.Path, "write_text", write_text)
    monkeypatch.setattr(rundir.files.os, "replace", rename)


def claimed(folder, recipe=RECIPE):
    with rundir.claimed(folder, recipe, DATA, ("a", "b")):
        pass


@slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_killed_between_any_two_writes_the_directory_is_claimed_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(rundir.machine, "describe", lambda: {})  # asks the devices, which a fork cannot
    for when in range(100):
        folder = tmp_path / str(when)
        with monkeypatch.context() as patch:

            def killed(folder=folder, patch=patch, when=when):
                dies(patch, when)
                claimed(folder)

            ended = in_a_fork(killed)
        for recipe in (RECIPE, config.override(RECIPE, {"seed": 3})):
            claimed(folder, recipe)
        assert json.loads((folder / rundir.RECIPE).read_text())["seed"] == 3
        assert rundir.read_labels(folder / rundir.LABELS) == ("a", "b")
        left = {path.name for path in folder.iterdir()} - {locks.LOCK}
        assert left == {rundir.RECIPE, rundir.DATA, rundir.LABELS, rundir.MACHINE}
        if ended:
            break
    assert when == 16  # four files, four moments each


@pytest.mark.parametrize("name", ["a\nb", "a\r", "\n"])
def test_a_name_of_two_lines_is_refused_before_anything_is_written(tmp_path, name):
    for start in (rundir.claim, lambda *inputs: rundir.claimed(*inputs).__enter__()):
        with pytest.raises(ValueError, match="A class name must be one line.* Received: "):
            start(tmp_path / "run", RECIPE, DATA, ("a", name))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "file, text, said",
    [
        (rundir.RECIPE, "[]", "must contain a dictionary. Received: list"),
        (rundir.RECIPE, '{"name": "x"}', "or of another version: .*'model'"),
        (rundir.RECIPE, '{"name": "x", "model": {}, "color": 3}', "or of another version: .*'color'"),
        (rundir.RECIPE, '{"name": "x", "model": {}, "optim": {"speed": 3}}', "or of another version: .*'speed'"),
        (rundir.RECIPE, '{"name": "x", "model": {}, "optim": 3}', "or of another version"),
        (rundir.RECIPE, '{"name": 3, "model": {}}', "or of another version: Recipe.name"),
        (rundir.DATA, "3", "must contain a dictionary. Received: int"),
        (rundir.DATA, "", "Expecting value"),
        (rundir.LABELS, "a\n", "must name the 2 classes of the model. Received: 1"),
        (rundir.LABELS, "a\nb\nc\n", "must name the 2 classes of the model. Received: 3"),
    ],
)
def test_files_of_something_else_are_named(run, file, text, said):
    (run / file).write_text(text)
    with pytest.raises(ValueError, match=f"{file}' is damaged.*{said}"):
        rundir.load(run, rundir.BEST)
    if file == rundir.LABELS:
        rundir.claim(run, RECIPE, DATA, ("a", "b"))
        assert rundir.load(run, rundir.BEST)[2] == ("a", "b")


@pytest.mark.parametrize("file", [rundir.RECIPE, rundir.DATA])
def test_a_run_with_a_file_of_something_else_is_not_resumed(run, file):
    (run / file).write_text("[]")
    with pytest.raises(ValueError, match=f"{file}' is damaged: it must contain a dictionary. Received: list"):
        rundir.claim(run, RECIPE, DATA, ("a", "b"))


def test_contents_are_compared(run):
    (run / rundir.DATA).write_text(json.dumps({**DATA, "train_contents": "2"}))
    with pytest.raises(ValueError, match="other data. .*train_contents: '2' there, '1' here"):
        rundir.claim(run, RECIPE, {**DATA, "train_contents": "1"}, ("a", "b"))
    rundir.claim(run, RECIPE, {**DATA, "train_contents": "2"}, ("a", "b"))


def test_a_run_with_another_teacher_is_on_other_data(run):
    first, second = (vit("mu/4", image_size=8, num_classes=2) for _ in range(2))
    assert rundir.contents_of(None) == {} and rundir.contents_of(first) == rundir.contents_of(first)
    (run / rundir.DATA).write_text(json.dumps(DATA | rundir.contents_of(first)))
    rundir.claim(run, RECIPE, DATA | rundir.contents_of(first), ("a", "b"))
    rundir.claim(run, RECIPE, DATA | rundir.contents_of(first), ("a", "b"))
    with pytest.raises(ValueError, match="other data. .*teacher_contents"):
        rundir.claim(run, RECIPE, DATA | rundir.contents_of(second), ("a", "b"))


def test_a_seed_that_keras_drew_for_a_layer_is_no_part_of_a_run(run):
    """`RandomCrop` has one; its draws are by the recipe's seed."""
    made = [config.override(RECIPE, {"augment.layers": (keras.layers.RandomCrop(n, 4),)}) for n in (4, 4, 5)]
    (run / rundir.RECIPE).write_text(json.dumps(config.to_dict(made[0])))
    rundir.claim(run, made[1], DATA, ("a", "b"))
    with pytest.raises(ValueError, match="another recipe.*augment.layers"):
        rundir.claim(run, made[2], DATA, ("a", "b"))


def test_a_run_without_an_epoch_may_be_claimed_anew(tmp_path):
    rundir.claim(tmp_path, RECIPE, DATA, ("a", "b"))
    rundir.claim(tmp_path, config.override(RECIPE, {"seed": 3}), DATA, ("a", "b"))
    assert '"seed": 3' in (tmp_path / rundir.RECIPE).read_text()


def test_how_it_is_measured_may_change(run):
    rundir.claim(run, config.override(RECIPE, {"task.metrics": ("balanced_accuracy",)}), DATA, ("a", "b"))
    assert rundir.load(run, rundir.BEST)[1].task.metrics == ("balanced_accuracy",)


def test_a_model_whose_states_are_gone_is_not_taken_for_a_new_run_s(run):
    (run / rundir.BEST).rename(run / rundir.MODEL)
    for file in run.glob("state-*"):
        file.unlink()
    with pytest.raises(ValueError, match=r"model\.keras but no training state to resume from"):
        rundir.claim(run, config.override(RECIPE, {"seed": 3}), DATA, ("a", "b"))
    assert (run / rundir.MODEL).exists()


@pytest.mark.parametrize("file", [rundir.RECIPE, rundir.BEST])
def test_damaged_files_are_named(run, file):
    whole = (run / file).read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"x" * 100):
        (run / file).write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{file}' is damaged"):
            rundir.load(run, rundir.BEST)


def test_what_is_no_run_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    assert not rundir.is_run(tmp_path)
    with pytest.raises(ValueError, match="not empty and contains no run"):
        rundir.claim(tmp_path, RECIPE, DATA, ("a", "b"))
    with pytest.raises(FileNotFoundError, match="no model.keras yet"):
        rundir.load(tmp_path, rundir.MODEL)


@slow
def test_a_directory_is_one_process_own(tmp_path):
    with rundir.claimed(tmp_path / "run", RECIPE, DATA, ("a", "b")):
        script = (
            "import sys; from tests.training.test_rundir import *\n"
            "try:\n"
            "    with rundir.claimed(sys.argv[1], RECIPE, DATA, ('a', 'b')): pass\n"
            "except ValueError as error: print(error)\n"
        )
        words, root = [sys.executable, "-c", script, str(tmp_path / "run")], pathlib.Path(__file__).parents[2]
        done = subprocess.run(words, capture_output=True, text=True, cwd=root)
        assert "Another process is training in" in done.stdout, done.stderr[-2000:]
    with rundir.claimed(tmp_path / "run", RECIPE, DATA, ("a", "b")):
        pass


def test_a_process_that_does_not_write_leaves_no_trace(tmp_path):
    with rundir.claimed(tmp_path / "run", RECIPE, DATA, ("a", "b"), writes=False):
        assert not (tmp_path / "run").exists()


def test_what_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    inside = rundir.claimed(tmp_path / "file" / "inside", RECIPE, DATA, ("a", "b"))
    with pytest.raises(OSError, match="inside' must be a writable directory. Received: Not a directory"):
        inside.__enter__()

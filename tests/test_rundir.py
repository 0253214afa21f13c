import pathlib
import subprocess
import sys

import pytest

from keras_vit import config, rundir, snapshots, vit

pytestmark = pytest.mark.backend

RECIPE = config.Recipe(name="x", model={"width": 8, "image_size": (4, 4)})
DATA = {"arrays": False, "train": "1", "validation": "2"}


@pytest.fixture
def run(tmp_path):
    """A run that has begun: it has a state and a best epoch."""
    rundir.claim(tmp_path / "run", RECIPE, DATA, ("a", "b"))
    vit("mu/4", image_size=8, num_classes=2).save(tmp_path / "run" / rundir.BEST)
    snapshots.save(tmp_path / "run", 1, {}, {})
    return tmp_path / "run"


def test_the_same_run_is_claimed_again_and_read_back(run):
    rundir.claim(run, RECIPE, DATA, ("a", "b"))
    model, recipe, names, data = rundir.load(run, rundir.BEST)
    assert names == ("a", "b") and data == DATA and model.output_shape == (None, 2)
    assert config.to_dict(recipe)["optim"] == config.to_dict(RECIPE)["optim"]


def test_what_it_reached_is_no_part_of_what_it_is(run):
    reached = config.Recipe(**{**vars(RECIPE), "reached": config.Reached(test_accuracy=0.5)})
    rundir.claim(run, reached, DATA, ("a", "b"))


@pytest.mark.parametrize(
    "recipe, data, said",
    [
        (config.override(RECIPE, {"seed": 3}), DATA, "another recipe.*seed: 0 there, 3 here"),
        (config.override(RECIPE, {"model.width": 9}), DATA, "another recipe.*'width': 9"),
        (RECIPE, {**DATA, "train": "3"}, "other data.*train: '1' there, '3' here"),
    ],
)
def test_another_run_is_refused(run, recipe, data, said):
    with pytest.raises(ValueError, match=said):
        rundir.claim(run, recipe, data, ("a", "b"))


def test_a_run_without_an_epoch_may_be_claimed_anew(tmp_path):
    rundir.claim(tmp_path, RECIPE, DATA, ("a", "b"))
    rundir.claim(tmp_path, config.override(RECIPE, {"seed": 3}), DATA, ("a", "b"))
    assert '"seed": 3' in (tmp_path / rundir.RECIPE).read_text()


def test_how_it_is_measured_may_change(run):
    rundir.claim(run, config.override(RECIPE, {"metrics": ("balanced_accuracy",)}), DATA, ("a", "b"))
    assert rundir.load(run, rundir.BEST)[1].metrics == ("balanced_accuracy",)


def test_a_model_whose_states_are_gone_is_not_taken_for_a_new_run_s(run):
    (run / rundir.BEST).rename(run / rundir.MODEL)
    for state in run.glob("state-*"):
        state.unlink()
    with pytest.raises(ValueError, match=r"model\.keras of a run whose states are gone"):
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
    with pytest.raises(ValueError, match="not empty and holds no run"):
        rundir.claim(tmp_path, RECIPE, DATA, ("a", "b"))
    with pytest.raises(FileNotFoundError, match="no model.keras yet"):
        rundir.load(tmp_path, rundir.MODEL)


def test_a_directory_is_one_process_own(tmp_path):
    with rundir.claimed(tmp_path / "run", RECIPE, DATA, ("a", "b")):
        script = (
            "import sys; from tests.test_rundir import *\n"
            "try:\n"
            "    with rundir.claimed(sys.argv[1], RECIPE, DATA, ('a', 'b')): pass\n"
            "except ValueError as error: print(error)\n"
        )
        words = [sys.executable, "-c", script, str(tmp_path / "run")]
        root = pathlib.Path(__file__).parents[1]
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
    with pytest.raises(OSError, match="inside' is no directory that can be written to: Not a directory"):
        inside.__enter__()

import csv

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.training import locks, sweeping
from tests.commands.helpers import SMALL, run
from tests.marks import slow
from tests.small import small

RATES = {"optim.learning_rate": [1e30, 1e-3]}


@slow
def test_a_table_the_best_first_and_failures_last(tmp_path, eagerly, capsys):
    """A run with a NaN must not end the sweep (mathysgrapotte/stimulus-py, issue 4)."""
    recipe = config.override(small(), {"data.limit": 48, "data.batch_size": 16})
    rows = keras_vit.sweep(recipe, RATES, workdir=tmp_path, verbose=2)
    good, bad = rows
    assert good["run"] == str(tmp_path / "learning_rate=0.001") and good["optim.learning_rate"] == 1e-3
    assert "loss became nan" in bad["error"] and "val_loss" not in bad
    with open(tmp_path / "sweep.csv", newline="") as file:
        assert [row["run"] for row in csv.DictReader(file)] == [row["run"] for row in rows]
    before = (tmp_path / "learning_rate=0.001" / "model.keras").read_bytes()
    capsys.readouterr()
    assert keras_vit.sweep(recipe, RATES, workdir=tmp_path, verbose=2) == rows  # tried again, the finished one kept
    out = capsys.readouterr().out
    assert "run 1 of 2" in out and "run 2 of 2" not in out
    assert (tmp_path / "learning_rate=0.001" / "model.keras").read_bytes() == before
    with pytest.raises(ValueError, match="No run of the sweep was finished. The first error: "):
        keras_vit.sweep(config.override(recipe, {"seed": 1}), RATES, workdir=tmp_path, verbose=0)


def test_a_wrong_option_is_refused_before_the_first_run(tmp_path):
    for options, draw, message in (
        ({"optim.learning_rte": [1, 2]}, None, "has no option 'optim.learning_rte'. Did you mean"),
        ({"optim.learning_rate": [1e-3, -1]}, None, "must be at least 0. Received: -1"),
        ({"optim.learning_rate": "1e-3..1"}, None, "A range needs a number of draws"),
        (RATES, 0, "draw=0"),
    ):
        with pytest.raises(ValueError, match=message):
            keras_vit.sweep(small(), options, draw, tmp_path / "runs")
    arrays = (np.zeros((4, 8, 8, 1)), np.arange(4) % 2)
    options = {"data.train": ["all", "all[:50%]"], "seed": [0, 1]}
    with pytest.raises(ValueError, match="With `train`, no run reads data.source, .* Received: .* 'data.train'"):
        keras_vit.sweep(small(), options, workdir=tmp_path / "runs", train=arrays, validation=arrays)
    assert not (tmp_path / "runs").exists()


def test_a_missing_file_ends_one_run_only(tmp_path, eagerly):
    good, bad = keras_vit.sweep(small(), {"model.weights": ["/none.npz", None]}, workdir=tmp_path, verbose=0)
    assert bad["error"] == "There is no file or folder '/none.npz'." and "error" not in good


def test_a_run_of_another_process_is_no_failed_one(tmp_path):
    """Without it, the best of the table would be that of some runs."""
    for busy in (tmp_path, tmp_path / "seed=0"):
        with locks.locked(busy), pytest.raises(ValueError, match=f"Another process is training in '{busy}'"):
            keras_vit.sweep(small(), {"seed": [0, 1]}, workdir=tmp_path, verbose=0)
    assert not (tmp_path / "sweep.csv").exists()


def test_rows_are_ranked():
    rows = [{"a": 1.0}, {"error": "x"}, {"a": float("nan")}, {"a": 3.0}, {"a": 2.0}]
    assert [row.get("a") for row in sweeping.ranked(rows, ("a", "max"))][:3] == [3.0, 2.0, 1.0]
    assert [row.get("a") for row in sweeping.ranked(rows, ("a", "min"))][:3] == [1.0, 2.0, 3.0]
    assert sweeping.fails_alone(ValueError()) and not sweeping.fails_alone(OSError())
    assert not sweeping.fails_alone(FileNotFoundError(2, "No such file or directory", "state"))  # of a directory


@slow
def test_the_commands(tmp_path, eagerly, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [*SMALL, "data.batch_size=16"]
    run("sweep", "digits", *options, "model.num_heads=2,3")
    out = capsys.readouterr().out
    table, best = out[out.index("model.num_heads") :].split("best: ")
    assert "model.width" not in table and "cannot be split into 3 heads" in table
    assert best.endswith("model.num_heads=2 --workdir runs/digits-sweep/num_heads=2\n")
    run("fit", "digits", *options, "--folds", "2")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[-5:]] == [
        "fold",
        "1",
        "2",
        "mean",
        "deviation",
    ]
    assert (tmp_path / "runs" / "digits-2-folds" / "fold-2" / "model.keras").exists()
    run("fit", "digits", "--folds", "2", "--tensorboard", status=2)


def test_runs_on_other_data_are_told(tmp_path, monkeypatch):
    data = iter(["a", "a", "b", "c", "c"])

    def fit(one, folder, **more):
        folder.mkdir(parents=True)
        (folder / "data.json").write_text(f'{{"train": "{next(data)}"}}')

    monkeypatch.setattr(sweeping, "fit", fit)
    monkeypatch.setattr(sweeping, "scores", lambda *_: {"val_accuracy": 1.0})
    with pytest.warns(UserWarning, match="'.*seed=2' was trained on other data than '.*seed=0': files changed") as said:
        keras_vit.sweep(small(), {"seed": [0, 1, 2]}, workdir=tmp_path / "seeds", verbose=0)
    assert len([one for one in said if "other data" in str(one.message)]) == 1
    data = iter(["a", "b"])
    keras_vit.sweep(small(), {"data.limit": [40, 48]}, workdir=tmp_path / "limits", verbose=0)  # warnings are errors

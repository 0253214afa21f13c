"""Callbacks in a run: one's own, and TensorBoard's."""

import csv

import keras
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.training.fit import fit
from tests.marks import slow
from tests.small import small
from tests.training.small import Break


@slow
def test_callbacks_of_ones_own_stop_a_run(tmp_path, capsys):
    recipe = config.override(small(), {"optim.epochs": 4})
    seen = []
    logs = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append({**logs}))
    stop = keras.callbacks.EarlyStopping("val_loss", min_delta=100.0)
    for _ in range(2):  # the second call finds it finished
        _, history = fit(recipe, tmp_path / "run", callbacks=[logs, stop])
        assert len(history["loss"]) == len(seen) == 2 and history["val_loss"] == [row["val_loss"] for row in seen]
    assert "already finished, stopped after 2 of 4 epochs" in capsys.readouterr().out


@pytest.mark.parametrize(
    "error, callback, said",
    [
        (TypeError, "early", "Received: 'early'"),
        (TypeError, keras.callbacks.EarlyStopping, "must be a list of keras.callbacks.Callback"),
        (ValueError, keras.callbacks.EarlyStopping("val_loss", restore_best_weights=True), "best.keras"),
        (ValueError, keras.callbacks.BackupAndRestore("backup"), "no BackupAndRestore: the run's own"),
        (ValueError, keras.callbacks.ReduceLROnPlateau(), "optim.schedule"),
    ],
)
def test_callbacks_that_contradict_a_run_are_refused(error, callback, said, tmp_path):
    with pytest.raises(error, match=said):
        fit(small(), tmp_path / "run", callbacks=[callback])
    assert not (tmp_path / "run").exists()


class Logger(keras.callbacks.Callback):
    """Notes what a tracker is called with, adds a number, and changes what is not its own."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.rows = []

    def on_train_begin(self, logs=None):
        self.calls.append("begin")

    def on_train_end(self, logs=None):
        self.calls.append("end")

    def on_epoch_end(self, epoch, logs=None):
        self.rows.append({"epoch": epoch, **logs})
        logs["temperature"] = keras.ops.convert_to_tensor(20 + epoch)
        logs["val_accuracy"] = logs.pop("loss")
        logs["epoch"] = 100


def test_a_tracker_sees_every_column_and_a_run_of_several_fits_begins_and_ends_once(tmp_path):
    """The rest of an interrupted epoch is a `fit` of its own."""
    recipe = config.override(small(), {"optim.epochs": 3, "task.metrics": ("accuracy", "f1")})
    with pytest.raises(SystemError):
        fit(recipe, tmp_path / "run", save_steps=1, callbacks=[Break(2), Logger()])
    logger, late = Logger(), Logger()  # the second sees what the first adds, and not what it changes
    fit(recipe, tmp_path / "run", callbacks=[logger, late])
    assert logger.calls == late.calls == ["begin", "end"]
    with open(tmp_path / "run" / "history.csv", newline="") as file:
        written = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert written == late.rows == [{**row, "temperature": 20 + row["epoch"]} for row in logger.rows]
    assert {"val_accuracy", "val_f1", "learning_rate"} <= set(written[0])
    fit(recipe, tmp_path / "run", callbacks=(idle := Logger()))  # it is finished, and one needs no list
    assert idle.calls == []


@slow
def test_a_callback_that_fails_ends_the_call_and_the_next_call_resumes(tmp_path):
    recipe = config.override(small(), {"optim.epochs": 2})
    _, whole = fit(recipe, tmp_path / "whole")

    def fail(epoch, logs):
        raise ConnectionError("no network")

    for function, error in ((fail, ConnectionError), (lambda epoch, logs: logs.update(note="good"), ValueError)):
        with pytest.raises(error, match="no network|must be numbers, for history.csv. Received: note='good'"):
            fit(recipe, tmp_path / "run", callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=function)])
    _, resumed = fit(recipe, tmp_path / "run")
    assert resumed["loss"] == whole["loss"]


def test_a_run_that_is_stopped_within_an_epoch_is_finished(tmp_path):
    """The epoch counts, with the steps that were done. Scores may still change: they are columns from then on."""
    recipe = config.override(small(), {"optim.epochs": 4})
    batches = []

    def stop(batch, logs):
        batches.append(batch)
        callback.model.stop_training = len(batches) == 3  # of two in an epoch

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=stop)
    with pytest.raises(SystemError):
        fit(recipe, tmp_path / "run", callbacks=[Break(3)], save_steps=1)
    recipe = config.override(recipe, {"task.metrics": ("accuracy", "kappa")})
    for _ in range(2):
        _, history = fit(recipe, tmp_path / "run", callbacks=[callback])
        assert len(history["loss"]) == 3 and len(batches) == 3
    assert str(history["val_kappa"][0]) == "nan" and all(-1 <= value <= 1 for value in history["val_kappa"][1:])


def test_tensorboard_is_missed_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        fit(small(), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()

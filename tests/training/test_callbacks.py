"""Callbacks in a run: one's own, and TensorBoard's."""

import keras
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.training.fit import fit
from tests.small import small


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


def test_tensorboard_is_missed_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        fit(small(), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()

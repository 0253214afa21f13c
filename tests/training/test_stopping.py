import os
import signal

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.training import state, stopping
from keras_vit.training.keep import KeepState
from tests.marks import few, slow
from tests.training.small import RECIPE, fit, what_counts


@few(1)
@pytest.mark.parametrize("where", ["average", "outputs", "loss"])
def test_infinite_numbers_stop_the_run_and_the_good_state_stays(tmp_path, where):
    class Poison(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1 and where == "loss":
                self.model.get_layer("head").bias.assign([np.nan] * 3)

        def on_train_batch_begin(self, batch, logs=None):
            if self.model.optimizer.iterations == 6 and where == "average":
                average = self.model.optimizer._model_variables_moving_average[-1]
                average.assign(np.full(average.shape, np.inf))

        def on_train_batch_end(self, batch, logs=None):
            if self.model.optimizer.iterations == 10 and where == "outputs":  # the last step of the second epoch
                self.model.get_layer("head").bias.assign([np.inf] * 3)

    recipe = config.override(RECIPE, {"task.metrics": ("auc",), "optim.ema": None if where == "outputs" else 0.9})
    with pytest.raises(
        RuntimeError, match=r"epoch 2, step \d, at a learning rate of 0.0.*state-0000000005-\w+.safetensors"
    ):
        fit(tmp_path, recipe, extra=[Poison()], save_steps=3 if where == "average" else None)
    assert all(np.isfinite(array).all() for array in state.newest(tmp_path)[0].values())


@pytest.mark.parametrize("at, step", [(6, "epoch 1, step 2 of 5"), pytest.param(9, "epoch 2, step 0 of 5", marks=slow)])
def test_ctrl_c_saves_and_leaves(tmp_path, whole, at, step):
    class Ask(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if self.model.optimizer.iterations == at:
                os.kill(os.getpid(), signal.SIGTERM)

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(stopping.Stopped, match=f"Stopped after {step}") as stopped:
        fit(tmp_path, extra=[Ask()])
    assert stopped.value.signal == signal.SIGTERM and signal.getsignal(signal.SIGTERM) is handler
    _, history = fit(tmp_path)
    assert what_counts(history) == what_counts(whole[1])


def test_a_second_signal_interrupts_at_once():
    with stopping.signals() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(stopping.Stopped, match=r"^Interrupted\.$") as stopped:
            os.kill(os.getpid(), signal.SIGTERM)
    assert asked == [signal.SIGTERM] and stopped.value.signal == signal.SIGTERM


def test_a_signal_that_a_shell_ignores_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stopping.signals() as asked:
            os.kill(os.getpid(), signal.SIGTERM)
        assert not asked and signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_after_the_last_epoch_is_not_lost(tmp_path, monkeypatch):
    real = KeepState.restore

    def restore(self):
        real(self)
        if self.run.epoch == self.run.recipe.optim.epochs:  # after its last epoch, before the model is written
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(KeepState, "restore", restore)
    with pytest.raises(stopping.Stopped, match="Stopped after epoch 1, step 0"):
        fit(tmp_path, config.override(RECIPE, {"optim.epochs": 1, "optim.warmup_epochs": 0}))


def test_weights_that_diverge_in_the_last_step_of_an_epoch_are_not_the_best(tmp_path):
    class Poison(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if self.model.optimizer.iterations == 5:
                self.model.get_layer("head").bias.assign([np.nan] * 3)

    with pytest.raises(RuntimeError, match="head/bias became NaN or infinite in epoch 1, step 5"):
        fit(tmp_path, config.override(RECIPE, {"optim.ema": None}), extra=[Poison()])
    assert not (tmp_path / "best.keras").exists() and state.newest(tmp_path) is None

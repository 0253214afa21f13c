import dataclasses
import pathlib
from types import SimpleNamespace

import keras
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.tasks import Classify
from keras_vit.training import keep, state
from tests.marks import few, slow
from tests.training.small import RECIPE, Break, fit, what_counts


@few(1)
@pytest.mark.parametrize("seconds, steps", [(0.0, [1, 2, 3, 4, 5]), (1e9, [5])])
def test_a_state_is_saved_after_some_time_and_after_each_epoch(tmp_path, monkeypatch, seconds, steps):
    saved = []
    monkeypatch.setattr(keep, "SAVE_SECONDS", seconds)
    monkeypatch.setattr(keep.state, "save", lambda folder, step, arrays, notes: saved.append(step))
    fit(tmp_path, config.override(RECIPE, {"optim.epochs": 1}))
    assert saved == steps


def test_a_state_says_how_far_the_run_is(tmp_path):
    fit(tmp_path, config.override(RECIPE, {"optim.epochs": 1}))
    _, notes, _ = state.newest(tmp_path)
    assert (notes["epoch"], notes["step"], len(notes["history"])) == (1, 0, 1)
    assert notes["best"] == notes["history"][0]["val_accuracy"]


def test_the_best_value_may_be_negative_but_must_be_a_number(monkeypatch):
    saved, task = [], SimpleNamespace(best=("val_score", "max"))
    run = SimpleNamespace(task=task, best=None, history=[], folder=pathlib.Path(), place=SimpleNamespace(writes=True))
    run.recipe = RECIPE
    run.model = run.learner = None
    monkeypatch.setattr(keep, "save_trained", lambda *_: saved.append(run.best))
    best = keep.KeepBest(run, None)
    for value in (float("nan"), -5.0, -7.0, -3.0):
        best.on_epoch_end(0, {"val_loss": 1.0, "val_score": value})
        run.history.append({})
    assert saved == [-5.0, -3.0]


class Around(keras.Model):
    """A learner that says nothing of its output's shape."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, images, training=None):
        return self.inner(images, training=training)


@dataclasses.dataclass(frozen=True, repr=False)
class ClassifyAround(Classify):
    def learner(self, model, teacher=None):
        return Around(model)


@slow
def test_a_learner_of_any_kind_resumes_within_an_epoch(tmp_path):
    task, optim = ClassifyAround(classes=tuple("abc")), config.Optim(epochs=1, warmup_epochs=0.0)
    recipe = dataclasses.replace(RECIPE, task=task, optim=optim)
    _, history = fit(tmp_path / "one", recipe)
    with pytest.raises(SystemError):
        fit(tmp_path / "two", recipe, save_steps=2, extra=[Break(3)])
    _, found = fit(tmp_path / "two", recipe)
    assert what_counts(found) == what_counts(history)


@dataclasses.dataclass(frozen=True, repr=False)
class ClassifyScored(Classify):
    best = ("val_score", "max")

    def callbacks(self, run):
        scores = (float("nan"), 3.0, 3.0, 9.0)
        note = lambda epoch, logs: logs.update(val_score=scores[epoch])  # noqa: E731
        return [keras.callbacks.LambdaCallback(on_epoch_end=note)]


def test_patience_counts_epochs_that_are_not_better(tmp_path):
    """No count before the first number; a second 3 is not better; a resumed run continues the count."""
    optim = dataclasses.replace(RECIPE.optim, epochs=4, patience=1)
    data = dataclasses.replace(RECIPE.data, batch_size=20)  # two steps an epoch
    recipe = dataclasses.replace(RECIPE, task=ClassifyScored(classes=tuple("abc")), data=data, optim=optim)
    with pytest.raises(SystemError):
        fit(tmp_path / "run", recipe, save_steps=1, extra=[Break(6)])  # in the third epoch
    for _ in range(2):  # the second call does not train
        _, history = fit(tmp_path / "run", recipe)
        assert len(history["loss"]) == 3


class StopEarly(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = epoch == 0


@dataclasses.dataclass(frozen=True, repr=False)
class ClassifyBriefly(Classify):
    def callbacks(self, run):
        return [StopEarly()]


@slow
def test_a_run_that_a_callback_of_its_task_stops_is_at_its_end(tmp_path, capsys):
    recipe = dataclasses.replace(RECIPE, task=ClassifyBriefly(classes=tuple("abc")))
    for _ in range(2):  # the second call resumes, and does not train
        _, history = fit(tmp_path, recipe)
        assert len(history["loss"]) == 1

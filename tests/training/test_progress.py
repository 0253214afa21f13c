import types

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import config
from keras_vit.training.progress import RunProgress
from tests.utils.test_progress import Stream


def run_of(epochs, steps, images, done=0):
    """Returns what is read of a run."""
    data, optim = config.Data(batch_size=images), config.Optim(epochs=epochs, warmup_epochs=0)
    recipe = config.Recipe(name="x", model={}, data=data, optim=optim)
    epoch, step = divmod(done, steps)
    return types.SimpleNamespace(recipe=recipe, task=recipe.task, steps=steps, epoch=epoch, step=step)


@pytest.fixture
def train(clock, monkeypatch):
    """A training of steps that take a second each after the first, which takes nine, and validations that take two.

    The loss is 0.5, but 9 after the first batch of an epoch.
    """

    def run(terminal, epochs, steps=4, done=0, validation=2):
        stream = Stream(terminal)
        monkeypatch.setattr("sys.stdout", stream)
        with RunProgress(run_of(epochs, steps, 50, done)) as told:
            told.on_train_begin()
            clock[0] += 8
            for epoch in range(done // steps, epochs):
                for batch in range(steps - done % steps if epoch == done // steps else steps):
                    clock[0] += 1
                    told.on_train_batch_end(batch, {"loss": 0.5 if batch else 9.0, "accuracy": 0.25})
                told.on_test_begin()
                clock[0] += validation
                told.on_epoch_end(epoch, {"loss": 0.25, "accuracy": 0.5, "val_accuracy": 0.75 + epoch / 100})
        return stream

    return run


def test_one_line_tells_how_far_a_whole_training_is(train):
    stream = train(True, epochs=3)
    assert stream.lines[0] == "epoch 1/3  compiling" and "?" not in stream.getvalue()
    assert "epoch 1/3  loss 0.5000  accuracy 25.00%  validating  " in stream.getvalue()
    # Of 15 seconds after the first step, four were validations.
    last = "epoch 3/3  loss 0.2500  accuracy 50.00%  validation accuracy 77.00%  00:00 left  "
    assert stream.lines[-1].startswith(last) and stream.lines[-1].endswith(" images/s")
    assert stream.getvalue().endswith("\n")


def test_a_terminal_of_80_columns_shows_whole_parts(train, monkeypatch):
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda stream: (80, 24))
    lines = train(True, epochs=120, done=476).lines
    last = "epoch 120/120  loss 0.2500  validation accuracy 194.00%  00:00 left"
    assert lines[-1] == last and max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "task, logs, wanted",
    [
        (
            keras_vit.Regress(names=("age", "size")),
            {"val_mae": 0.5},
            "validation mean error 0.5000 standard deviations",
        ),
        (keras_vit.Regress(names=("age_years",)), {"val_mae": 2.5}, "validation mean error 2.5000 years"),
        (keras_vit.Detect(), {"val_map50": 0.5}, "validation mAP50 0.5000"),
        (keras_vit.Restore(scale=2), {"psnr": 30.0, "val_psnr": 31.0}, "PSNR 30.0000 dB  validation PSNR 31.0000 dB"),
        (keras_vit.Caption(), {"val_exact_match": 0.5}, "validation exact match 50.00%"),
    ],
)
def test_scores_have_words_and_units(task, logs, wanted, monkeypatch):
    stream, run = Stream(True), run_of(1, 3, 4)
    run.task = task
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda stream: (200, 24))
    with RunProgress(run) as told:
        told.on_train_begin()
        told.on_train_batch_end(0, {"loss": 1.0})
        told.on_epoch_end(0, {"loss": 1.0} | logs)
    assert wanted in stream.lines[-1]


def test_a_resumed_training_begins_where_it_stopped(train):
    stream = train(True, epochs=3, done=6)
    assert stream.lines[0].startswith("epoch 2/3  compiling")
    assert not [line for line in stream.lines if line.startswith("epoch 1/3  loss")]
    speeds = [float(line.split()[-2]) for line in stream.lines[1:]]  # steps of 50 images and a second, and validations
    assert max(speeds) <= 50 and abs(speeds[-1] - 5 * 50 / (5 + 2 + 2)) < 0.01


def test_a_finished_training_shows_nothing(monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr("sys.stdout", stream)
    with RunProgress(run_of(2, 3, 4, done=6)):
        pass
    assert not stream.getvalue()


def test_a_log_gets_a_line_in_ten_seconds_and_the_last(train):
    stream = train(False, epochs=10)
    assert 6 <= len(stream.lines) <= 8 and stream.lines[-1].startswith("epoch 10/10  loss 0.2500")


@pytest.mark.parametrize("steps, validation", [(4, 2), (1, 2), (3, 12), (12, 3), (25, 15)])
def test_a_log_has_whole_epochs_or_ten_seconds_of_one(train, steps, validation):
    stream = train(False, epochs=6, steps=steps, validation=validation)
    lines = [line for line in stream.lines if "loss" in line]
    assert lines and not [line for line in lines if "loss 9" in line]
    whole = [line for line in lines if "loss 0.25" in line]
    assert len(whole) == 6 if steps + validation >= 10 else len(whole) == len(lines) >= 2
    assert [line.split("loss")[0] for line in whole] == sorted({line.split("loss")[0] for line in whole})


def test_a_terminal_shows_the_scores_of_each_epoch(train):
    lines = [line for line in train(True, epochs=3).lines if "loss 0.25" in line]
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]


def test_a_stopped_training_leaves_a_fresh_line(monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr("sys.stdout", stream)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise RuntimeError

    with pytest.raises(RuntimeError), RunProgress(run_of(2, 3, 4)) as told:
        model.fit(np.zeros((12, 2)), np.zeros(12), epochs=2, batch_size=4, verbose=0, callbacks=[told, Stop()])
    assert stream.getvalue().endswith("\n") and told.line.n == 4

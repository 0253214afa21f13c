import types

import keras
import numpy as np
import pytest

from keras_vit import config
from keras_vit.training import progress
from keras_vit.utils.progress import Line
from tests.terminal import Stream


def run_of(epochs, steps, images):
    """Returns what is read of a run."""
    recipe = config.Recipe(
        name="x", model={}, data=config.Data(batch_size=images), optim=config.Optim(epochs=epochs, warmup_epochs=0)
    )
    return types.SimpleNamespace(recipe=recipe, task=recipe.task, steps=steps, epoch=0, step=0)


def train(stream, clock, epochs, seconds=1.0, steps=4, done=0):
    """A training of steps that take a second each, and validations that take two."""
    told = progress.RunProgress(run_of(epochs, steps, 50), Line(stream=stream))
    told.run.epoch, told.run.step = divmod(done, steps)
    told.on_train_begin()
    for epoch in range(done // steps, epochs):
        for batch in range(steps - done % steps if epoch == done // steps else steps):
            clock[0] += seconds
            told.on_train_batch_end(batch, {"loss": 0.5, "accuracy": 0.25})
        told.on_test_begin()
        clock[0] += 2 * seconds
        told.on_test_batch_end(0)
        told.on_test_end()
        told.on_epoch_end(epoch, {"loss": 0.25, "accuracy": 0.5, "val_accuracy": 0.75 + epoch / 100})
    told.line.end()
    return told


def test_one_line_tells_how_far_a_whole_training_is(clock, columns):
    stream = Stream(True)
    train(stream, clock, epochs=3)
    shown = stream.getvalue().split("\r")
    assert shown[1].rstrip() == "epoch 1/3  compiling"
    assert shown[2].rstrip() == "epoch 1/3 25%  loss 0.5000  accuracy 25.00%"  # its speed is not known
    # Ten steps are left, of one second each: later the validations count too.
    assert shown[3].rstrip() == "epoch 1/3 50%  loss 0.5000  accuracy 25.00%  0:10 left  50 images/s"
    assert shown[6].rstrip().endswith("0:08 left  validating: batch 1")
    assert "epoch 2/3 25%  loss 0.5000  accuracy 25.00%  validation 75.00%  0:10 left" in stream.getvalue()
    expected = "epoch 3/3 100%  loss 0.2500  accuracy 50.00%  validation 77.00%  0:00 left  50 images/s"
    assert stream.screen == [expected[:79].rstrip(), ""]


def test_what_replaces_stdout_may_not_know_terminals(clock):
    class Log:
        def __init__(self):
            self.lines = []
            self.write, self.flush = self.lines.append, lambda: None

    log = Log()
    train(log, clock, epochs=1)
    assert len(log.lines) == 1


def test_a_narrow_terminal_cuts_the_line(clock, columns):
    columns(30)
    stream = Stream(True)
    train(stream, clock, epochs=2)
    assert stream.screen == ["epoch 2/2 100%  loss 0.2500", ""]
    assert max(len(part.rstrip("\n")) for part in stream.getvalue().split("\r")) < 30


def test_a_resumed_training_begins_where_it_stopped(clock, columns):
    stream = Stream(True)
    told = train(stream, clock, epochs=3, done=6)
    assert stream.getvalue().split("\r")[1].startswith("epoch 2/3  compiling")
    assert "epoch 2/3 75%" in stream.getvalue() and told.done == 12


def test_a_log_gets_a_line_an_epoch_or_one_in_ten_seconds(clock):
    few, many, slow = Stream(False), Stream(False), Stream(False)
    train(few, clock, epochs=20, seconds=0.01)
    assert [line.split("%")[0] for line in few.getvalue().splitlines()] == [f"epoch {i}/20 100" for i in range(1, 21)]
    train(many, clock, epochs=100)  # of six seconds each
    assert [line.split("/")[0] for line in many.getvalue().splitlines()] == [f"epoch {i}" for i in range(2, 101, 2)]
    train(slow, clock, epochs=1, seconds=25)
    assert [line.split("%")[0] for line in slow.getvalue().splitlines()] == ["epoch 1/1 75", "epoch 1/1 100"]


def test_a_stopped_training_leaves_a_fresh_line(clock, columns):
    stream = Stream(True)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    told = progress.RunProgress(run_of(2, 3, 4), Line(stream=stream))

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise RuntimeError

    try:
        with pytest.raises(RuntimeError):
            model.fit(np.zeros((12, 2)), np.zeros(12), epochs=2, batch_size=4, verbose=0, callbacks=[told, Stop()])
    finally:
        told.line.end()
    assert stream.getvalue().endswith("\n") and told.done == 1

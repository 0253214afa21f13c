import math
import types
import warnings

import numpy as np
import pytest

from keras_vit.tasks.pretrain.collapse import Planned, SayCollapse, collapsed
from keras_vit.tasks.pretrain.student_teacher import entropy

MOST = math.log(64)


def entropies(shares):
    """Returns the mean entropy of the teacher's outputs, and the entropy of their mean."""
    return float(np.mean(entropy(np.float32(shares)))), float(entropy(np.float32(np.mean(shares, 0))))


def test_both_kinds_of_collapse_are_told_from_learning():
    even = np.full((32, 64), 1 / 64)
    one = np.zeros((32, 64))
    one[:, 5] = 1
    few = np.tile(np.random.default_rng(0).dirichlet(np.full(64, 0.1)), (32, 1))  # the same few, of all images
    apart = np.eye(64)[:32]
    soft = 0.9 * even + 0.1 * apart
    for shares, words in ((even, "all prototypes the same share, of 64"), (one, "the same prototypes to all images")):
        text = collapsed(*entropies(shares), 64, 32)
        assert text.startswith("The teacher has collapsed") and words in text and "told apart" in text
    assert "the same prototypes" in collapsed(*entropies(few), 64, 32)
    assert collapsed(*entropies(apart), 64, 32) == "" == collapsed(*entropies(soft), 64, 32)


def run(validation=8):
    task = types.SimpleNamespace(temperature_epochs=0.5, frozen_epochs=1.0)
    optim = types.SimpleNamespace(epochs=3)
    recipe = types.SimpleNamespace(data=types.SimpleNamespace(batch_size=16), optim=optim)
    learner = types.SimpleNamespace(prototypes=64)
    return types.SimpleNamespace(recipe=recipe, learner=learner, validation=range(validation), task=task, steps=5)


def test_it_is_said_once_and_not_of_the_first_epoch():
    callback = SayCollapse(run())
    logs = {"val_teacher_entropy": MOST - 0.01, "val_mean_entropy": MOST}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        callback.on_epoch_end(0, logs)
        callback.on_epoch_end(1, {"val_teacher_entropy": 1.0, "val_mean_entropy": 3.0})
    with pytest.warns(UserWarning, match="collapsed, .*: it gives .* This is after epoch 3."):
        callback.on_epoch_end(2, logs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        callback.on_epoch_end(3, logs)


def test_the_learner_is_told_how_long_the_run_is():
    callback, told = Planned(run()), []
    callback.set_model(types.SimpleNamespace(plan=types.SimpleNamespace(assign=told.append)))
    callback.on_train_begin()
    assert told == [[15, 2, 5]]

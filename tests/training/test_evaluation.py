import dataclasses
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.tasks import Classify
from keras_vit.training import evaluation
from tests.training.small import RECIPE, SOURCE

TASK = Classify(classes=SOURCE.class_names, metrics=("accuracy", "balanced_accuracy"))
SCORED = dataclasses.replace(RECIPE, task=TASK)


def answers(images):
    return np.eye(3)[np.arange(len(images)) % 3]


def test_every_image_counts_once_and_has_a_score():
    tally, scores = evaluation.tally_of(answers, SCORED, SOURCE, (8, 8, 1), keep=True)
    predictions = np.concatenate([np.arange(8) % 3] * 5)
    assert tally.result()["accuracy"] == np.mean(predictions == SOURCE.labels)
    scores = np.concatenate(scores)
    assert ((scores > 0) == (predictions == SOURCE.labels)).all() and len(scores) == 40


def peak(batches, keep):
    """Returns the most memory that scoring so many batches of eight images takes, in bytes."""
    tracemalloc.start()
    tally, _ = evaluation.tally_of(answers, SCORED, range(8 * batches), (8, 8, 1), keep)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tally.counts.images == 8 * batches
    return most


def test_memory_does_not_grow_with_the_number_of_images(monkeypatch):
    batch = {"images": np.zeros((8, 8, 8, 1), "float32"), "labels": np.arange(8) % 3}
    monkeypatch.setattr(  # without TensorFlow, whose memory is not Python's
        evaluation.pipeline, "evaluation_arrays", lambda source, *_: (batch for _ in range(len(source) // 8))
    )
    peak(5, False)  # fills caches
    a_number_each = 8 * 8 * (500 - 5)  # bytes
    assert peak(500, False) - peak(5, False) < a_number_each
    assert peak(500, True) - peak(5, True) > a_number_each  # what figures need

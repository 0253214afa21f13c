import tracemalloc

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.tasks import Classify
from keras_vit.training import evaluation
from tests.training.small import RECIPE, SOURCE

TASK = Classify(classes=SOURCE.class_names, metrics=("accuracy", "balanced_accuracy"))


def answers(images):
    return np.eye(3)[np.arange(len(images)) % 3]


def test_every_image_counts_once_and_has_a_score():
    tally, scores = evaluation.tally_of(answers, TASK, RECIPE, SOURCE, (8, 8, 1), keep=True)
    predictions = np.concatenate([np.arange(8) % 3] * 5)
    assert tally.result()["accuracy"] == np.mean(predictions == SOURCE.labels)
    scores = np.concatenate(scores)
    assert ((scores > 0) == (predictions == SOURCE.labels)).all() and len(scores) == 40


def test_memory_does_not_grow_with_the_number_of_images():
    peaks = []
    for times in (5, 5, 50):  # the first fills caches
        many = SOURCE.take(np.arange(40 * times) % 40)
        tracemalloc.start()
        tally, _ = evaluation.tally_of(answers, TASK, RECIPE, many, (8, 8, 1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert tally.total.sum() == 40 * times
    assert peaks[2] - peaks[1] < 40 * 45 * 8  # less than one number for each of 1,800 images more

import numpy as np
import pytest

import keras_vit
from keras_vit.data.memory import Source
from keras_vit.reporting import counts

PATHS = np.array(["a.png", "a.png", "b.png"])
PIXELS = np.repeat(np.eye(2, dtype="uint8")[:, None, :, None], [2, 1], axis=0)


def source(images, **targets):
    return Source(images, {name: np.array(values) for name, values in targets.items()})


@pytest.mark.parametrize(
    "task, images, given, whole, words",
    [
        (keras_vit.Classify(), PATHS, False, True, "3 images kept for testing"),
        (keras_vit.Segment(), PATHS[:1], False, True, "1 image kept for testing"),
        (keras_vit.Classify(), PIXELS, True, False, "the first 3 images from arrays"),
        (keras_vit.Answer(), PATHS, False, True, "3 questions about 2 pictures, kept for testing"),
        (keras_vit.Answer(), PIXELS, True, True, "3 questions about 2 pictures, from arrays"),
        (keras_vit.Answer(), PATHS[:1], False, True, "1 question about 1 picture, kept for testing"),
        (keras_vit.Caption(), PATHS, False, True, "3 texts about 2 pictures, kept for testing"),
        (keras_vit.Contrast(), PATHS[1:], False, True, "2 images kept for testing"),
        (keras_vit.ClassifyClips(), PATHS, False, True, "3 clips kept for testing"),
        (keras_vit.PretrainClips(), PATHS, False, False, "the first 3 clips kept for testing"),
    ],
)
def test_what_was_measured_is_told(task, images, given, whole, words):
    assert counts.told(source(images), task, given, whole) == words


def test_thousands_have_a_comma():
    images = np.array([f"{i % 1000}.png" for i in range(9673)])
    assert counts.told(source(images), keras_vit.Answer(), False, True).startswith(
        "9,673 questions about 1,000 pictures"
    )


def test_the_interval_counts_pictures():
    few, many = (counts.intervals({"accuracy": 0.9}, count)["accuracy"] for count in (1000, 9673))
    assert few[1] - few[0] > 2.5 * (many[1] - many[0]) and few[0] < many[0] < 0.9 < many[1] < few[1]
    assert counts.pictures(source(PATHS), keras_vit.Answer()) == 2
    assert counts.pictures(source(PATHS), keras_vit.Classify()) == 3
    assert counts.intervals({"map": 0.5}, 10) == counts.intervals({"accuracy": np.nan}, 10) == {}

import numpy as np
import pytest

from keras_vit import checks

pytestmark = pytest.mark.backend

PIXELS = np.full((2, 4, 4, 3), 255, "uint8")


def test_good_input_passes():
    assert checks.images(PIXELS, (4, 4, 3)) is PIXELS
    assert checks.images(PIXELS.astype("float32"), (4, None, 3)).shape == PIXELS.shape
    assert checks.images(np.zeros((1, 4, 4, 3), "float32")).max() == 0  # black is black, not a scaled image
    assert checks.labels(np.array([0, 9]), 10, 2).tolist() == [0, 9]


@pytest.mark.parametrize(
    "images, said",
    [
        (PIXELS[0], r"shape=\(4, 4, 3\)"),
        (PIXELS[:0], r"shape=\(0, 4, 4, 3\)"),
        (PIXELS[..., :1], r"shape=\(2, 4, 4, 1\)"),
        (PIXELS.astype(str), "dtype=<U"),
        (PIXELS > 0, "dtype=bool"),
        (PIXELS / 255.0, "values from 1 to 1; multiply by 255"),
        (PIXELS.astype("float32") - 256, "values from -1 to -1"),
        (PIXELS.astype("int32") + 1, "values from 256 to 256"),
        (np.full(PIXELS.shape, np.nan), "nan"),
    ],
)
def test_bad_images_are_named(images, said):
    with pytest.raises(ValueError, match=said):
        checks.images(images, (4, 4, 3))


@pytest.mark.parametrize(
    "labels, said",
    [
        ([0, 10], r"from 0 to 9.*1 outside, such as \[10\]"),
        ([-1, 0], r"\[-1\]"),
        ([0.0, 1.0], "dtype=float64"),
        ([[0], [1]], r"shape=\(2, 1\)"),
        ([0, 1, 2], "2 images and 3 labels"),
    ],
)
def test_bad_labels_are_named(labels, said):
    with pytest.raises(ValueError, match=said):
        checks.labels(np.array(labels), 10, 2)


def test_near_names_what_is_spelled_alike():
    assert checks.near("optim.epoch", ["optim.epochs", "seed"]) == "Did you mean 'optim.epochs'?"
    assert checks.near("xyz", ["a", "b"]) == "Known: a, b."

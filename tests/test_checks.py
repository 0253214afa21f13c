import numpy as np
import pytest

from keras_vit import check_data, checks, vit

pytestmark = pytest.mark.backend

PIXELS = np.full((2, 4, 4, 3), 255, "uint8")


def test_good_input_passes():
    assert checks.pixels(PIXELS, (4, 4, 3)) is PIXELS
    assert checks.pixels(PIXELS.astype("float32"), (4, None, 3)).shape == PIXELS.shape
    assert checks.pixels(np.zeros((1, 4, 4, 3), "float32")).max() == 0  # black is black, not a scaled image
    assert checks.pixels(np.full((1, 4, 4, 3), 1, "float32")).max() == 1  # and dark is dark
    assert checks.class_indices(np.array([0, 9]), 10, 2).tolist() == [0, 9]


@pytest.mark.parametrize(
    "images, said",
    [
        (PIXELS[0], r"shape=\(4, 4, 3\)"),
        (PIXELS[:0], r"shape=\(0, 4, 4, 3\)"),
        (PIXELS[..., :1], r"shape=\(2, 4, 4, 1\)"),
        (PIXELS.astype(str), "dtype=<U"),
        (PIXELS > 0, "dtype=bool"),
        (PIXELS / 510.0, "values from 0.5 to 0.5; multiply by 255"),
        (PIXELS.astype("float32") - 256, "values from -1 to -1"),
        (PIXELS.astype("int32") + 1, "values from 256 to 256"),
        (np.full(PIXELS.shape, np.nan), "nan"),
    ],
)
def test_bad_images_are_named(images, said):
    with pytest.raises(ValueError, match=said):
        checks.pixels(images, (4, 4, 3))


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
        checks.class_indices(np.array(labels), 10, 2)


def test_check_data_before_fit():
    model = vit("mu/4", image_size=4, num_classes=3)
    check_data(model, PIXELS, np.array([0, 2]))
    for images, labels, said in (
        (PIXELS, [0, 3], r"such as \[3\]"),
        (PIXELS[:1], [0, 1], "1 images and 2 labels"),
        (PIXELS[..., :1], [0, 1], r"shape=\(2, 4, 4, 1\)"),
    ):
        with pytest.raises(ValueError, match=said):
            check_data(model, images, np.array(labels))


def test_near_names_what_is_spelled_alike():
    assert checks.near("optim.epoch", ["optim.epochs", "seed"]) == "Did you mean 'optim.epochs'?"
    assert checks.near("xyz", ["a", "b"]) == "Known: a, b."

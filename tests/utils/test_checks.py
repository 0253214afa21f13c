import pathlib

import keras
import numpy as np
import pytest

from keras_vit.utils import checks

pytestmark = pytest.mark.backend

PIXELS = np.full((2, 4, 4, 3), 255, "uint8")


def test_good_input_passes():
    assert checks.pixels(PIXELS, (4, 4, 3)) is PIXELS
    assert checks.pixels(PIXELS.astype("float32"), (4, None, 3)).shape == PIXELS.shape
    assert checks.pixels(np.zeros((1, 4, 4, 3), "float32")).max() == 0  # black is black, not a scaled image
    assert checks.pixels(np.full((1, 4, 4, 3), 1, "float32")).max() == 1  # and dark is dark
    assert checks.class_indices(np.array([0, 9]), 10, 2).tolist() == [0, 9]
    assert checks.class_indices(np.array([[0], [9]]), 10, 2).tolist() == [0, 9]


@pytest.mark.parametrize(
    "images, message",
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
def test_bad_images_are_refused(images, message):
    with pytest.raises(ValueError, match=message):
        checks.pixels(images, (4, 4, 3))


@pytest.mark.parametrize(
    "labels, message",
    [
        ([0, 10], r"from 0 to 9.*1 outside, such as \[10\]"),
        ([-1, 0], r"\[-1\]"),
        ([0.0, 1.0], "dtype=float64"),
        ([[0, 1], [1, 0]], r"shape=\(2, 2\)"),
        ([[0], [10]], r"such as \[10\]"),
        (3, r"shape=\(\)"),
        ([0, 1, 2], "2 images and 3 labels"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        checks.class_indices(np.array(labels), 10, 2)


def test_near_names_what_is_spelled_alike():
    assert checks.near("optim.epoch", ["optim.epochs", "seed"]) == "Did you mean 'optim.epochs'?"
    assert checks.near("xyz", ["a", "b"]) == "Known: a, b."
    assert checks.near("xyz", range(600)).endswith("48, 49 and 550 more.")


def test_only_a_known_home_directory_is_replaced_in_a_path(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert checks.path("path", "~/a.keras") == tmp_path / "a.keras"
    assert checks.path("path", "~nobody-of-this-name/a.keras") == pathlib.Path("~nobody-of-this-name/a.keras")


def test_an_error_shows_an_array_by_its_shape_and_type():
    array = np.zeros((8, 3), "float32")
    assert checks.shown(array) == "an array of shape (8, 3), float32"
    assert checks.shown({"a": [array, 1]}) == "{'a': [an array of shape (8, 3), float32, 1]}"
    assert checks.shown(keras.ops.convert_to_tensor(array)) == checks.shown(array)
    assert checks.shown([array.tolist(), 1]) == "[8 lists, 1]"
    assert checks.shown(((16, 2), (32, 1))) == "((16, 2), (32, 1))"
    with pytest.raises(ValueError, match=r"must be one of 'a', 'b'. Received: x=an array of shape \(8, 3\), float32"):
        checks.one_of("x", keras.ops.convert_to_tensor(array), ("a", "b"))
    assert checks.shown(np.float32(2)) == "2.0" and checks.shown("a") == "'a'" and checks.shown(None) == "None"
    assert len(checks.shown("a" * 10_000)) < 300 and len(checks.shown(list(range(10_000)))) < 100
    with pytest.raises(ValueError, match=r"Received: width=an array of shape \(8, 3\), float32$"):
        checks.positive(width=array)

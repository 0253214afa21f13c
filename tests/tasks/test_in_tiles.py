"""Pictures larger than the model: options of tiles, and masks without seams."""

import numpy as np
import pytest

import keras_vit
from keras_vit import config
from keras_vit.tasks.in_tiles import at_full_size, fitted, resized, tile_of, with_tiles

SIZE, PATCH = (32, 48, 3), 8
CLASSES = ("dark", "middle", "bright")
RNG = np.random.default_rng(0)


def of_patches(images):
    """A model of single patches: their mean brightness decides on the class of all their pixels."""
    assert images.shape[1:] == SIZE and images.dtype == np.float32
    means = images.reshape(len(images), 32 // PATCH, PATCH, 48 // PATCH, PATCH, 3).mean((2, 4, 5))
    logits = -np.abs(means[..., None] - np.array([40.0, 128, 215])) / 5
    return logits.repeat(PATCH, 1).repeat(PATCH, 2)


def segment(**tiles):
    return config.Segment(classes=CLASSES, tiles={"step": PATCH, **tiles})


def masks(pictures, **tiles):
    return at_full_size(segment(**tiles), of_patches, SIZE)(pictures)


@pytest.mark.parametrize("overlap", [0, 0.25, 0.5])
def test_a_picture_that_is_shifted_by_patches_has_a_shifted_mask(overlap):
    levels = RNG.choice([5, 70, 100, 150, 190, 250], (1, 25, 30, 1))
    large = levels.repeat(PATCH, 1).repeat(PATCH, 2).repeat(3, 3).astype("uint8")
    whole = masks(large, overlap=overlap)
    assert whole.shape == large.shape[:3] and whole.dtype == np.uint8
    for y, x in ((8, 0), (16, 40), (104, 24)):
        part = masks(large[:, y:, x:], overlap=overlap)
        np.testing.assert_array_equal(part, whole[:, y:, x:])
    np.testing.assert_array_equal(whole[0, ::PATCH, ::PATCH], np.digitize(levels[0, ..., 0], [84, 171.5]))


@pytest.mark.parametrize("value", [10, 128, 250])
@pytest.mark.parametrize("sides", [(20, 30), (32, 48), (33, 49), (77, 131)])
def test_a_constant_picture_has_a_constant_mask(value, sides):
    """Smaller, as large as a tile, a pixel larger, and of no multiple: shapes are the picture's own."""
    found = masks(np.full((2, *sides, 3), value, "uint8"))
    assert found.shape == (2, *sides) and (found == np.digitize(value, [84, 171.5])).all()


def test_tiles_of_another_size_are_resized_and_masks_back():
    small = RNG.integers(0, 3, (1, 5, 8))
    picture = (40 + 88 * small)[..., None].repeat(3, -1).repeat(32, 1).repeat(32, 2).astype("uint8")
    found = masks(picture, size=(64, 96), step=32)
    assert found.shape == (1, 160, 256)
    np.testing.assert_array_equal(found[:, 16::32, 16::32], small)
    assert tile_of({"size": 96}, SIZE) == (64, 96) and tile_of({"size": None}, SIZE) == (32, 48)
    assert tile_of({"size": (10, 20)}, SIZE) == (10, 20)
    assert fitted(of_patches, (32, 48), SIZE) is of_patches
    maps = RNG.normal(size=(2, 6, 4, 3))
    assert np.abs(resized(maps, (6, 4)) - maps).max() < 1e-6 and resized(maps, (3, 9)).shape == (2, 3, 9, 3)


def test_probabilities_of_a_file_become_logits():
    def softmaxed(images):
        logits = of_patches(images)
        return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)

    picture = RNG.integers(0, 256, (1, 70, 90, 3), "uint8")
    np.testing.assert_array_equal(at_full_size(segment(), softmaxed, SIZE)(picture), masks(picture))


def test_no_number_is_no_class():
    with pytest.raises(FloatingPointError, match="must return finite numbers"):
        at_full_size(segment(), lambda images: of_patches(images) * np.nan, SIZE)(np.zeros((1, 40, 60, 3), "uint8"))


@pytest.mark.parametrize(
    "tiles, message",
    [
        ({"overlap": 0.6}, "Segment.tiles.overlap must be a number from 0 to 0.5. Received: 0.6"),
        ({"overlap": "a"}, "Segment.tiles.overlap must be a number"),
        ({"size": 0}, "Segment.tiles.size` must be a positive integer"),
        ({"step": 0}, "Segment.tiles.step` must be a positive integer"),
        ({"tile": 3}, "an option of Segment.tiles.*'size'"),
    ],
)
def test_options_that_are_none_are_refused(tiles, message):
    with pytest.raises(ValueError, match=message):
        config.Segment(classes=CLASSES, tiles=tiles)


def test_tasks_that_cannot_are_refused_in_a_sentence():
    for task in (config.Segment(kind="instance"), config.Segment(text=True)):
        with pytest.raises(ValueError, match="not joined across tiles. Received: kind="):
            with_tiles(task, True)
    with pytest.raises(ValueError, match="Classify does not predict in tiles: .* Received: tiles=True"):
        with_tiles(config.Classify(), True)
    with pytest.raises(ValueError, match="Restore always predicts in tiles"):
        with_tiles(config.Restore(scale=2), {})
    with pytest.raises(ValueError, match="Clips are not predicted in tiles. Received: task.tiles=True"):
        with_tiles(config.DetectClips(classes=("a",)), True)
    task = config.Segment(classes=CLASSES)
    assert with_tiles(task, None) is task and with_tiles(task, True).whole and not with_tiles(task, False).whole


def test_tiles_begin_at_the_patches_of_the_model():
    model = keras_vit.vit("mu/4", image_size=(8, 16), num_classes=3)
    task = with_tiles(config.Segment(classes=CLASSES), True)
    assert task.tiles_of(model)["tiles"]["step"] == 4
    assert with_tiles(task, {"size": (16, 32)}).tiles_of(model)["tiles"]["step"] == 8
    assert with_tiles(task, {"size": (9, 17)}).tiles_of(model)["tiles"]["step"] == 1
    assert not with_tiles(task, {"step": 5}).tiles_of(model) and not config.Segment(classes=CLASSES).tiles_of(model)

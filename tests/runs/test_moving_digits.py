"""The recipe `moving_digits`: its clips, and that one frame alone cannot tell a direction."""

import runpy

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config.cookbook import recipe_path
from keras_vit.utils.clips import read_clip


class Drawn:
    """A random generator that draws what it is told."""

    def __init__(self, *values):
        self.values = list(values)

    def integers(self, *_):
        return self.values.pop(0)


@pytest.fixture
def drawing():
    return runpy.run_path(str(recipe_path("moving_digits")))


def small(drawing, side):
    """Returns the function of clips with frames of another side."""
    clip = drawing["clip"]
    clip.__globals__["SIDE"] = side
    return clip


def test_a_digit_moves_in_its_direction_and_comes_back_in(drawing):
    image = np.array([[255]], "uint8")
    clip = drawing["clip"](image, "down left", Drawn(np.array([38, 1]), 3))
    assert clip.shape == (8, 40, 40) and clip.dtype == "uint8"
    places = [np.argwhere(frame).tolist() for frame in clip]
    assert places[:3] == [[[38, 1]], [[1, 38]], [[4, 35]]]  # round the edge of 40
    assert {*drawing["DIRECTIONS"].values()} == {(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)} - {(0, 0)}


@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_single_frame_is_as_likely_in_every_direction(drawing, place):
    """Over all starts, the frames at a place are the same ones, each once, whatever the direction and the speed."""
    clip, image = small(drawing, 5), np.array([[9, 5], [0, 7]], "uint8")
    starts = [np.array([y, x]) for y in range(5) for x in range(5)]
    sets = {
        (direction, step): sorted(clip(image, direction, Drawn(start, step))[place].tobytes() for start in starts)
        for direction in drawing["DIRECTIONS"]
        for step in (1, 2, 3)
    }
    assert len({tuple(frames) for frames in sets.values()}) == 1 and len({*sets["up", 1]}) == 25


def test_files_are_what_the_recipe_reads(drawing, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    digits = rng.integers(0, 256, (20, 28, 28)).astype("uint8"), np.arange(20) % 10
    monkeypatch.setitem(drawing["main"].__globals__, "digits", lambda split: digits)
    drawing["main"](tmp_path, {"train": 16, "test": 16})
    files = sorted(tmp_path.rglob("*.apng"))
    assert len(files) == 32 and (tmp_path / "train" / "0 right" / "0.apng").is_file()
    made = [*drawing["clips"](*digits, "train", 16)]
    np.testing.assert_array_equal(
        read_clip(tmp_path / "train" / "0 right" / "0.apng", 1, np.arange)[..., 0], made[0][0]
    )
    assert len({name for _, name in made}) == 16 and made[3][1] == "3 down left"
    assert all((a == b).all() for (a, _), (b, _) in zip(made, drawing["clips"](*digits, "train", 16)))


def test_the_shipped_model_tells_digit_and_direction(tmp_path):
    """Clips of the test split's first digits, drawn anew; and none of the directions from a still clip."""
    recipe = keras_vit.load_recipe("moving_digits")
    assert recipe.task.frames == 8 and not recipe.augment.flip

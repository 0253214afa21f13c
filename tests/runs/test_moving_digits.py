"""The recipe `moving_digits`: its clips, and that one frame alone cannot tell a direction."""

import os
import runpy

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config.cookbook import recipe_path
from keras_vit.utils.clip_files import read_clip
from tests.clipfiles import animated
from tests.marks import slow


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
    with pytest.raises(FileExistsError):  # nothing is written over, nor beside it
        drawing["main"](tmp_path, {"train": 16})
    files = sorted(tmp_path.rglob("*.apng"))
    assert len(files) == 32 and (tmp_path / "train" / "0 right" / "0.apng").is_file()
    made = [*drawing["clips"](*digits, "train", 16)]
    np.testing.assert_array_equal(
        read_clip(tmp_path / "train" / "0 right" / "0.apng", 1, np.arange)[..., 0], made[0][0]
    )
    assert len({name for _, name in made}) == 16 and made[3][1] == "3 down left"
    assert all((a == b).all() for (a, _), (b, _) in zip(made, drawing["clips"](*digits, "train", 16)))


def test_the_shipped_model_tells_how_a_shape_moves_and_not_where_it_is(drawing, tmp_path):
    """A one, drawn by hand, in every direction and at three speeds; of a still clip it cannot tell."""
    one = np.zeros((28, 28), "uint8")
    one[5:23, 12:15] = 250
    files, wanted = [], []
    for i, direction in enumerate(drawing["DIRECTIONS"]):
        for step in (1, 2, 3):
            made = drawing["clip"](one, direction, Drawn(np.array([5 * i, 3 * i]), step))
            files.append(animated(tmp_path / f"{i} {step}.gif", made))
            wanted.append(f"1 {direction}")
    found = [name for ((name, _),) in keras_vit.predict("moving_digits", files, top=1)]
    assert sum(name == right for name, right in zip(found, wanted)) >= 22
    model = keras_vit.from_pretrained("moving_digits")
    still = np.repeat(keras_vit.preprocess(model, files)[:, :1], 8, axis=1)
    said = np.array(keras_vit.class_names(model))[np.asarray(model(still)).argmax(-1)]
    directions = [name.split(" ", 1)[1] for name in said]
    assert np.mean([one == right.split(" ", 1)[1] for one, right in zip(directions, wanted)]) < 0.4
    assert keras_vit.load_recipe("moving_digits").task.frames == 8


@slow
@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="MNIST is not there")
def test_the_shipped_model_is_as_good_as_its_recipe_says(drawing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawing["main"]("moving_digits", {"test": 400})
    [found] = keras_vit.evaluate("moving_digits").values()
    assert found["accuracy"] > keras_vit.load_recipe("moving_digits").reached.test_accuracy - 0.02

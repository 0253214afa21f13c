"""The recipe `moving_digits_boxes`: clips of two digits, and where each is in the middle frame."""

import json
import runpy

import numpy as np
import pytest

from keras_vit.config.cookbook import recipe_path


@pytest.fixture(scope="module")
def writing():
    return runpy.run_path(str(recipe_path("moving_digits_boxes")))


def digits(split):
    """Returns two images without a black pixel inside, of 20 x 4 and 14 x 20 pixels, and their labels."""
    images = np.zeros((2, 28, 28), "uint8")
    images[0, 4:24, 12:16], images[1, 7:21, 4:24] = 90, 200
    return images, np.array([1, 8])


def test_a_box_is_around_its_digit_in_the_middle_frame_alone(writing):
    images, labels = digits("train")
    middle = writing["FRAMES"] // 2
    for frames, objects in writing["clips"](images, labels, "train", 40):
        assert frames.shape == (8, 48, 48) and len(objects) == 2
        alone = np.zeros((48, 48), bool)
        for name, (left, top, wide, high) in objects:
            digit, _ = name.split(" ")
            assert (wide, high) == {"1": (4, 20), "8": (20, 14)}[digit]
            inside = frames[middle, top : top + high, left : left + wide]
            assert (inside == {"1": 90, "8": 200}[digit]).all()
            assert not alone[top : top + high, left : left + wide].any()  # the two are apart
            alone[top : top + high, left : left + wide] = True
        assert not frames[middle][~alone].any()


def test_the_middle_frame_says_nothing_of_the_direction(writing):
    """The same draw of places for each direction: where a digit stands does not depend on where it moves."""
    images, labels = digits("train")
    image = np.full((3, 3), 90, "uint8")  # so small that they do not meet
    made = {
        name: writing["clip"]([image, image], [name] * 2, np.random.default_rng(7))[0] for name in writing["DIRECTIONS"]
    }
    for name, clip in made.items():
        np.testing.assert_array_equal(clip[4], made["left"][4])
        moved = np.argwhere(clip[5]).mean(0) - np.argwhere(clip[4]).mean(0)
        assert np.sign(np.round(moved, 3)).tolist() == [*writing["DIRECTIONS"][name]]
    found = [name for _, objects in writing["clips"](images, labels, "train", 200) for name, _ in objects]
    counts = [sum(name.endswith(f" {direction}") for name in found) for direction in writing["DIRECTIONS"]]
    assert min(counts) > 70 and sum(counts) == 400


def test_the_files_are_those_that_are_read(writing, tmp_path, monkeypatch):
    pytest.importorskip("tensorflow")
    from keras_vit.config import Data
    from keras_vit.data import sources

    monkeypatch.setitem(writing["main"].__globals__, "digits", digits)
    writing["main"](tmp_path, {"train": 6})
    with pytest.raises(FileExistsError):  # nothing is written over
        writing["main"](tmp_path, {"train": 6})
    table = json.loads((tmp_path / "train" / "annotations.json").read_text())
    assert len(table["images"]) == 6 and len(table["annotations"]) == 12 and len(table["categories"]) == 40
    task = writing["recipe"].task
    source = sources.load(Data(source=f"folder:{tmp_path}"), "train", task.targets, clips=task.clips)
    assert source.class_names == task.classes == writing["CLASSES"]
    assert source.targets["bounding_boxes"].shape == (6, 2, 5)

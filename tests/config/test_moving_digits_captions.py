"""The recipe `moving_digits_captions`: what its table says of each clip."""

import csv
import runpy

import pytest

from keras_vit.config.cookbook import recipe_path

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def writing():
    return runpy.run_path(str(recipe_path("moving_digits_captions")))


def test_captions(writing):
    assert writing["caption"]("3 down left") == "a three moves down left"
    assert writing["caption"]("8 up") == "an eight moves up"


def test_pairs_that_are_held_back_are_tested_alone(writing, tmp_path):
    held = writing["HELD_BACK"]
    assert len(held) == 10 and {name[0] for name in held} == {*"0123456789"}
    assert {name.split(" ", 1)[1] for name in held} == {*writing["DIRECTIONS"]}  # each direction is learned of others
    names = [f"{digit} {direction}" for digit in range(10) for direction in writing["DIRECTIONS"]]
    for split in SPLITS:
        for name in names:
            (tmp_path / split / name).mkdir(parents=True)
            (tmp_path / split / name / "0.apng").touch()
    writing["main"](tmp_path)
    with (tmp_path / "metadata.csv").open() as file:
        rows = [*csv.DictReader(file)]
    of = {
        which: {row["file_name"].split("/")[1] for row in rows if row["split"] == which}
        for which in (*SPLITS, "unseen")
    }
    assert of["unseen"] == held and all(of[split] == {*names} - held for split in SPLITS)
    assert {row["file_name"].split("/")[0] for row in rows if row["split"] == "unseen"} == {"test"}

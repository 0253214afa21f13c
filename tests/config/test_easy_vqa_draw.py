"""The splits of the recipe `easy_vqa_draw`, of drawings that the test makes itself."""

import csv
import runpy

import pytest
from PIL import Image

from keras_vit.config.cookbook import recipe_path


def test_new_pairs_are_in_no_split_but_their_own(tmp_path):
    pytest.importorskip("tensorflow")
    from keras_vit.config import Data
    from keras_vit.data import sources

    recipe = runpy.run_path(str(recipe_path("easy_vqa_draw")))
    known = ["a red circle", "a teal circle", "a blue triangle"]
    assert len(recipe["NEW"]) == 3 and not recipe["NEW"] & {*known}
    for split in ("train", "test"):
        folder = tmp_path / "captions" / split
        folder.mkdir(parents=True)
        rows = [(f"{i}.png", text) for i, text in enumerate([*known, *sorted(recipe["NEW"])])]
        for name, _ in rows:
            Image.new("RGB", (64, 64), (235, 245, 240)).save(folder / name)
        with (folder / "metadata.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("file_name", "caption"), *rows])
    recipe["main"](tmp_path / "captions", tmp_path / "drawings")
    for split, expected in {"train": {*known}, "test": {*known}, "new": recipe["NEW"]}.items():
        source = sources.load(Data(source=f"folder:{tmp_path / 'drawings'}"), split, ("texts",))
        assert {text for texts in source.targets["texts"] for text in texts} == expected and len(source) == 3

"""The drawings of the recipe `emoji_draw`: those of one style, with their names."""

import csv
import runpy

import pytest
from PIL import Image

from keras_vit.config.cookbook import recipe_path


def test_one_style_is_copied(tmp_path):
    pytest.importorskip("tensorflow")
    from keras_vit.config import Data
    from keras_vit.data import sources

    for split in ("train", "validation", "test"):
        rows = [(f"{style}/{i}.png", style, f"sign {i}", "a;b") for style in ("twitter", "google") for i in range(2)]
        for name, *_ in rows:
            (tmp_path / "emoji" / split / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (64, 64)).save(tmp_path / "emoji" / split / name)
        with (tmp_path / "emoji" / split / "metadata.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("file_name", "style", "name", "tags"), *rows])
    recipe = runpy.run_path(str(recipe_path("emoji_draw")))
    recipe["main"](tmp_path / "emoji", tmp_path / "drawings")
    data = Data(source=f"folder:{tmp_path / 'drawings'}", columns={"texts": "name"})
    source = sources.load(data, "train", ("texts",))
    assert [*source.targets["texts"]] == [("sign 0",), ("sign 1",)]

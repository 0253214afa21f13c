"""The scenes of the recipe `easy_vqa_masks`, of drawings that the test makes itself."""

import random
import runpy

import numpy as np
import pytest
from PIL import Image, ImageDraw

from keras_vit.config.cookbook import recipe_path

FORMS = {"circle": ("ellipse", (12, 20, 30, 38)), "rectangle": ("rectangle", (12, 20, 34, 33)),
         "triangle": ("polygon", ((12, 38), (22, 20), (32, 38)))}  # fmt: skip


@pytest.fixture(scope="module")
def recipe():
    return runpy.run_path(str(recipe_path("easy_vqa_masks")))


@pytest.fixture(scope="module")
def drawings(recipe):
    found = {}
    for color, ink in recipe["COLORS"].items():
        for form, (shape, place) in FORMS.items():
            image = Image.new("RGB", (64, 64), (235, 245, 240))
            getattr(ImageDraw.Draw(image), shape)(place, fill=ink)
            found[color, form] = [np.asarray(image)]
    return found


def test_color_and_form_are_seen_in_a_drawing(recipe, drawings):
    for pair, (drawing,) in drawings.items():
        *seen, pixels, mask = recipe["shape_in"](drawing)
        assert tuple(seen) == pair and pixels.shape[:2] == mask.shape and mask.sum() > 100


@pytest.mark.parametrize("new", [False, True])
def test_sentences_mean_one_shape_each(recipe, drawings, new):
    said = set()
    for i in range(60):
        draw = random.Random(i)
        image, masks = recipe["scene"](draw, drawings, new)
        assert image.shape == (64, 64, 3) and 2 <= len(masks) <= 4 and sum(masks.values()).max() == 1
        assert bool({*masks} & recipe["NEW"]) == new
        np.testing.assert_array_equal((image != recipe["ground_of"](image)).any(-1), sum(masks.values()))
        for text, mask in recipe["sentences"](draw, masks, new):
            words = {*text.split()} & {*recipe["COLORS"], *FORMS}
            [pair] = (pair for pair in masks if words <= {*pair})  # exactly one
            assert mask is masks[pair] and (not new or pair in recipe["NEW"])
            said.add(len(words))
    assert said == ({2} if new else {1, 2})


def test_the_files_are_a_table_of_masks(recipe, drawings, tmp_path):
    pytest.importorskip("tensorflow")
    from keras_vit.config import Data
    from keras_vit.data import sources

    (tmp_path / "vqa" / "train" / "images").mkdir(parents=True)
    for i, (drawing,) in enumerate(drawings.values()):
        Image.fromarray(drawing).save(tmp_path / "vqa" / "train" / "images" / f"{i}.png")
    recipe["main"](tmp_path / "vqa", tmp_path / "shapes", {"train": ("train", 3)})
    source = sources.load(Data(source=f"folder:{tmp_path / 'shapes'}"), "train", recipe["recipe"].task.targets)
    assert len(source) == 6 and {*source.mask_values} == {0, 1}
    assert recipe["recipe"].task.on(source, {}).words

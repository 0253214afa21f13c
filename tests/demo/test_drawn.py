import pathlib
import types

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Data, Generate, Recipe
from keras_vit.demo.drawn import NONE, PICTURES, SIDE, drawing_page
from keras_vit.runs.trained import Trained
from tests.dits import LENGTH, SIZES, WORDS, of_texts, small


@pytest.fixture(autouse=True)
def gradio():  # takes seconds to import
    return pytest.importorskip("gradio", reason="gradio is not installed")


def trained(model, names=("cat", "dog", "7")):
    task = Generate(classes=names, steps=2)
    recipe = Recipe(name="animals", task=task, model=SIZES, data=Data(source="digits"))
    about = dict(model=model, class_names=names, task=task, size=(8, 12, 1), bound=recipe, shipped=False)
    return types.SimpleNamespace(**about)


def test_draws_what_sample_draws():
    model = small()
    page = drawing_page(trained(model))
    draw = next(one.fn for one in page.fns.values() if one.name == "draw")
    pictures, notes = draw("dog", 1.5, 2, 3)
    assert notes == ""
    expected = keras_vit.sample(model, [1] * PICTURES, guidance=1.5, steps=2, seed=3)
    assert len(pictures) == PICTURES
    for picture, image in zip(pictures, expected):
        assert picture.shape == (SIDE * 8 // 12, SIDE, 3)
        np.testing.assert_allclose(picture[::14, ::14, 0][:8, :12], image[..., 0], atol=1)
    assert (draw(NONE, 1.5, 2, 3)[0][0] != pictures[0]).any()
    said = [part.value for part in page.blocks.values() if type(part).__name__ == "Markdown"]
    assert said == ["# animals\n12 x 8 pixels, gray, 3 classes"]


def test_words_are_typed():
    model = of_texts()
    task = Generate(text=True, words=tuple(WORDS), length=LENGTH, steps=2, example="a red cat")
    recipe = Recipe(name="animals", task=task, model=SIZES, data=Data(source="digits"))
    page = drawing_page(Trained(model, recipe, (), "animals.keras", pathlib.Path("animals")))
    draw = next(one.fn for one in page.fns.values() if one.name == "draw")
    pictures, notes = draw(" a  red cat ", 1.5, 2, 3)
    expected = keras_vit.sample(model, ["a red cat"] * PICTURES, guidance=1.5, steps=2, seed=3)
    assert len(pictures) == PICTURES and notes == ""
    np.testing.assert_allclose(pictures[0][::14, ::14, 0][:8, :12], expected[0][..., 0], atol=1)
    box = next(part for part in page.blocks.values() if type(part).__name__ == "Textbox")
    assert box.value == "a red cat" and "cat" in box.info
    with pytest.warns(UserWarning, match="horse"):
        pictures, notes = draw("a red horse", 1.5, 2, 3)
    assert len(pictures) == PICTURES and "Unknown to the model: “horse”" in notes
    for text, said in (("", "Write a text"), (" ", "Write a text"), ("a red cat a red cat", "at most 5 tokens")):
        pictures, notes = draw(text, 1.5, 2, 3)
        assert pictures == [] and said in notes
    said = [part.value for part in page.blocks.values() if type(part).__name__ == "Markdown"]
    assert said == ["# animals\n12 x 8 pixels, gray"]


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="which does not say what it predicts"):
        drawing_page(trained(keras_vit.dit(**SIZES)))

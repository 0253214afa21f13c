import types

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Data, Generate, Recipe
from keras_vit.demo.drawn import NONE, PICTURES, SIDE, drawing_page
from tests.dits import SIZES, small


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
    pictures = draw("dog", 1.5, 2, 3)
    expected = keras_vit.sample(model, [1] * PICTURES, guidance=1.5, steps=2, seed=3)
    assert len(pictures) == PICTURES
    for picture, image in zip(pictures, expected):
        assert picture.shape == (SIDE * 8 // 12, SIDE, 3)
        np.testing.assert_allclose(picture[::14, ::14, 0][:8, :12], image[..., 0], atol=1)
    assert (draw(NONE, 1.5, 2, 3)[0] != pictures[0]).any()
    said = [part.value for part in page.blocks.values() if type(part).__name__ == "Markdown"]
    assert said == ["# animals\n12 x 8 pixels, gray, 3 classes"]


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="which does not say what it predicts"):
        drawing_page(trained(keras_vit.dit(**SIZES)))

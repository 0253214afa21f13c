import types

import keras
import pytest

from keras_vit.config import Recipe
from keras_vit.runs import unfinished


def trained(seed=0):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    recipe = Recipe("a", {})
    return types.SimpleNamespace(model=model, bound=recipe, task=recipe.task)


def test_a_folder_says_of_which_call_its_files_are(tmp_path):
    known = unfinished.facts(trained(), "a cat", None)
    unfinished.note(tmp_path, known)
    unfinished.check(tmp_path, unfinished.facts(trained(), "a cat", None))
    for other, what in (
        (unfinished.facts(trained(1), "a cat", None), "another model"),
        (unfinished.facts(trained(), "a dog", None), "other options"),
    ):
        with pytest.raises(ValueError, match=f"which has files of {what}"):
            unfinished.check(tmp_path, other)
    (tmp_path / unfinished.NAME).write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        unfinished.check(tmp_path, known)
    unfinished.done(tmp_path)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(ValueError, match="which no interrupted call left"):
        unfinished.check(tmp_path, known)


@pytest.mark.parametrize("left", ['{"weights": "of another"}', "{"])
def test_two_calls_in_one_folder_are_not_continued_as_one(tmp_path, left):
    known = unfinished.facts(trained())
    (tmp_path / unfinished.NAME).write_text(left)
    unfinished.note(tmp_path, known)
    with pytest.raises(ValueError, match="which has files of another model"):
        unfinished.check(tmp_path, known)

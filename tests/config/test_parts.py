import pytest

from keras_vit.config import LEVELS, Augment, Data, Optim, Reached, Recipe, Task

pytestmark = pytest.mark.backend


def test_unknown_words_are_refused_in_files_too():
    for part in (Data, Augment, Optim):
        with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
            part(bogus=1)


def test_levels_are_the_published_ones():
    """`RANDAUG_DEF` and `MIXUP_DEF` of big_vision's vit_i1k.py."""
    published = {
        "none": (0, 0, 0),
        "light1": (2, 0, 0),
        "light2": (2, 10, 0.2),
        "medium1": (2, 15, 0.2),
        "medium2": (2, 15, 0.5),
        "strong1": (2, 20, 0.5),
        "strong2": (2, 20, 0.8),
    }
    assert set(published) == set(LEVELS)
    for name, (count, magnitude, mixup) in published.items():
        level = Augment.level(name, crop="inception", flip=True)
        assert (level.randaugment, level.magnitude, level.mixup) == (count, magnitude, mixup)
        assert level.crop == "inception" and level.flip
    assert Augment.level("light2", mixup=0.0).mixup == 0
    with pytest.raises(ValueError, match="Received: level='heavy'"):
        Augment.level("heavy")


def test_a_recipe_classifies_by_default():
    recipe = Recipe(name="x", model={})
    assert type(recipe.task).__name__ == "Classify" and recipe.task.targets == ("labels",)
    with pytest.raises(TypeError, match="Recipe.task must be Task. Received: 'segment'"):
        Recipe(name="x", model={}, task="segment")
    assert issubclass(type(recipe.task), Task)


def test_what_was_reached_has_a_headline():
    assert Reached(test_accuracy=0.5).headline == ("test accuracy", 0.5)
    assert Reached(scores=(("mean IoU on val", 0.9), ("pixel accuracy", 0.95))).headline == ("mean IoU on val", 0.9)

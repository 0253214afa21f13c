import pytest

from keras_vit import config
from keras_vit.config import Augment, Data, Optim, Recipe, Weights

pytestmark = pytest.mark.backend

RECIPE = Recipe(name="x", model={"width": 8, "image_size": (4, 6)}, weights=Weights("a.keras", "0" * 64))


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
    assert set(published) == set(config.LEVELS)
    for name, (count, magnitude, mixup) in published.items():
        level = Augment.level(name, crop="inception", flip=True)
        assert (level.randaugment, level.magnitude, level.mixup) == (count, magnitude, mixup)
        assert level.crop == "inception" and level.flip
    assert Augment.level("light2", mixup=0.0).mixup == 0
    with pytest.raises(ValueError, match="Received: level='heavy'"):
        Augment.level("heavy")

import dataclasses
import json

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import config
from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Weights
from keras_vit.utils.checked import Checked, applied, number, only_with

pytestmark = pytest.mark.backend

RECIPE = Recipe(name="x", model={"width": 8, "image_size": (4, 6)}, weights=Weights("a.keras", "0" * 64))


@pytest.mark.parametrize("kind, name, low, high", [
    (Augment, "crop_area", 1e-3, 1), (Optim, "layer_decay", 1e-3, 1), (Augment, "magnitude", 0, 30),
])  # fmt: skip
def test_ranges_hold_their_ends(kind, name, low, high):
    for value in (float(low), float(high)):
        assert getattr(kind(**{name: value}), name) == value
    with pytest.raises(ValueError, match=f"must be at least {low} and at most {high}. Received"):
        kind(**{name: high + 1e-4})


def test_every_item_of_a_setting_is_checked():
    with pytest.raises(TypeError, match=r"Reached.seeds must be .* Received: \(0, '1'\)"):
        Reached(seeds=(0, "1"))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Optim(optimizer="adam"), "Optim.optimizer must be one of 'adamw', 'sgd', 'muon'. Received: 'adam'"),
        (lambda: Optim(freeze="some"), "Optim.freeze must be int or one of 'all' or None. Received: 'some'"),
        (lambda: Reached(seeds=(1.5,)), r"Reached.seeds must be a tuple, each int. Received: \(1.5,\)"),
        (lambda: Data(columns="a"), "Data.columns must be a dictionary or None. Received: 'a'"),
    ],
)
def test_types_are_said_in_words(make, said):
    with pytest.raises(TypeError, match=said):
        make()


def test_a_switch_may_be_none():
    @dataclasses.dataclass(frozen=True, repr=False)
    class Mine(Checked):
        balanced: bool | None = None
        count: int | None = None
        each: tuple[bool, ...] = ()

    assert [Mine(balanced=value).balanced for value in (True, None)] == [True, None]
    with pytest.raises(TypeError, match=r"count must be int or None. Received: True"):
        Mine(count=True)
    with pytest.raises(TypeError, match="each must be a tuple, each bool. Received: True"):
        Mine(each=True)


def test_a_recipe_is_shown_a_line_a_setting():
    recipe = config.Recipe(
        name="x",
        model={"variant": "Ti/4", "image_size": (4, 4)},
        data=config.Data(source="digits", batch_size=8),
        optim=config.Optim(learning_rate=3e-4, layer_decay=0.75),
        task=config.Classify(metrics=("balanced_accuracy",)),
    )
    assert (
        repr(recipe)
        == """Recipe(
    name='x',
    model={
        'variant': 'Ti/4',
        'image_size': (4, 4),
    },
    task=Classify(
        metrics=('balanced_accuracy',),
    ),
    data=Data(
        batch_size=8,
    ),
    optim=Optim(
        learning_rate=0.0003,
        layer_decay=0.75,
    ),
)"""
    )
    for name in keras_vit.list_recipes():
        known = keras_vit.load_recipe(name)
        again = eval(repr(known), {**vars(config), "keras": keras})  # layers are compared by their configuration
        assert config.to_dict(again) == config.to_dict(known)


def test_a_recipe_holds_python_s_numbers():
    recipe = config.Recipe(name="x", model={"image_size": np.array([4, 6]), "num_classes": np.int64(3)})
    recipe = config.override(recipe, {"optim.epochs": np.int64(3), "optim.learning_rate": np.float32(0.5)})
    assert recipe.model == {"image_size": [4, 6], "num_classes": 3}
    assert json.loads(json.dumps(config.to_dict(recipe)))["optim"]["epochs"] == 3


@dataclasses.dataclass(frozen=True)
class Switched(Checked):
    several: bool = False
    limits: tuple[float, ...] = only_with("several", ())
    share: float = only_with("several", number(0.5, most=1))


def test_an_option_may_need_another_one():
    assert Switched(several=True, limits=(0.5,)).limits == (0.5,)
    with pytest.raises(ValueError, match=r"Switched.limits needs several=True. Received: limits=\(0.5,\) without"):
        Switched(limits=(0.5,))
    assert applied(Switched()) == {"several": False}
    assert applied(Switched(several=True)) == {"several": True, "limits": (), "share": 0.5}
    with pytest.raises(ValueError, match=r"Switched.share must be at least 0 and at most 1. Received: 2.0"):
        Switched(several=True, share=2.0)
    with pytest.raises(ValueError, match=r"Switched.share needs several=True. Received: share=0.3 without"):
        Switched(share=0.3)

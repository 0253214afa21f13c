import json

import keras
import pytest

import keras_vit
from keras_vit import config
from keras_vit.config import Augment, Data, Optim, Reached, Recipe, Weights

pytestmark = pytest.mark.backend

RECIPE = Recipe(name="x", model={"width": 8, "image_size": (4, 6)}, weights=Weights("a.keras", "0" * 64))


def test_round_trip_through_json():
    recipe = config.override(RECIPE, {"optim.epochs": 3})
    full = Recipe(**{**vars(recipe), "reached": Reached(test_accuracy=0.9, seeds=(1, 2))})
    text = json.dumps(config.to_dict(full))
    assert json.dumps(config.to_dict(config.from_dict(json.loads(text)))) == text


def test_override_changes_one_value_and_leaves_the_rest():
    changed = config.override(RECIPE, {"optim.learning_rate": 1, "model.depth": 2, "seed": 5, "data.limit": None})
    assert (changed.optim.learning_rate, changed.model["depth"], changed.model["width"], changed.seed) == (1, 2, 8, 5)
    assert changed.augment == RECIPE.augment and RECIPE.optim.learning_rate == 1e-3


@pytest.mark.parametrize(
    "changes, error, said",
    [
        ({"optim.epoch": 3}, ValueError, "'optim.epoch'. Did you mean 'optim.epochs'"),
        ({"epochs": 3}, ValueError, "'epochs'. Did you mean 'optim.epochs'"),
        ({"optim": 3}, ValueError, "'optim'"),
        ({"reached.minutes": 3}, ValueError, "'reached.minutes'"),
        ({"optim.epochs": 3.5}, TypeError, "Optim.epochs is int. Received: 3.5"),
        ({"optim.epochs": True}, TypeError, "Received: True"),
        ({"optim.epochs": "three"}, TypeError, "Received: 'three'"),
        ({"optim.epochs": 0}, ValueError, "Optim.epochs is at least 1.*Received: 0"),
        ({"optim.clip_norm": "big"}, TypeError, "Received: 'big'"),
        ({"optim.learning_rate": float("nan")}, ValueError, "Received: nan"),
        ({"augment.flip": 1}, TypeError, "Augment.flip is bool. Received: 1"),
        ({"augment.erase": 1.0}, ValueError, "below 1"),
        ({"data.bad_images": "ignore"}, TypeError, "Received: 'ignore'"),
        ({"seed": "a"}, TypeError, "Recipe.seed is int"),
    ],
)
def test_bad_changes_are_named(changes, error, said):
    with pytest.raises(error, match=said):
        config.override(RECIPE, changes)


@pytest.mark.parametrize("kind, name, low, high", [
    (Augment, "crop_area", 1e-3, 1), (Optim, "layer_decay", 1e-3, 1), (Augment, "magnitude", 0, 30),
])  # fmt: skip
def test_ranges_hold_their_ends(kind, name, low, high):
    for value in (float(low), float(high)):
        assert getattr(kind(**{name: value}), name) == value
    with pytest.raises(ValueError, match=f"is at least {low} and at most {high}. Received"):
        kind(**{name: high + 1e-4})


def test_unknown_words_are_refused_in_files_too():
    for part in (Data, Augment, Optim):
        with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
            part(bogus=1)


def test_parse_reads_python_values():
    words = [
        "optim.epochs=3",
        "optim.learning_rate=1e-3",
        "augment.flip=true",
        "model.image_size=(28, 28)",
        "data.limit=None",
    ]
    words += ["data.train=train[:90%]", "data.source=folder:/a=b"]
    assert list(config.parse(words).values()) == [3, 1e-3, True, (28, 28), None, "train[:90%]", "folder:/a=b"]
    with pytest.raises(ValueError, match="Received: 'epochs'"):
        config.parse(["epochs"])


def test_smoke_is_two_steps():
    smoke = config.smoke(RECIPE)
    assert smoke.data.limit // smoke.data.batch_size == 2 and smoke.optim.epochs == 1


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


def test_keras_layers_of_an_augmentation_come_back_from_json():
    layers = (keras.layers.RandomFlip("horizontal", seed=3), keras.layers.RandomRotation(0.1))
    recipe = Recipe(name="x", model={}, augment=Augment(layers=layers), metrics=("accuracy", "partial_auc"))
    text = json.dumps(config.to_dict(recipe))
    again = config.from_dict(json.loads(text))
    assert [type(layer) for layer in again.augment.layers] == [keras.layers.RandomFlip, keras.layers.RandomRotation]
    assert again.augment.layers[0].seed == 3 and again.metrics == recipe.metrics
    fresh = Augment(layers=(keras.layers.RandomFlip("horizontal", seed=3), keras.layers.RandomRotation(0.1)))
    other = config.to_dict(Recipe(name="x", model={}, augment=fresh, metrics=recipe.metrics))
    assert json.dumps(other) == text  # two processes that name layers otherwise have the same recipe


def test_smoke_needs_no_weights_and_one_block():
    short = config.smoke(Recipe(name="x", model={"weights": "a.npz", "depth": 12}, optim=Optim(accumulate=8)))
    assert short.model["weights"] is None and short.model["depth"] == 1
    assert (short.data.batch_size, short.data.limit, short.optim.accumulate) == (4, 8, 1)


def test_a_recipe_is_shown_a_line_a_setting():
    recipe = config.Recipe(
        name="x",
        model={"variant": "Ti/4", "image_size": (4, 4)},
        data=config.Data(source="digits", batch_size=8),
        optim=config.Optim(learning_rate=3e-4, layer_decay=0.75),
        metrics=("balanced_accuracy",),
    )
    assert (
        repr(recipe)
        == """Recipe(
    name='x',
    model={
        'variant': 'Ti/4',
        'image_size': (4, 4),
    },
    data=Data(
        batch_size=8,
    ),
    optim=Optim(
        learning_rate=0.0003,
        layer_decay=0.75,
    ),
    metrics=('balanced_accuracy',),
)"""
    )
    for name in keras_vit.list_recipes():
        known = keras_vit.load_recipe(name)
        assert eval(repr(known), vars(config)) == known

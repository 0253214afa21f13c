import json

import keras
import pytest

from keras_vit import config
from keras_vit.config import Augment, Reached, Recipe, Weights

pytestmark = pytest.mark.backend

RECIPE = Recipe(name="x", model={"width": 8, "image_size": (4, 6)}, weights=Weights("a.keras", "0" * 64))


def test_round_trip_through_json():
    recipe = config.override(RECIPE, {"optim.epochs": 3})
    full = Recipe(**{**vars(recipe), "reached": Reached(test_accuracy=0.9, seeds=(1, 2))})
    text = json.dumps(config.to_dict(full))
    assert json.dumps(config.to_dict(config.from_dict(json.loads(text)))) == text
    scored = Recipe(name="x", model={}, reached=Reached(scores=(("mean IoU", 0.9),)))
    assert config.from_dict(json.loads(json.dumps(config.to_dict(scored)))) == scored


def test_keras_layers_of_an_augmentation_come_back_from_json():
    layers = (keras.layers.RandomFlip("horizontal", seed=3), keras.layers.RandomRotation(0.1))
    recipe = Recipe(
        name="x", model={}, augment=Augment(layers=layers), task=config.Classify(metrics=("accuracy", "partial_auc"))
    )
    text = json.dumps(config.to_dict(recipe))
    again = config.from_dict(json.loads(text))
    assert [type(layer) for layer in again.augment.layers] == [keras.layers.RandomFlip, keras.layers.RandomRotation]
    assert again.augment.layers[0].seed == 3 and again.task == recipe.task
    fresh = Augment(layers=(keras.layers.RandomFlip("horizontal", seed=3), keras.layers.RandomRotation(0.1)))
    other = config.to_dict(Recipe(name="x", model={}, augment=fresh, task=recipe.task))
    assert json.dumps(other) == text  # two processes that name layers otherwise have the same recipe


def test_removed_options_are_read_where_they_were_unset_and_refused_where_not():
    values = json.loads(json.dumps(config.to_dict(RECIPE)))
    earlier = {**values, "optim": {**values["optim"], "image_sizes": []}}
    assert config.from_dict(earlier) == config.from_dict(values)
    with pytest.raises(ValueError, match=r"optim.image_sizes was removed. .* Received: optim.image_sizes=\[16, 20\]"):
        config.from_dict({**values, "optim": {**values["optim"], "image_sizes": [16, 20]}})

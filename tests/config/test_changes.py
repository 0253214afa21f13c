import pytest

from keras_vit import config
from keras_vit.config import Recipe, Weights

pytestmark = pytest.mark.backend

RECIPE = Recipe(name="x", model={"width": 8, "image_size": (4, 6)}, weights=Weights("a.keras", "0" * 64))


def test_override_changes_one_value_and_leaves_the_rest():
    changed = config.override(RECIPE, {"optim.learning_rate": 1, "model.depth": 2, "seed": 5, "data.limit": None})
    assert (changed.optim.learning_rate, changed.model["depth"], changed.model["width"], changed.seed) == (1, 2, 8, 5)
    assert changed.augment == RECIPE.augment and RECIPE.optim.learning_rate == 1e-3


def test_changes_reach_inside_the_options_of_a_model():
    recipe = Recipe(name="x", model={"width": 8, "block": {"gelu": "exact"}})
    changed = config.override(recipe, {"model.block.layer_scale": 1e-5, "model.tokens.registers": 4})
    assert changed.model == {"width": 8, "block": {"gelu": "exact", "layer_scale": 1e-5}, "tokens": {"registers": 4}}
    assert recipe.model["block"] == {"gelu": "exact"}


def test_weights_of_a_file_replace_the_variant_of_a_recipe_and_published_ones_do_not(tmp_path):
    recipe = Recipe(name="x", model={"variant": "S/16", "weights": "augreg-i21k", "image_size": 224})
    for weights in ("cifar10_hybrid", str(tmp_path), "mine.npz", "hf://a/b", "B/16-augreg-i21k"):
        assert config.override(recipe, {"model.weights": weights}).model["variant"] is None
        assert config.override(recipe, {"model.weights": weights, "model.variant": "B"}).model["variant"] == "B"
    for weights in ("augreg-i21k-i1k", None):
        assert config.override(recipe, {"model.weights": weights}).model["variant"] == "S/16"


@pytest.mark.parametrize(
    "changes, error, said",
    [
        ({"optim.epoch": 3}, ValueError, "'optim.epoch'. Did you mean 'optim.epochs'"),
        ({"model.block.layerscale": 3}, ValueError, "layerscale'. Did you mean 'layer_scale'"),
        ({"model.tokens.x": 3}, ValueError, "Known: class_token, distilled, .*whole_blocks.$"),
        ({"model.blok.gelu": 3}, ValueError, "Did you mean 'model.block.gelu'"),
        ({"optim.image_sizes": (16,)}, ValueError, "optim.image_sizes was removed. .* set model.patch_dropout"),
        ({"epochs": 3}, ValueError, "'epochs'. Did you mean 'optim.epochs'"),
        ({"optim": 3}, ValueError, "'optim'"),
        ({"ema": 0.9}, ValueError, "'ema'. Did you mean 'optim.ema'"),
        ({"lr": 0.9}, ValueError, "'lr'. Did you mean 'optim.learning_rate'"),
        ({"optim.batch_size": 9}, ValueError, "'optim.batch_size'. Did you mean 'data.batch_size'"),
        ({"layers": 9}, ValueError, "'layers'. Did you mean 'augment.layers' or 'model.depth'"),
        ({"reached.minutes": 3}, ValueError, "'reached.minutes'"),
        ({"optim.epochs": 3.5}, TypeError, "Optim.epochs must be int. Received: 3.5"),
        ({"optim.epochs": True}, TypeError, "Received: True"),
        ({"optim.epochs": "three"}, TypeError, "Received: 'three'"),
        ({"optim.epochs": 0}, ValueError, "Optim.epochs must be at least 1.*Received: 0"),
        ({"optim.clip_norm": "big"}, TypeError, "Received: 'big'"),
        ({"optim.learning_rate": float("nan")}, ValueError, "Received: nan"),
        ({"augment.flip": 1}, TypeError, "Augment.flip must be bool. Received: 1"),
        ({"augment.erase": 1.0}, ValueError, "below 1"),
        ({"data.bad_images": "ignore"}, TypeError, "Received: 'ignore'"),
        ({"seed": "a"}, TypeError, "Recipe.seed must be int"),
    ],
)
def test_bad_changes_are_named(changes, error, said):
    with pytest.raises(error, match=said):
        config.override(RECIPE, changes)


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

import dataclasses
import hashlib

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.commands.recipes import renamed
from keras_vit.config import Weights, cookbook
from keras_vit.models.captioner import is_captioner, is_translator
from keras_vit.models.inputs import image_shape
from keras_vit.models.kinds import kind_of
from keras_vit.models.outputs import labels_beside, num_classes
from tests.marks import slow
from tests.small import drawn

pytestmark = pytest.mark.backend


def test_every_recipe_loads_and_builds():
    names = keras_vit.list_recipes()
    assert {"digits", "mnist"} <= set(names)
    for name in names:
        recipe = keras_vit.load_recipe(name)
        assert recipe.name == name
        planned = cookbook.model_shapes(recipe)
        if recipe.task.gives == "pairs":
            assert planned.output_shape[1:] == (2, recipe.task.width)
            continue
        if is_captioner(planned) or is_translator(planned):
            assert planned.output_shape == (None, None, recipe.task.vocabulary)
            continue
        if recipe.task.gives in ("depth", "label_masks"):
            assert planned.output_shape[1:] == (*image_shape(planned)[:2], 1)
            continue
        if recipe.task.gives == "velocity":
            assert planned.output_shape[1:] == image_shape(planned)
            assert num_classes(planned) == (0 if recipe.task.text else recipe.model["num_classes"])
            continue
        if kind_of(planned).names == ("pixels",):
            *sides, channels = recipe.task.data_shape(image_shape(planned))
            around = 2 * getattr(recipe.task, "margin", 0)
            assert planned.output_shape[1:] == (*(side - around for side in sides), channels)
            continue
        classes = recipe.task.classes_for({"num_classes": 0, **recipe.model})
        outputs = len(classes) or planned.get_layer("pool").output.shape[-1]  # an embedding without
        assert num_classes(planned) == outputs


@slow
def test_shipped_weights_load_and_are_small():
    shipped = [recipe for recipe in map(keras_vit.load_recipe, keras_vit.list_recipes()) if recipe.weights]
    assert shipped
    for recipe in shipped:
        path = cookbook.weights_path(recipe)
        assert path.stat().st_size < 5e6
        classes = 0 if recipe.task.gives == "pairs" else len(recipe.task.classes) or recipe.model.get("num_classes")
        assert len(labels_beside(path) or ()) == (classes or 0)
        trained, fresh = keras_vit.from_recipe(recipe, pretrained=True), keras_vit.from_recipe(recipe)
        given = drawn(trained)
        outputs, others = (keras.ops.convert_to_numpy(model(given)) for model in (trained, fresh))
        assert outputs.std() > 0.1 and not np.array_equal(outputs, others), recipe.name
        assert recipe.reached is not None


def test_damaged_or_missing_weights_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cookbook, "folder", lambda name: tmp_path)
    (tmp_path / "x.keras").write_bytes(b"whole")
    good = Weights("x.keras", hashlib.sha256(b"whole").hexdigest())
    recipe = cookbook.config.Recipe(name="x", model={}, weights=good)
    monkeypatch.setattr(cookbook, "load_recipe", lambda name: recipe)
    assert cookbook.weights_path(recipe) == tmp_path / "x.keras"
    (tmp_path / "x.keras").write_bytes(b"whole".replace(b"o", b"p"))
    with pytest.raises(ValueError, match="is damaged: its SHA-256 must be"):
        cookbook.weights_path(recipe)
    with pytest.raises(ValueError, match="'y' has no trained weights"):
        cookbook.weights_path(cookbook.config.Recipe(name="y", model={}))


def test_weights_of_another_model_are_refused():
    with pytest.raises(ValueError, match=r"'mnist.keras' do not fit this model. Different: depth."):
        keras_vit.from_recipe("mnist", {"model.depth": 4}, pretrained=True)
    half = keras_vit.from_recipe("mnist", {"model.dtype": "mixed_bfloat16"}, pretrained=True)
    assert half.get_layer("block_0").compute_dtype == "bfloat16"


def test_trained_weights_are_adapted():
    trained = keras_vit.from_recipe("mnist", pretrained=True)
    metadata = trained.get_layer("rescale").metadata
    assert metadata["labels"] == list("0123456789") and metadata["source"] == "mnist.keras"
    assert metadata["evaluation"]["resize"] == "direct" and metadata["evaluation"]["antialias"]
    change = {"model.num_classes": 5, "model.image_size": 56, "model.channels": 3}
    other = keras_vit.from_recipe("mnist", change, pretrained=True)
    assert other.input_shape == (None, 56, 56, 3) and other.output_shape == (None, 5)
    same = [(v, w) for v, w in zip(trained.weights, other.weights) if v.path.startswith(("block_", "norm/"))]
    assert same and all(np.array_equal(v, w) for v, w in same)
    assert "labels" not in other.get_layer("rescale").metadata


def test_changes_reach_a_recipe_too():
    recipe = keras_vit.load_recipe("mnist")
    size = keras_vit.from_recipe(recipe).count_params()
    assert keras_vit.from_recipe(recipe, {"model.depth": 1}).get_layer("block_0") is not None
    assert keras_vit.from_recipe(recipe, {"model.depth": 1}).count_params() < size - 100_000
    changed = keras_vit.load_recipe("mnist", {"model.depth": 1})
    assert recipe.reached is not None and changed.reached is None


def test_a_copy_has_its_own_name_and_no_results(tmp_path):
    for name in keras_vit.list_recipes():
        path = tmp_path / "copy.py"
        path.write_text(renamed(cookbook.recipe_path(name).read_text(), "copy"))
        copied, original = keras_vit.load_recipe(path), keras_vit.load_recipe(name)
        assert (copied.name, copied.weights, copied.reached) == ("copy", None, None)
        assert (copied.model, copied.data, copied.optim) == (original.model, original.data, original.optim)


@pytest.mark.parametrize(
    "text",
    [
        'recipe = load_recipe("mnist")\n',
        'recipe = Recipe(name="a", model={})\n',
        "recipe = Recipe(weights=a, b=1)\n",
        'recipe = Recipe(\n    name="a", model={},\n)\n',
    ],
)
def test_a_recipe_that_is_written_otherwise_is_not_copied(text):
    with pytest.raises(ValueError, match="must call Recipe.*, each argument on its own line"):
        renamed(text, "copy")


def test_a_recipe_of_your_own(tmp_path):
    path = tmp_path / "mine.py"
    source = cookbook.recipe_path("digits").read_text()
    path.write_text(source.replace('name="digits"', 'name="mine"'))
    assert keras_vit.load_recipe(path).name == "mine"
    path.write_text("recipes = 3")
    with pytest.raises(ValueError, match=r"mine.py' must define `recipe`"):
        keras_vit.load_recipe(path)


@pytest.mark.parametrize("name, changes", [
    ("digits", {"model.image_size": 24, "data.antialias": False}),
    ("finetune_pets", {"model.image_size": 24, "data.resize": 30, "model.weights": None}),
    ("finetune_pets", {"model.image_size": (24, 40), "data.resize": 30, "model.weights": None}),
    ("finetune_pets", {"model.image_size": 24, "data.resize": 31, "data.crop_offset": "floor", "model.weights": None}),
    ("finetune_pets", {"model.image_size": (24, 40), "data.resize": "aspect", "model.weights": None}),
])  # fmt: skip
def test_a_model_is_given_pictures_as_its_recipe_s_evaluation_was(name, changes, tmp_path):
    pytest.importorskip("tensorflow")
    from keras_vit.data import pipeline

    small = {"model.depth": 1, "model.width": 8, "model.num_heads": 1, "model.mlp_dim": 8, "model.patch_size": 8}
    recipe = keras_vit.load_recipe(name, {**small, **changes})
    model = keras_vit.from_recipe(recipe)
    picture = np.random.default_rng(0).integers(0, 256, (60, 72, model.input_shape[-1])).astype("uint8")
    keras.utils.save_img(tmp_path / "a.png", picture, scale=False)
    wanted = pipeline.read_files([tmp_path / "a.png"], model.input_shape[1:], recipe.data)
    np.testing.assert_allclose(keras_vit.preprocess(model, tmp_path / "a.png"), wanted, atol=0.01)


def test_same_seed_same_model():
    one, two, other = (keras_vit.from_recipe("digits", {"seed": seed}).get_weights() for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other))


@pytest.mark.parametrize(
    "name, changes, said",
    [
        ("digit", {}, "'digit'. Did you mean 'digits'"),
        ("digits", {"model.image_size": 9}, "9 x 9"),
        ("digits", {"data.resize": 7}, "data.resize must be at least 8"),
    ],
)
def test_bad_names_are_named(name, changes, said):
    with pytest.raises(ValueError, match=said):
        keras_vit.from_recipe(name, changes)


def test_a_model_bears_the_name_of_its_recipe():
    from tests.small import small

    assert keras_vit.from_recipe(small()).name == "digits"
    assert keras_vit.from_recipe(small(), {"name": "digits / mine, 2nd"}).name == "digits_mine_2nd"
    assert keras_vit.from_recipe(small(), {"model.name": "own"}).name == "own"


@pytest.mark.parametrize("name", ["no/such.py", "such.py", "no/such", "such/"])
def test_a_path_to_nothing_is_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"^There is no file '{name}'.$"):
        keras_vit.load_recipe(name)


def test_a_path_to_something_else_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "digits").mkdir()
    assert keras_vit.load_recipe("digits").name == "digits"  # a folder of that name hides no recipe
    for name in ("a.txt", ".", "digits/"):
        with pytest.raises(ValueError, match=f"^A recipe must be a name or a Python file.*Received: '{name}'$"):
            keras_vit.load_recipe(name)


@pytest.mark.parametrize(
    "text, said",
    [
        ("import os\n\nrecipe = undefined\n", r", line 3: NameError: name 'undefined' is not defined$"),
        ("recipe = (\n", r": SyntaxError: .*line 1\)$"),
        ("from keras_vit import Optim\n\nOptim(epochs=0)\n", ", line 3: ValueError: Optim.epochs .* Received: 0$"),
        (
            "from keras_vit import Optim\n\nOptim(image_sizes=(16,))\n",
            ", line 3: TypeError: .*'image_sizes'. optim.image_sizes was removed. .* set model.patch_dropout.$",
        ),
        ("import no_such_module\n", ", line 1: ModuleNotFoundError: No module named 'no_such_module'$"),
        ("import json\njson.loads('')\n", ", line 2: JSONDecodeError: "),
    ],
)
def test_a_recipe_that_cannot_be_run_says_where(text, said, tmp_path):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=f"mine.py'{said}"):
        keras_vit.load_recipe(tmp_path / "mine.py")


def test_a_recipe_has_three_channels_unless_it_says_otherwise():
    model = keras_vit.from_recipe("mnist", {"model.weights": "mnist", "model.channels": 3})
    recipe = keras_vit.load_recipe("mnist", {"model.weights": "mnist"})
    arguments = {k: v for k, v in recipe.model.items() if k != "channels"}
    assert keras_vit.from_recipe(dataclasses.replace(recipe, model=arguments)).input_shape == model.input_shape

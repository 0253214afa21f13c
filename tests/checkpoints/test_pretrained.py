import ast
import inspect
import re

import numpy as np
import pytest

import keras_vit
from keras_vit import config, from_pretrained, list_checkpoints, save_checkpoint, vit
from keras_vit.checkpoints import pretrained
from keras_vit.checkpoints.published import Published
from keras_vit.config import consistency
from keras_vit.models import variants
from keras_vit.models import vit as plain
from tests.checkpoints.helpers import assert_same_weights, weights

pytestmark = pytest.mark.backend


@pytest.fixture
def published(monkeypatch, tmp_path):
    """A table of two rows whose weights lie on this machine."""
    model = vit("mu/4", image_size=24, num_classes=6)
    for variable in model.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    path = save_checkpoint(model, tmp_path / "mu.npz", format="google")
    rule = ("crop", 0.9, "bicubic", True)
    row = Published("mu/4-mine", str(path), "", 24, 6, 0.5, 0.25, *rule, 70.0, "here", "apache-2.0")
    rows = {"mu/4-mine": row, "mu/4-empty": row._replace(name="mu/4-empty", num_classes=0)}

    def find(name):
        if name not in rows:
            raise ValueError(f"unknown: {name!r}")
        return rows[name]

    monkeypatch.setattr(pretrained, "published", find)
    monkeypatch.setattr(pretrained, "list_checkpoints", lambda: list(rows.values()))
    return model


def test_by_name(published):
    model = from_pretrained("mu/4-mine")
    assert_same_weights(weights(model), weights(published))
    first = model.get_layer("rescale")
    assert first.std == 0.25 and first.metadata["name"] == "mu/4-mine"
    assert first.metadata["evaluation"]["crop_pct"] == 0.9
    mine = from_pretrained("mu/4-mine", metadata={"evaluation": {"resize": "direct"}})
    assert mine.get_layer("rescale").metadata["evaluation"]["resize"] == "direct"
    assert from_pretrained("mu/4-mine", image_size=32, channels=1, num_classes=3).output_shape == (None, 3)
    assert from_pretrained("mu/4-mine", channels=3).get_layer("rescale").std == 0.25
    assert from_pretrained("mu/4-mine", std=0.5).get_layer("rescale").std == 0.5
    assert from_pretrained("mu/4-empty").output_shape == (None, 32)
    assert not weights(from_pretrained("mu/4-empty", num_classes=6))["head/kernel"].any()
    with pytest.raises(ValueError, match="unknown: 'mu/4-other'"):
        from_pretrained("mu/4-other")


def test_as_an_argument(published, tmp_path):
    assert_same_weights(weights(vit("mu/4", weights="mine")), weights(published))
    assert vit("mu/4", weights="mine").input_shape == (None, 24, 24, 3)
    assert vit("mu/4", weights="mine", image_size=32, num_classes=2, stochastic_depth=0.1).input_shape[1] == 32
    path = tmp_path / "mu.npz"
    assert_same_weights(weights(vit("mu/4", weights=path)), weights(published))
    assert vit("mu/4", weights="mine", metadata={"mine": 1}).get_layer("rescale").metadata["mine"] == 1
    assert vit("mu", patch_size=4, weights=path).get_layer("patches").patch_size == (4, 4)
    deeper = vit("mu/4", image_size=24, num_classes=6, depth=2)
    save_checkpoint(deeper, tmp_path / "two.npz", format="google")
    assert vit("mu/4", depth=2, weights=tmp_path / "two.npz").count_params() == deeper.count_params()
    with pytest.raises(ValueError, match=r"must belong to mu/8. Received: .*mu.npz' with patch_size \(4, 4\)"):
        vit("mu/8", weights=path)
    with pytest.raises(ValueError, match=r"must belong to R\+Ti/16.*another stem"):
        vit("R+Ti/16", weights=path)
    with pytest.raises(FileNotFoundError, match="none.npz"):
        vit("mu/4", weights="none.npz")
    with pytest.raises(ValueError, match="belong to Ti/16.* with width 32, depth 1, mlp_dim 128, num_heads 2"):
        vit("Ti/16", weights=path)
    with pytest.raises(ValueError, match="published for mu/4. Received: weights='mines'. Did you mean 'mine'"):
        vit("mu/4", weights="mines")


def test_the_docstring_explains_every_argument_with_its_default():
    entries = inspect.getdoc(vit).partition("Keyword arguments:\n")[2].partition("\n\n")[0]
    documented = re.findall(r"^    (\w+): (.*?)(?=^    \w|\Z)", entries, re.MULTILINE | re.DOTALL)
    defaults = {name: re.search(r"Defaults\s+to\s+`(.+)`\.\s*$", text)[1] for name, text in documented}
    expected = {name: default for name, default in plain.DEFAULTS.items() if name != "variant"}
    assert list(defaults) == list(expected)  # in the same order
    assert {name: ast.literal_eval(default) for name, default in defaults.items()} == expected
    assert set(pretrained.DEFAULTS) == set(plain.DEFAULTS) | set(inspect.signature(vit).parameters) - {"arguments"}


def test_the_table_is_public():
    row = next(row for row in list_checkpoints() if row.name == "B/16-augreg-i21k-i1k-384")
    assert row.source.startswith("https://storage.googleapis.com/vit_models/augreg/B_16-i21k-300ep")
    assert keras_vit.list_checkpoints is list_checkpoints


def test_a_recipe_can_start_from_weights(published, tmp_path):
    recipe = keras_vit.load_recipe("digits", {"name": "fine"})
    change = {"variant": "mu/4", "weights": str(tmp_path / "mu.npz"), "image_size": 8, "channels": 1, "num_classes": 10}
    model = keras_vit.from_recipe(type(recipe)(**{**vars(recipe), "model": change}))
    assert model.input_shape == (None, 8, 8, 1)
    np.testing.assert_array_equal(weights(model)["norm/gamma"], weights(published)["norm/gamma"])
    with pytest.raises(ValueError, match="must set image_size too"):
        keras_vit.from_recipe(type(recipe)(**{**vars(recipe), "model": {"weights": "x"}}))


def test_shipped_weights_by_name():
    pytest.importorskip("tensorflow")
    model = from_pretrained("cifar10_hybrid", num_classes=3, image_size=48)
    trained = keras_vit.from_recipe("cifar10_hybrid", pretrained=True)
    assert model.output_shape == (None, 3)
    np.testing.assert_array_equal(weights(model)["stem/conv0/kernel"], weights(trained)["stem/conv0/kernel"])
    assert from_pretrained("mnist").get_layer("rescale").metadata["labels"] == list("0123456789")


def test_a_recipe_starts_from_another_s_weights(tmp_path):
    change = {"model.weights": "cifar10_hybrid", "model.num_classes": 3}
    model = keras_vit.from_recipe("cifar10_hybrid", change)
    trained = keras_vit.from_recipe("cifar10_hybrid", pretrained=True)
    np.testing.assert_array_equal(weights(model)["block_1/norm1/gamma"], weights(trained)["block_1/norm1/gamma"])
    trained.save(tmp_path / "model.keras")
    (tmp_path / "recipe.json").write_text("{}")
    again = keras_vit.from_recipe("cifar10_hybrid", {**change, "model.weights": str(tmp_path)})
    np.testing.assert_array_equal(weights(again)["stem/norm0/moving_mean"], weights(trained)["stem/norm0/moving_mean"])


def test_a_published_model_may_have_a_name(published):
    assert vit("mu/4", weights="mine", name="own").name == "own"
    about = from_pretrained("mu/4-mine", metadata={"mine": 1}).get_layer("rescale").metadata
    assert about["name"] == "mu/4-mine" and about["mine"] == 1


def test_a_recipe_from_published_weights_bears_its_own_name(published):
    pytest.importorskip("tensorflow")
    recipe = keras_vit.load_recipe("digits", {"name": "fine"})
    change = {"variant": "mu/4", "weights": "mine", "image_size": 8, "channels": 1, "num_classes": 10}
    assert keras_vit.from_recipe(type(recipe)(**{**vars(recipe), "model": change})).name == "fine"
    del change["channels"]
    model = keras_vit.from_recipe(type(recipe)(**{**vars(recipe), "model": change}))
    assert model.get_layer("rescale").std == 0.25  # the published one


def test_patches_of_a_variant_count_pixels_before_a_stem_too(tmp_path):
    arguments = dict(variant="mu/8", stem=((4, 2),), image_size=16, num_classes=2)
    keras_vit.vit(**arguments).save(tmp_path / "model.keras")
    assert keras_vit.vit(**arguments, weights=tmp_path / "model.keras").get_layer("patches").patch_size == (4, 4)
    with pytest.raises(ValueError, match="must belong to mu/4"):
        keras_vit.vit("mu/4", stem=((4, 2),), image_size=16, weights=tmp_path / "model.keras")


def test_the_names_of_other_libraries_are_translated():
    for given, meant in (
        ("image_sise", "Did you mean 'image_size'"),
        ("classes", "keras_vit has num_classes."),
        ("num_class", "keras_vit has num_classes."),
        ("img_size", "keras_vit has image_size."),
        ("input_size", "keras_vit has image_size."),
        ("input_shape", r"keras_vit has image_size=\(height, width\) and channels."),
        ("include_top", "keras_vit has num_classes=0, for a model without a head."),
        ("classifier_activation", r"keras_vit has keras.Sequential\(\[model, keras.layers.Softmax\(\)\]\)."),
        ("drop_path_rate", "keras_vit has stochastic_depth."),
    ):
        with pytest.raises(TypeError, match=f"`vit` has no argument '{given}'. {meant}"):
            vit("Ti/8", image_size=8, **{given: 3})
        with pytest.raises(ValueError, match=f"`vit` has no argument '{given}'. {meant}"):
            from_pretrained("mnist", **{given: 3})
        with pytest.raises(ValueError, match=f"`vit` has no argument '{given}'. {meant}"):
            consistency.check_recipe(config.Recipe(name="r", model={given: 3}, data=config.Data(source="")))
    with pytest.raises(ValueError, match="weights='imagenet'. .*keras_vit.list_checkpoints"):
        vit("B/16", weights="imagenet")
    assert all(
        ours.split("=")[0].split(",")[0] in pretrained.DEFAULTS or "keras." in ours for ours in variants.ARGUMENTS
    )
    assert not set(variants.MEANT) & set(pretrained.DEFAULTS)

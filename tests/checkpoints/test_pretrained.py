import numpy as np
import pytest

import keras_vit
from keras_vit import from_pretrained, list_checkpoints, save_checkpoint, vit
from keras_vit.checkpoints import pretrained
from keras_vit.checkpoints.pretrained import from_arguments
from keras_vit.checkpoints.published import Published
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
    assert_same_weights(weights(from_arguments("mu/4", weights="mine")), weights(published))
    assert from_arguments("mu/4", weights="mine").input_shape == (None, 24, 24, 3)
    assert (
        from_arguments("mu/4", weights="mine", image_size=32, num_classes=2, stochastic_depth=0.1).input_shape[1] == 32
    )
    path = tmp_path / "mu.npz"
    assert_same_weights(weights(from_arguments("mu/4", weights=path)), weights(published))
    assert from_arguments("mu/4", weights="mine", metadata={"mine": 1}).get_layer("rescale").metadata["mine"] == 1
    assert from_arguments("mu", patch_size=4, weights=path).get_layer("patches").patch_size == (4, 4)
    deeper = vit("mu/4", image_size=24, num_classes=6, depth=2)
    save_checkpoint(deeper, tmp_path / "two.npz", format="google")
    assert from_arguments("mu/4", depth=2, weights=tmp_path / "two.npz").count_params() == deeper.count_params()
    with pytest.raises(ValueError, match=r"must belong to mu/8. Received: .*mu.npz' with patch_size \(4, 4\)"):
        from_arguments("mu/8", weights=path)
    with pytest.raises(ValueError, match=r"must belong to R\+Ti/16.*another stem"):
        from_arguments("R+Ti/16", weights=path)
    with pytest.raises(FileNotFoundError, match="none.npz"):
        from_arguments("mu/4", weights="none.npz")
    with pytest.raises(ValueError, match="belong to Ti/16.* with width 32, depth 1, mlp_dim 128, num_heads 2"):
        from_arguments("Ti/16", weights=path)
    with pytest.raises(ValueError, match="published for mu/4. Received: weights='mines'. Did you mean 'mine'"):
        from_arguments("mu/4", weights="mines")
    with pytest.raises(ValueError, match="weights='imagenet'. .*keras_vit.list_checkpoints"):
        from_arguments("B/16", weights="imagenet")


def test_a_variant_is_read_off_the_weights_where_they_say_it(published, tmp_path):
    for given in ({}, {"variant": None}):
        for named in ("mine", "mu/4-mine", str(tmp_path / "mu.npz")):
            assert_same_weights(weights(from_arguments(**given, weights=named)), weights(published))
        with pytest.raises(
            ValueError, match="a path, or published. Received: weights='mu/4-mone'. Did you mean 'mu/4-m"
        ):
            from_arguments(**given, weights="mu/4-mone")
    with pytest.raises(
        ValueError, match="must be that of the weights, 'mu/4'. Received: variant='Ti/16', weights='mu/4-m"
    ):
        from_arguments("Ti/16", weights="mu/4-mine")


def test_weights_of_several_variants_need_one():
    said = "`variant` must say whose weights .*published for Ti/16, S/32, .* Received: weights='augreg-i21k' without"
    with pytest.raises(ValueError, match=said):
        from_arguments(None, weights="augreg-i21k")
    with pytest.raises(ValueError, match=said):
        keras_vit.from_recipe("finetune_folder", {"model.variant": None})
    with pytest.raises(ValueError, match="or published. Received: weights='x'. Such as 'Ti/16-.*'. keras_vit.list_"):
        from_arguments(weights="x")


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
    assert from_arguments("mu/4", weights="mine", name="own").name == "own"
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
    assert from_arguments(**arguments, weights=tmp_path / "model.keras").get_layer("patches").patch_size == (4, 4)
    with pytest.raises(ValueError, match="must belong to mu/4"):
        from_arguments("mu/4", stem=((4, 2),), image_size=16, weights=tmp_path / "model.keras")


def test_a_name_is_that_of_the_model():
    assert from_pretrained("mnist", name="mine").name == "mine"

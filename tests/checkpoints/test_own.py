"""Own models as a source of weights, as any published checkpoint is."""

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import from_checkpoint, load_weights, vit
from tests.checkpoints.helpers import assert_same_weights, filled, weights

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 32, 48, 3)).astype("uint8")


def network():
    """Returns a plain Keras network that makes a feature map at half the size."""
    inputs = keras.Input((32, 48, 3))
    x = keras.layers.Conv2D(8, 3, strides=2, padding="same", name="first")(inputs)
    return keras.Model(inputs, keras.layers.BatchNormalization(name="second")(x))


KINDS = {
    "plain": {},
    "class token, registers": dict(registers=2, class_position=False, gelu="quick"),
    "distilled": dict(distilled=True),
    "average": dict(pooling="gap", final_norm="after", layer_scale=0.1),
    "attention pooling": dict(pooling="map"),
    "sine and cosine": dict(position="sincos2d", pooling="gap"),
    "gated": dict(swiglu=True, qk_norm=True, qkv_bias=False, pre_norm=True, representation_size=5),
    "convolutions": dict(stem=((6, 1), (8, 2)), patch_size=4),
    "ResNet": dict(stem=keras_vit.ResNetStem((1,), width=32), patch_size=1),
    "network": dict(stem=network, patch_size=4),
}


def saved(kind, tmp_path, **options):
    options = {**KINDS[kind], **options}
    if callable(options.get("stem")) and not isinstance(options["stem"], keras.Layer):
        options["stem"] = options["stem"]()
    elif isinstance(options.get("stem"), keras.Layer):
        options["stem"] = type(options["stem"]).from_config(options["stem"].get_config())
    model = filled(**options)
    model.save(tmp_path / "mine.keras")
    return model, tmp_path / "mine.keras"


def answers(model, x=PIXELS):
    return keras.ops.convert_to_numpy(model(x, training=False))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_comes_back(kind, tmp_path):
    model, path = saved(kind, tmp_path)
    again = from_checkpoint(path)
    np.testing.assert_array_equal(answers(again), answers(model))
    assert_same_weights(weights(again), weights(model))


@pytest.mark.parametrize("kind", KINDS)
def test_another_size_head_and_number_of_channels(kind, tmp_path):
    model, path = saved(kind, tmp_path)
    other = from_checkpoint(path, image_size=(48, 64), channels=1, num_classes=3)
    assert other.input_shape == (None, 48, 64, 1) and other.output_shape == (None, 3)
    same = [p for p in weights(model) if p.startswith("block_")]
    assert same and all((weights(other)[p] == weights(model)[p]).all() for p in same)
    grey = np.random.default_rng(1).integers(0, 256, (1, 32, 48, 1)).astype("uint8")
    narrow = from_checkpoint(path, channels=1)
    if kind != "ResNet":  # whose kernels are standardised
        np.testing.assert_allclose(answers(narrow, grey), answers(model, np.repeat(grey, 3, -1)), atol=1e-4)


def test_patches_of_another_size(tmp_path):
    _, path = saved("plain", tmp_path)
    assert from_checkpoint(path, patch_size=16).get_layer("patches").patch_size == (16, 16)


def test_a_grey_model_becomes_one_of_colours(tmp_path):
    model, path = saved("convolutions", tmp_path, channels=1)
    grey = np.random.default_rng(1).integers(0, 256, (1, 32, 48, 1)).astype("uint8")
    colour = answers(from_checkpoint(path, channels=3), np.repeat(grey, 3, -1))
    np.testing.assert_allclose(colour, answers(model, grey), atol=1e-4)


def test_into_a_model_that_is_there(tmp_path):
    model, path = saved("convolutions", tmp_path)
    mine = filled(**KINDS["convolutions"], num_classes=4)
    head = weights(mine)["head/kernel"]
    load_weights(mine, path, head="new")
    assert (weights(mine)["stem/conv0/kernel"] == weights(model)["stem/conv0/kernel"]).all()
    assert (weights(mine)["head/kernel"] == head).all()
    with pytest.raises(ValueError, match=r"mine.keras' does not fit the model; missing in the file: block_2"):
        load_weights(filled(**KINDS["convolutions"], depth=3), path)


def test_as_weights_of_a_variant_and_of_a_stem(tmp_path):
    model, path = saved("convolutions", tmp_path)
    stem = KINDS["convolutions"]["stem"]
    sizes = dict(width=24, depth=2, num_heads=3, mlp_dim=48, patch_size=4, image_size=(32, 48), gelu="exact")
    mine = keras_vit.vit(None, weights=path, stem=stem, num_classes=2, **sizes)
    assert (weights(mine)["stem/conv1/kernel"] == weights(model)["stem/conv1/kernel"]).all()
    small = vit("mu/4", image_size=24, num_classes=6)
    small.save(tmp_path / "small.keras")
    assert_same_weights(weights(keras_vit.vit("mu/4", weights=tmp_path / "small.keras")), weights(small))
    with pytest.raises(ValueError, match="not of a mu/8"):
        keras_vit.vit("mu/8", weights=tmp_path / "small.keras")


def test_a_run_s_directory_is_its_model(tmp_path):
    model, _ = saved("plain", tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.json").write_text("{}")
    model.save(run / "best.keras")
    with pytest.raises(ValueError, match=r"run' has not ended: it has no model.keras yet. Name its best.keras"):
        from_checkpoint(run)
    model.save(run / "model.keras")
    (run / "state-0000000001-0123456789abcdef.safetensors").write_text("")
    assert_same_weights(weights(from_checkpoint(run)), weights(model))


def test_what_travels_with_a_model(tmp_path):
    rule = {"resize": "crop", "crop_pct": 0.5}
    labels = list("abcdefg")
    _, path = saved("plain", tmp_path, metadata={"evaluation": rule, "labels": labels})
    metadata = from_checkpoint(path).get_layer("rescale").metadata
    assert metadata["evaluation"] == rule and metadata["labels"] == labels and metadata["format"] == "keras"
    assert "labels" not in from_checkpoint(path, num_classes=3).get_layer("rescale").metadata
    assert "labels" not in from_checkpoint(path, head="new").get_layer("rescale").metadata


def test_what_comes_out_can_be_frozen(tmp_path):
    _, path = saved("convolutions", tmp_path)
    model = keras_vit.freeze(from_checkpoint(path, num_classes=3), "all")
    assert {v.path for v in model.trainable_variables} == {"head/kernel", "head/bias"}


def test_other_keras_models_are_refused(tmp_path):
    inputs = keras.Input((8, 8, 3))
    keras.Model(inputs, keras.layers.Flatten()(inputs), name="flat").save(tmp_path / "flat.keras")
    with pytest.raises(ValueError, match=r"flat.keras' cannot be read: The model must contain exactly one"):
        from_checkpoint(tmp_path / "flat.keras")
    with pytest.raises(ValueError, match=r"written by model.save"):
        keras_vit.save_checkpoint(filled(), tmp_path / "new.keras", format="timm")


def test_a_model_that_holds_a_vit_is_a_source_of_it(tmp_path):
    inside = filled()
    outer = keras.Sequential([inside, keras.layers.Dense(4)])
    outer(PIXELS)
    outer.save(tmp_path / "outer.keras")
    with pytest.warns(UserWarning, match=f"the ViT '{inside.name}' alone is taken. Left out: dense"):
        assert_same_weights(weights(from_checkpoint(tmp_path / "outer.keras")), weights(inside))


def test_files_of_the_first_weeks_are_read(tmp_path):
    """Keras's own layer rescaled the pixels then."""
    model = filled()
    inputs = keras.Input((32, 48, 3))
    x = keras.layers.Rescaling(1 / 127.5, -1, name="rescale")(inputs)
    for layer in model.layers[2:]:
        x = layer(x)
    keras.Model(inputs, x).save(tmp_path / "old.keras")
    again = from_checkpoint(tmp_path / "old.keras")
    np.testing.assert_allclose(answers(again), answers(model), atol=1e-4)
    assert again.get_layer("rescale").mean == pytest.approx(0.5)


def test_what_was_there_before_other_weights_is_gone(tmp_path):
    _, path = saved("plain", tmp_path)
    mine = filled(metadata={"labels": list("abcdefg"), "name": "old", "mine": 1})
    metadata = load_weights(mine, path).get_layer("rescale").metadata
    assert "labels" not in metadata and "name" not in metadata and metadata["mine"] == 1
    rule = {"resize": "direct", "full_size": [34, 50]}
    _, path = saved("plain", tmp_path, metadata={"evaluation": rule, "licence": "apache-2.0"})
    assert from_checkpoint(path).get_layer("rescale").metadata["licence"] == "apache-2.0"
    other = load_weights(filled(image_size=(48, 64)), path).get_layer("rescale").metadata
    assert "full_size" not in other["evaluation"] and other["licence"] == "apache-2.0"


def test_another_number_of_heads_is_refused(tmp_path):
    _, path = saved("plain", tmp_path)
    with pytest.raises(ValueError, match="has 3 heads, and the model 4"):
        load_weights(filled(num_heads=4), path)

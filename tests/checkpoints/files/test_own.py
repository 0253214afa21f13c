"""Models of this package as checkpoints, like published ones."""

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import from_checkpoint, load_weights, vit
from keras_vit.checkpoints.pretrained import from_arguments
from keras_vit.utils.resampling import resize_distances
from tests.checkpoints.helpers import assert_same_weights, filled, weights
from tests.marks import few

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 32, 48, 3)).astype("uint8")
GRAY = np.random.default_rng(1).integers(0, 256, (1, 32, 48, 1)).astype("uint8")
RULE = {"resize": "crop", "crop_pct": 0.5, "full_size": [34, 50]}
LABELS = list("abcdefg")


def network():
    """Returns a plain Keras network that makes a feature map at half the size."""
    inputs = keras.Input((32, 48, 3))
    x = keras.layers.Conv2D(8, 3, strides=2, padding="same", name="first")(inputs)
    return keras.Model(inputs, keras.layers.BatchNormalization(name="second")(x))


KINDS = {
    "plain": {},
    "class token, registers": dict(tokens={"registers": 2, "class_position": False}, block={"gelu": "quick"}),
    "distilled": dict(tokens={"distilled": True}),
    "average": dict(pooling="gap", final_norm="after", block={"layer_scale": 0.1}),
    "attention pooling": dict(pooling="map"),
    "sine and cosine": dict(position="sincos2d", pooling="gap"),
    "gated": dict(
        block={"swiglu": True, "qk_norm": True, "qkv_bias": False}, tokens={"pre_norm": True}, representation_size=5
    ),
    "EVA-02": dict(rotary="eva02", block={"key_bias": False, "sub_norm": "both", "swiglu": True}),
    "RoPE-ViT": dict(rotary="rope-vit-mixed", position=None),
    "AIMv2": dict(
        norm={"rms_norm": True},
        tokens={"patch_norm": True},
        block={"proj_bias": False, "qkv_bias": False, "swiglu": True},
        pooling="gap",
    ),
    "norms of branches": dict(block={"norm_order": "res-post", "sub_norm": "mlp"}),
    "ViT-22B": dict(block={"parallel": True, "qk_norm": True, "qkv_bias": False}, norm={"rms_norm": True}),
    "BEiT": dict(position="relative", block={"layer_scale": 0.1}),
    "YOLOS": dict(tokens={"block_positions": True, "registers": 3}, depth=2),
    "convolutions": dict(stem=((6, 1), (8, 2)), patch_size=4),
    "ResNet": dict(stem=keras_vit.ResNetStem((1,), width=32), patch_size=1),
    "network": dict(stem=network, patch_size=4),
}


def saved(kind, folder, **options):
    """Returns a model of a kind with random weights, and the path of its file."""
    options = {"depth": 1, **KINDS[kind], **options}
    if callable(options.get("stem")) and not isinstance(options["stem"], keras.Layer):
        options["stem"] = options["stem"]()
    elif isinstance(options.get("stem"), keras.Layer):
        options["stem"] = type(options["stem"]).from_config(options["stem"].get_config())
    model = filled(**options)
    model.save(folder / "mine.keras")
    return model, folder / "mine.keras"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A plain model with metadata, and the path of its file. No test changes them."""
    metadata = {"evaluation": RULE, "labels": LABELS, "license": "apache-2.0"}
    return saved("plain", tmp_path_factory.mktemp("plain"), metadata=metadata)


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory):
    """A model with a convolutional stem, and the path of its file. No test changes them."""
    return saved("convolutions", tmp_path_factory.mktemp("convolutions"))


@pytest.mark.parametrize(
    "theirs, ours, message",
    [
        (dict(stem=((6, 1), (8, 2))), dict(stem=((6, 2), (8, 1))), r"strides \(1, 2\), and the model \(2, 1\)"),
        (dict(stem=((6, "pool"),)), dict(stem=((6, 2),)), r"strides \('pool',\), and the model \(2,\)"),
        (dict(position="sincos2d"), dict(position="sincos1d"), "position 'sincos2d', and the model 'sincos1d'"),
        (dict(position=None), dict(position="sincos2d"), "position None, and the model 'sincos2d'"),
    ],
)
def test_what_has_no_weights_must_be_equal_too(theirs, ours, message, tmp_path):
    more = dict(pooling="gap", depth=1)
    filled(**theirs, **more).save(tmp_path / "theirs.keras")
    with pytest.raises(ValueError, match=message):
        load_weights(filled(**ours, **more), tmp_path / "theirs.keras")


def test_a_whitening_stem_is_loaded_with_fewer_channels(tmp_path):
    model = filled(stem=((32, "whiten"), (8, 2)), depth=1)
    model.save(tmp_path / "mine.keras")
    load_weights(filled(stem=((32, 1), (8, 2)), depth=1), tmp_path / "mine.keras")
    gray = from_checkpoint(tmp_path / "mine.keras", channels=1)
    kernel, first = (m.get_layer("stem").convs[0].kernel for m in (gray, model))
    np.testing.assert_allclose(kernel, keras.ops.sum(first, axis=2, keepdims=True), rtol=1e-5, atol=1e-6)


def outputs(model, x=PIXELS):
    return keras.ops.convert_to_numpy(model(x, training=False))


@few(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_comes_back_and_adapts(kind, tmp_path):
    model, path = saved(kind, tmp_path)
    again = from_checkpoint(path)
    np.testing.assert_array_equal(outputs(again), outputs(model))
    assert_same_weights(weights(again), weights(model))

    other = from_checkpoint(path, image_size=(48, 64), channels=1, num_classes=3)
    assert other.input_shape == (None, 48, 64, 1) and other.output_shape == (None, 3)
    blocks = [p for p in weights(model) if p.startswith("block_")]
    of_grid = "distances/table"  # at another size these have another shape
    assert blocks and all((weights(other)[p] == weights(model)[p]).all() for p in blocks if of_grid not in p)

    if kind != "ResNet":  # its kernels are standardized
        narrow = from_checkpoint(path, channels=1)
        np.testing.assert_allclose(outputs(narrow, GRAY), outputs(model, np.repeat(GRAY, 3, -1)), atol=1e-4)


def test_patches_of_another_size(plain):
    _, path = plain
    assert from_checkpoint(path, patch_size=16).get_layer("patches").patch_size == (16, 16)


def test_a_gray_model_becomes_one_of_colors(tmp_path):
    model, path = saved("convolutions", tmp_path, channels=1)
    color = outputs(from_checkpoint(path, channels=3), np.repeat(GRAY, 3, -1))
    np.testing.assert_allclose(color, outputs(model, GRAY), atol=1e-4)


def test_into_an_existing_model(convolutions):
    model, path = convolutions
    mine = filled(**KINDS["convolutions"], num_classes=4, depth=1)
    head = weights(mine)["head/kernel"]
    load_weights(mine, path, head="new")
    assert (weights(mine)["stem/conv0/kernel"] == weights(model)["stem/conv0/kernel"]).all()
    assert (weights(mine)["head/kernel"] == head).all()
    with pytest.raises(ValueError, match=r"mine.keras' does not match the model; missing in the file: block_1"):
        load_weights(filled(**KINDS["convolutions"], depth=2), path)


def test_as_weights_of_a_variant_and_of_a_stem(convolutions, tmp_path):
    model, path = convolutions
    stem = KINDS["convolutions"]["stem"]
    sizes = dict(width=24, depth=1, num_heads=3, mlp_dim=48, patch_size=4, image_size=(32, 48), block={"gelu": "exact"})
    mine = from_arguments(None, weights=path, stem=stem, num_classes=2, **sizes)
    assert (weights(mine)["stem/conv1/kernel"] == weights(model)["stem/conv1/kernel"]).all()
    small = vit("mu/4", image_size=24, num_classes=6)
    small.save(tmp_path / "small.keras")
    assert_same_weights(weights(from_arguments("mu/4", weights=tmp_path / "small.keras")), weights(small))
    with pytest.raises(ValueError, match="must belong to mu/8"):
        from_arguments("mu/8", weights=tmp_path / "small.keras")


def test_a_run_s_directory_is_its_model(plain, tmp_path):
    model, _ = plain
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.json").write_text("{}")
    model.save(run / "best.keras")
    with pytest.raises(ValueError, match=r"run' has not ended: it has no model.keras yet. Pass its best.keras"):
        from_checkpoint(run)
    model.save(run / "model.keras")
    (run / "state-0000000001-0123456789abcdef.safetensors").write_text("")
    assert_same_weights(weights(from_checkpoint(run)), weights(model))


def test_what_travels_with_a_model(plain):
    metadata = from_checkpoint(plain[1]).get_layer("rescale").metadata
    assert metadata["evaluation"] == RULE and metadata["labels"] == LABELS and metadata["format"] == "keras"
    assert metadata["license"] == "apache-2.0"
    assert "labels" not in from_checkpoint(plain[1], num_classes=3).get_layer("rescale").metadata
    assert "labels" not in from_checkpoint(plain[1], head="new").get_layer("rescale").metadata


def test_what_comes_out_can_be_frozen(convolutions):
    model = keras_vit.freeze(from_checkpoint(convolutions[1], num_classes=3), "all")
    assert {v.path for v in model.trainable_variables} == {"head/kernel", "head/bias"}


def test_other_keras_models_are_refused(tmp_path):
    inputs = keras.Input((8, 8, 3))
    keras.Model(inputs, keras.layers.Flatten()(inputs), name="flat").save(tmp_path / "flat.keras")
    with pytest.raises(ValueError, match=r"flat.keras' cannot be read: The model must contain exactly one"):
        from_checkpoint(tmp_path / "flat.keras")
    with pytest.raises(ValueError, match=r"Use model.save\(path\)"):
        keras_vit.save_checkpoint(filled(), tmp_path / "new.keras", format="timm")


def test_a_model_that_holds_a_vit_is_a_source_of_it(tmp_path):
    inside = filled()
    outer = keras.Sequential([inside, keras.layers.Dense(4)])
    outer(PIXELS)
    outer.save(tmp_path / "outer.keras")
    with pytest.warns(UserWarning, match=f"Only the ViT '{inside.name}' of .* is loaded. Left out: dense"):
        assert_same_weights(weights(from_checkpoint(tmp_path / "outer.keras")), weights(inside))


def test_the_oldest_files_are_read(tmp_path):
    """Keras's own layer rescaled the pixels in them."""
    model = filled()
    inputs = keras.Input((32, 48, 3))
    x = keras.layers.Rescaling(1 / 127.5, -1, name="rescale")(inputs)
    for layer in model.layers[2:]:
        x = layer(x)
    keras.Model(inputs, x).save(tmp_path / "old.keras")
    again = from_checkpoint(tmp_path / "old.keras")
    np.testing.assert_allclose(outputs(again), outputs(model), atol=1e-4)
    assert again.get_layer("rescale").mean == pytest.approx(0.5)


def test_metadata_of_former_weights_is_replaced(plain, tmp_path):
    _, unlabeled = saved("plain", tmp_path)
    mine = filled(depth=1, metadata={"labels": LABELS, "name": "old", "mine": 1})
    metadata = load_weights(mine, unlabeled).get_layer("rescale").metadata
    assert "labels" not in metadata and "name" not in metadata and metadata["mine"] == 1
    metadata = load_weights(filled(image_size=(48, 64), depth=1), plain[1]).get_layer("rescale").metadata
    assert "full_size" not in metadata["evaluation"] and metadata["license"] == "apache-2.0"


def test_relative_positions_of_another_grid(tmp_path):
    model, path = saved("BEiT", tmp_path, num_classes=3)
    table = "block_0/attention/distances/table"
    larger = from_checkpoint(path, image_size=(48, 64))
    expected = resize_distances(weights(model)[table], (4, 6), (6, 8))
    np.testing.assert_array_equal(weights(larger)[table], expected)
    other = filled(position="relative", block={"layer_scale": 0.1}, image_size=(48, 64), depth=1, num_classes=3)
    np.testing.assert_array_equal(weights(load_weights(other, path))[table], expected)


def test_what_no_tensor_shows_is_compared(plain):
    with pytest.raises(ValueError, match="has block.norm_order 'pre', and the model 'res-post'"):
        load_weights(filled(depth=1, block={"norm_order": "res-post"}), plain[1])


def test_another_number_of_heads_is_refused(plain):
    with pytest.raises(ValueError, match="has 3 heads, and the model 4"):
        load_weights(filled(num_heads=4, depth=1), plain[1])


def test_merged_tokens_are_left_out_and_it_is_said(plain, tmp_path):
    model, _ = plain
    merged = keras_vit.merge_tokens(model, 2)
    merged.save(tmp_path / "fast.keras")
    with pytest.warns(UserWarning, match="fast.keras' merges tokens, which this leaves out"):
        again = from_checkpoint(tmp_path / "fast.keras")
    np.testing.assert_array_equal(outputs(again), outputs(model))
    with pytest.warns(UserWarning, match="does not record .*token merging"):
        keras_vit.save_checkpoint(merged, tmp_path / "fast.npz")


def test_what_is_said_of_a_head_stays_with_it(plain, tmp_path):
    model = from_checkpoint(plain[1])
    said = {"temperature": 0.5, "thresholds": [0.1, 0.2, 0.3], "gives": {"head": "labels"}}
    model.get_layer("rescale").metadata |= said
    model.save(tmp_path / "a.keras")
    metadata = lambda model: dict(model.get_layer("rescale").metadata)  # noqa: E731
    assert said.items() <= metadata(from_checkpoint(tmp_path / "a.keras")).items()
    assert not said.keys() & metadata(from_checkpoint(tmp_path / "a.keras", head="new")).keys()
    assert not said.keys() & metadata(load_weights(model, plain[1])).keys()

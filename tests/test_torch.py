"""What works on Keras's torch backend, and what says that it does not.

    KERAS_BACKEND=torch python -m pytest -n 0 tests/test_torch.py

`.ci/run` does so with the first slice of the slow tests.
"""

import keras
import numpy as np
import pytest

import keras_vit

pytestmark = pytest.mark.backend
on_torch = pytest.mark.skipif(keras.backend.backend() != "torch", reason="of a run with KERAS_BACKEND=torch")

# Logits of the recipe `mnist`, on every backend, for an image that brightens along its diagonal.
MNIST = [-1.1669, 3.0982, 0.2586, -0.7392, 1.0968, -0.3057, 1.2412, -1.0439, -0.798, -1.2388]
IMAGES, LABELS = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3)).astype("uint8"), np.arange(4)


def small(**more):
    return keras_vit.vit(
        "Ti/16", image_size=32, width=32, depth=2, num_heads=2, mlp_dim=64, **{"num_classes": 4, **more}
    )


def predicted(model):
    return keras.ops.convert_to_numpy(model(IMAGES, training=False))


@on_torch
@pytest.mark.parametrize("more", [{}, dict(dropout=0.1, stochastic_depth=0.1, dtype="mixed_bfloat16")])
@pytest.mark.parametrize("remat", [False, True])
def test_a_model_learns_and_is_saved(more, remat, tmp_path):
    with keras.RematScope("list_of_layers" if remat else None, layer_names=["block_0"]):
        model = small(**more)
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = model.fit(IMAGES, LABELS, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        predicted(keras.models.load_model(tmp_path / "model.keras")), predicted(model), rtol=1e-5
    )


@on_torch
@pytest.mark.parametrize(
    "more",
    [
        dict(position=None, rotary="dinov3"), dict(rotary="rope-vit-mixed"), dict(position="relative"),
        dict(pooling="map", tokens={"registers": 2}), dict(block={"swiglu": True, "qk_norm": True, "layer_scale": 0.1}),
        dict(patch_dropout=0.5, pooling="gap", stem="conv", patch_size=2),
    ],
)  # fmt: skip
def test_every_kind_of_model_trains(more):
    model = small(**more)
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = model.fit(IMAGES, LABELS, epochs=3, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
    assert np.isfinite(predicted(model)).all()


@on_torch
def test_merged_tokens_compute_what_they_do_elsewhere():
    merged = keras_vit.merge_tokens(small(), 1)
    assert predicted(merged).shape == (4, 4)


@on_torch
def test_checkpoints_lora_and_maps(tmp_path):
    model = keras_vit.add_lora(small(block={"gelu": "exact"}), 2)
    for variable in model.trainable_variables:
        variable.assign(0.1 * np.random.default_rng(1).normal(size=variable.shape))
    merged = keras_vit.merge_lora(model)
    np.testing.assert_allclose(predicted(merged), predicted(model), atol=1e-5)
    path = keras_vit.save_checkpoint(merged, tmp_path / "model.safetensors", format="timm")
    np.testing.assert_allclose(predicted(keras_vit.from_checkpoint(path)), predicted(merged), atol=1e-5)
    maps = keras_vit.attention_maps(merged, IMAGES)
    np.testing.assert_allclose(maps.sum(-1), np.ones((2, 4, 2, 5)), rtol=1e-5)
    assert keras_vit.attention_rollout(merged, IMAGES).shape == (4, 2, 2)


def test_the_weights_that_ship_compute_the_same():
    model = keras_vit.from_recipe("mnist", pretrained=True)
    found = predicted_of(model, np.indices((28, 28)).sum(0)[None, :, :, None] * 4.5)
    np.testing.assert_allclose(found, MNIST, atol=2e-4)


def predicted_of(model, images):
    return keras.ops.convert_to_numpy(model(images.astype("float32"), training=False))[0]


@on_torch
def test_what_refuses_says_so(tmp_path):
    model = small()
    calls = {
        "TensorFlow or JAX": lambda: keras_vit.fit("digits", workdir=tmp_path / "run"),
        "TensorFlow or JAX. Received": lambda: keras_vit.attention_relevance(model, IMAGES, LABELS),
        "SavedModel is written by TensorFlow": lambda: keras_vit.export_saved_model(model, tmp_path / "a"),
        "TFLite file is written by TensorFlow": lambda: keras_vit.export_tflite(model, tmp_path / "a.tflite"),
        "ONNX file is written by TensorFlow": lambda: keras_vit.export_onnx(model, tmp_path / "a.onnx"),
    }
    for message, call in calls.items():
        with pytest.raises((RuntimeError, NotImplementedError), match=message):
            call()
    assert not list(tmp_path.iterdir())

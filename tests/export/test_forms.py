import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import add_lora, vit
from keras_vit.export import forms
from keras_vit.layers import MultiHeadSelfAttention, TransformerBlock
from keras_vit.utils.keras_private import sublayers
from tests.export.small import shaken, tiny
from tests.marks import few

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 12, 8, 3)).astype("float32")


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0, 100.0, 1e4])
def test_norms_are_right_in_float16(size):
    """Residual streams have channels of 10,000 beside those of 1; the reference is in float64."""
    x = np.random.default_rng(0).normal(size=(4, 9, 64)) * 0.5
    x[..., 7] = size * np.linspace(-1, 1, 9)
    x = x.astype("float16") * (1 if size >= 1 else np.float16(size))
    exact = x.astype("float64") - x.astype("float64").mean(-1, keepdims=True)
    exact /= np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-6)
    norm = keras.layers.LayerNormalization(epsilon=1e-6, dtype="float16")
    norm.build(x.shape)
    norm.__class__ = forms.ExportNorm
    norm.half = True
    np.testing.assert_allclose(np.asarray(norm(x), "float64"), exact, atol=4e-3 * abs(exact).max())
    norm.half = False
    if size > 300:
        assert not np.isfinite(np.asarray(norm(x), "float64")).all() or abs(np.asarray(norm(x)) - exact).max() > 0.1


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_float32_keeps_the_weights(policy):
    model = vit("mu/4", image_size=8, num_classes=3, dtype=policy)
    copy = forms.float32(model)
    assert {layer.dtype_policy.name for layer in sublayers(copy, include_self=False)} == {"float32"}
    for a, b in zip(copy.weights, model.weights):
        assert a.path == b.path
        np.testing.assert_array_equal(a.numpy(), np.asarray(keras.ops.cast(b, "float32")))
    assert forms.float32(copy) is copy


def test_models_in_models_become_float32():
    inner = vit("mu/4", image_size=8, num_classes=3, dtype="mixed_bfloat16")
    copy = forms.float32(keras.Sequential([keras.Input((8, 8, 3)), inner, keras.layers.Softmax()]))
    assert {layer.compute_dtype for layer in sublayers(copy, include_self=False)} == {"float32"}


@few(4)
@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(tokens={"distilled": True, "registers": 2}, block={"gelu": "exact", "layer_scale": 0.1, "qk_norm": True}),
        dict(block={"qkv_bias": False, "swiglu": True}, pooling="gap", tokens={"pre_norm": True}, final_norm="after"),
        dict(pooling="map", stem="conv"),
        dict(pooling="last", block={"gelu": "quick"}),
        dict(position="relative", block={"sub_norm": "both", "key_bias": False}),
        dict(block={"norm_order": "res-post", "sub_norm": "mlp", "swiglu": True}),
        dict(
            norm={"rms_norm": True},
            tokens={"patch_norm": True},
            block={"proj_bias": False, "sub_norm": "both"},
            pooling="gap",
        ),
        dict(block={"parallel": True}),
        dict(block={"parallel": True, "qkv_bias": False, "qk_norm": True}),
    ],
)
def test_an_export_copy_computes_the_same_and_the_model_stays(options, fold):
    model = shaken(tiny(**options))
    before, expected = model.get_weights(), np.asarray(model(IMAGES))
    found = np.asarray(forms.export_copy(model, fold=fold, erf=True)(IMAGES))
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.ptp(expected))
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))


def test_scales_are_folded():
    block = forms.export_copy(shaken(tiny())).get_layer("block_0")
    assert (np.asarray(block.norm1.gamma) == 1).all() and not np.asarray(block.norm2.beta).any()
    assert block.attention.scale == 1 and not block.norm1.scaled and not block.norm2.shifted
    block = forms.export_copy(shaken(tiny()), fold=False).get_layer("block_0")
    assert (np.asarray(block.norm1.gamma) != 1).all() and np.asarray(block.norm2.beta).any()


def test_a_norm_of_two_readers_is_folded_into_both_or_none():
    for bias in (True, False):
        block = forms.export_copy(shaken(tiny(block={"parallel": True, "qkv_bias": bias}))).get_layer("block_0")
        assert (np.asarray(block.norm1.gamma) == 1).all() == bias


def test_every_norm_takes_its_form_and_weights_keep_their_places():
    model = shaken(tiny(pooling="map", block={"qk_norm": True}))
    copy = forms.export_copy(model)
    norms = [layer for layer in sublayers(copy) if isinstance(layer, keras.layers.LayerNormalization)]
    assert len(norms) == 6 and all(type(norm) is forms.ExportNorm for norm in norms)
    assert [weight.path for weight in copy.weights] == [weight.path for weight in model.weights]


def test_operations_and_adapted_layers_are_copied_and_subclasses_left_alone():
    class Twice(keras.layers.LayerNormalization):
        def call(self, x):
            return 2 * super().call(x)

    normalization = keras.layers.Normalization()
    normalization.adapt(IMAGES)
    inputs = keras.Input((12, 8, 3))
    x = keras.ops.relu(normalization(inputs))[:, 0]
    model = keras.Model(inputs, keras.layers.Flatten()(Twice()(x) + keras.layers.LayerNormalization()(x)))
    copy = forms.export_copy(model)
    assert copy is not model
    np.testing.assert_allclose(np.asarray(copy(IMAGES)), np.asarray(model(IMAGES)), atol=1e-4)


class Own(keras.Model):
    def __init__(self, policy):
        super().__init__(dtype=policy)
        self.inner = vit("mu/4", image_size=8, num_classes=3, dtype=policy)

    def call(self, images):
        return self.inner(images)


def test_what_cannot_be_cloned_is_exported_itself_or_is_an_error():
    model = Own("float32")
    assert forms.export_copy(model) is model
    with pytest.raises(ValueError, match=r"cannot clone 'own.*', which is under mixed_bfloat16"):
        forms.export_copy(Own("mixed_bfloat16"))


@keras.saving.register_keras_serializable(package="tests")
class Composite(keras.layers.Layer):
    """A layer of a user's own, with layers of ours inside."""

    def build(self, shape):
        self.norm, self.attention = keras.layers.LayerNormalization(name="n"), MultiHeadSelfAttention(2, name="a")
        self.norm.build(shape)
        self.attention.build(shape)

    def call(self, x):
        return self.attention(self.norm(x))


@keras.saving.register_keras_serializable(package="tests")
class Mine(TransformerBlock):
    """A subclass: its own parts have their forms, but nothing is folded into it."""


@pytest.mark.parametrize("make", [Composite, lambda: Mine(2, 16)])
def test_layers_inside_other_layers_have_their_forms(make):
    inputs = keras.Input((5, 8))
    model = keras.Model(inputs, make()(inputs))
    tokens = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    copy = forms.export_copy(model)
    assert not {keras.layers.LayerNormalization, MultiHeadSelfAttention} & {type(layer) for layer in sublayers(copy)}
    assert {keras.layers.LayerNormalization, MultiHeadSelfAttention} <= {type(layer) for layer in sublayers(model)}
    np.testing.assert_allclose(copy(tokens), model(tokens), atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_lora_is_merged(policy):
    model = add_lora(shaken(tiny(dtype=policy)), 2)
    shaken(model)
    copy = forms.export_copy(model, half=True)
    assert copy is not model and not any(getattr(layer, "lora_enabled", False) for layer in sublayers(copy))
    assert any(isinstance(layer, forms.ExportNorm) and layer.half for layer in sublayers(copy))
    np.testing.assert_allclose(copy(IMAGES), model(IMAGES), atol=1e-4 if policy == "float32" else 0.2)

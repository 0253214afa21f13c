"""Padded tokens change nothing, whatever attends to what."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_vit
from keras_vit.layers.attention import padding
from keras_vit.layers.attention.attend import fused_attention
from keras_vit.models.remat import rematerialized
from tests.captions import small
from tests.marks import few

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
ON_JAX = pytest.mark.skipif(keras.backend.backend() != "jax", reason="the kernel is JAX's")


def plain(query, key, value, bias=None, mask=None):
    logits = ops.einsum("bthd,bshd->bhts", query, key) + (0 if bias is None else bias)
    logits = logits if mask is None else ops.where(mask, logits, -1e9)
    return ops.einsum("bhts,bshd->bthd", ops.softmax(logits, axis=-1), value)


def random(*shape):
    return RNG.normal(size=shape).astype("float32")


@few(12)
@pytest.mark.parametrize("rows, columns", [(5, 9), (8, 5), (1, 8)])
@pytest.mark.parametrize("bias", [None, (1, 2, 1, 1), (3, 1, 1, 0), (2, 1, 1)], ids=str)
@pytest.mark.parametrize("mask", [None, "causal", (3, 1, 1, 0)], ids=str)
def test_equals_attention_without_padding(rows, columns, bias, mask):
    query, key, value = random(3, rows, 2, 4), random(3, columns, 2, 4), random(3, columns, 2, 4)

    def sized(kind):  # 1 and 0: of all rows and columns, of one row for all
        return (*kind[:-2], rows if kind[-1] else 1, columns)

    if bias is not None:
        bias = ops.convert_to_tensor(random(*sized(bias)))
    if mask == "causal":
        mask = ops.tril(ops.ones((1, 1, rows, columns), "bool"))
    elif mask is not None:
        mask = RNG.random(sized(mask)) < 0.6
        mask[..., 0] = True
        mask = ops.convert_to_tensor(mask)
    tensors = [*map(ops.convert_to_tensor, (query, key, value))]
    found = padding.padded_attention(plain, *tensors, bias, mask)
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, plain(*tensors, bias, mask))), atol=1e-5)


def gradients(model, images):
    import jax

    weights, others = ([v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables))

    def loss(weights):
        outputs = jax.tree.leaves(model.stateless_call(weights, others, images, training=True)[0])
        return sum(ops.mean(ops.sin(output)) for output in outputs)

    return [*map(np.asarray, jax.tree.leaves(jax.jit(jax.value_and_grad(loss))(weights)))]


SMALL = {"image_size": 8, "patch_size": 4, "width": 16, "depth": 2, "num_heads": 2, "mlp_dim": 24, "num_classes": 3}
MODELS = {
    "token": {},
    "registers": {"tokens": {"registers": 2}},
    "token+gap": {"pooling": "token+gap"},
    "map": {"pooling": "map", "image_size": 12},  # nine patches, and one query
    "gap": {"pooling": "gap", "image_size": 12},
    "relative": {"position": "relative"},
    "rotary": {"rotary": "dinov3"},
}


def counted(monkeypatch):
    """Pads wherever tokens are odd, as on a GPU; returns a list that grows with each call."""
    calls = []

    def helps(query, key):
        calls.append(query.shape[1])
        return padding.is_odd(query, key)

    monkeypatch.setattr(padding, "helps", helps)
    return calls


@ON_JAX
@few(3)
@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_models_and_their_gradients_are_the_same(kind, remat, monkeypatch):
    keras.utils.set_random_seed(0)
    with rematerialized(2 * remat):
        model = keras_vit.vit(None, **{**SMALL, **MODELS[kind]})
    images = RNG.integers(0, 256, (2, *model.input_shape[1:])).astype("float32")
    before = gradients(model, images)
    assert (calls := counted(monkeypatch)) == []
    for found, wanted in zip(gradients(model, images), before, strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)
    assert any(count % 2 for count in calls)


@ON_JAX
def test_texts_attend_to_what_came_before(monkeypatch):
    """Causal blocks, and those that attend to an image, of a decoder."""
    keras.utils.set_random_seed(0)
    model = small()
    texts = RNG.integers(3, 8, (2, 5)).astype("int32")
    images = RNG.integers(0, 256, (2, *model.input["images"].shape[1:])).astype("float32")
    inputs = {"images": images, "texts": texts}
    before = gradients(model, inputs)
    calls = counted(monkeypatch)
    for found, wanted in zip(gradients(model, inputs), before, strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)
    assert 5 in calls


@ON_JAX
def test_only_where_the_kernel_needs_it(monkeypatch):
    monkeypatch.setattr(padding, "_on_jax_s_gpu", lambda: True)
    asked = []
    monkeypatch.setattr(padding, "padded_attention", lambda attention, query, *more: asked.append(query.shape) or query)
    query, even, single = (ops.zeros(shape, dtype) for shape, dtype in (
        ((1, 5, 2, 8), "bfloat16"),
        ((1, 6, 2, 8), "bfloat16"),
        ((1, 5, 2, 8), "float32"),
    ))  # fmt: skip
    for tensor, training in ((query, True), (query, False), (even, True), (single, True), (query[..., :4], True)):
        fused_attention(tensor, tensor, tensor, training=training)
    assert asked == [(1, 5, 2, 8)]
    monkeypatch.setattr(keras.config, "is_flash_attention_enabled", lambda: False)
    fused_attention(query, query, query, training=True)
    assert len(asked) == 1

import keras
import numpy as np
import pytest

from keras_vit.layers.attention import fused

pytestmark = pytest.mark.backend

JAX = keras.backend.backend() == "jax"


def asked(monkeypatch, tokens, training, others=None):
    """Returns the `flash_attention` that Keras is asked for."""
    seen = []
    plain = keras.ops.dot_product_attention

    def watched(*args, flash_attention, **more):
        seen.append(flash_attention)
        return plain(*args, flash_attention=flash_attention, **more)

    monkeypatch.setattr(fused.ops, "dot_product_attention", watched)
    query, key = (
        np.random.default_rng(0).normal(size=(2, n, 2, 4)).astype("float32") for n in (tokens, others or tokens)
    )
    found = np.asarray(fused.fused_attention(query, key, key, training=training))
    scores = np.exp(np.einsum("bthd,bshd->bhts", query, key))
    scores /= scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, np.einsum("bhts,bshd->bthd", scores, key), atol=1e-4)
    return seen[0]


def test_jax_s_kernel_does_not_train_on_an_odd_number_of_tokens(monkeypatch):
    assert asked(monkeypatch, 5, True) is asked(monkeypatch, 4, True, others=5) is (False if JAX else None)
    assert asked(monkeypatch, 4, True) is asked(monkeypatch, 5, False) is None


def test_the_kernel_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(keras.config, "is_flash_attention_enabled", lambda: False)
    assert asked(monkeypatch, 4, False) is False

import numpy as np
import pytest

from keras_vit import vit
from keras_vit.explain import patch_filters, position_similarity
from tests.explain.models import shared, tiny
from tests.marks import slow


def test_filters_are_the_principal_components():
    model = tiny()
    rng = np.random.default_rng(0)
    first, second = np.linalg.qr(rng.normal(size=(48, 2)))[0].T
    kernel = np.outer(first, 9 * rng.normal(size=32)) + np.outer(second, rng.normal(size=32))
    model.get_layer("encoder").projection.kernel.assign(kernel)
    found = patch_filters(model, 2)
    assert found.shape == (2, 4, 4, 3)
    assert abs(found[0].ravel() @ first) > 0.99 and abs(found[1].ravel() @ second) > 0.9
    assert patch_filters(model).shape[0] == 28


@slow
def test_filters_of_large_patches_are_exact_and_draw_nothing():
    model = vit("B/16", image_size=16, depth=1, mlp_dim=12, num_classes=0)
    state = np.random.get_state()[1].copy()
    found = patch_filters(model, 5).reshape(5, -1)
    kernel = np.asarray(model.get_layer("encoder").projection.kernel).T
    expected = np.linalg.svd(kernel - kernel.mean(0), full_matrices=False)[2][:5]
    np.testing.assert_allclose(np.abs((found * expected).sum(1)), 1, atol=1e-3)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_filters_of_a_hybrid_are_those_of_its_first_convolution():
    model = shared("hybrid")
    assert patch_filters(model, 5).shape == (5, 3, 3, 3)


@pytest.mark.parametrize("kind", ["token", "registers", "last", "distilled"])
def test_positions_are_alike_by_their_cosine(kind):
    model = shared(kind)
    found = position_similarity(model)
    assert found.shape == (3, 2, 3, 2)
    flat = found.reshape(6, 6)
    np.testing.assert_allclose(np.diag(flat), 1, atol=1e-5)
    np.testing.assert_allclose(flat, flat.T, atol=1e-6)
    table = np.asarray(model.get_layer("encoder").position_embedding)[0, -6:]
    a, b = table[1], table[4]
    np.testing.assert_allclose(flat[1, 4], a @ b / np.linalg.norm(a) / np.linalg.norm(b), atol=1e-5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="position=None"):
        position_similarity(tiny(position=None))
    with pytest.raises(ValueError, match="count=0"):
        patch_filters(tiny(), 0)

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.explain import token_norms, token_similarity
from tests.explain.models import IMAGES, KINDS, PREFIX, shared


@pytest.mark.parametrize("kind", KINDS)
def test_similarity_and_norms_by_hand(kind):
    model, prefix = shared(kind), PREFIX[kind]
    similarity, norms = token_similarity(model, IMAGES), token_norms(model, IMAGES)
    assert similarity.shape == (4, 3) and norms.shape == (4, 3, 6 + prefix)
    tokens = keras.Model(model.input, model.get_layer("block_1").output)(IMAGES)
    tokens = keras.ops.convert_to_numpy(tokens).astype("float32")
    np.testing.assert_allclose(norms[2], np.sqrt((tokens**2).sum(-1)), rtol=1e-5)
    a = tokens[1, prefix:]
    pairs = [a[i] @ a[j] / np.linalg.norm(a[i]) / np.linalg.norm(a[j]) for i in range(6) for j in range(i)]
    np.testing.assert_allclose(similarity[2, 1], np.mean(pairs), atol=1e-4)


def test_a_single_patch_has_none_to_compare():
    with pytest.raises(ValueError, match="a single one"):
        token_similarity(vit("mu/8", image_size=8, num_classes=2), IMAGES[:, :8])

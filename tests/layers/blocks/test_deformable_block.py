import numpy as np
import pytest

from keras_vit.layers.blocks.deformable_block import DeformableBlock

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def test_groups_do_not_see_each_other():
    block = DeformableBlock(2, 4, 2, 32)
    x, positions = (RNG.normal(size=(2, 6, 16)).astype("float32") for _ in range(2))
    references = RNG.uniform(0.2, 0.6, size=(2, 6, 4)).astype("float32")
    features = RNG.normal(size=(2, 4, 5, 16)).astype("float32")
    both = np.asarray(block(x, positions, references, features, groups=2))
    assert both.shape == x.shape
    for part in (slice(0, 3), slice(3, 6)):
        alone = block(x[:, part], positions[:, part], references[:, part], features)
        np.testing.assert_allclose(both[:, part], np.asarray(alone), atol=1e-5)
    assert np.abs(both - np.asarray(block(x, positions, references, features))).max() > 1e-3
    np.testing.assert_allclose(both.mean(-1), 0, atol=1e-5)  # the last normalization

import numpy as np
import pytest

from keras_vit.layers import AdaptiveHead, Patches
from tests.harness import Apart, run_layer_test

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)


def test_layer(tmp_path):
    make = lambda dtype: AdaptiveHead(3, (2, 4), (3, 2), dtype=dtype)  # noqa: E731
    run_layer_test(make, Apart([(2, 6, 8), (2, 5)]), (2, 6, 8, 3), ("norm", "modulation", "pixels"), tmp_path)


def test_puts_each_patch_where_it_was_cut():
    images = RNG.normal(size=(2, 6, 8, 3)).astype("float32")
    head = AdaptiveHead(3, (2, 4), (3, 2), epsilon=1e-6)
    patches, condition = Patches((2, 4))(images), np.zeros((2, 5), "float32")
    head(patches, condition)
    head.pixels.kernel.assign(np.eye(24))
    head.pixels.bias.assign(np.full(24, 0.5))
    x = np.asarray(patches)
    normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    expected = normed.reshape(2, 3, 2, 2, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(images.shape) + 0.5
    np.testing.assert_allclose(np.asarray(head(patches, condition)), expected, atol=1e-4)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"`grid` must hold all 5 tokens. Received: grid=\(2, 2\)"):
        AdaptiveHead(1, 2, (2, 2))(np.zeros((1, 5, 8), "float32"), np.zeros((1, 8), "float32"))
    with pytest.raises(ValueError, match="`channels` must be a positive integer. Received: channels=0"):
        AdaptiveHead(0, 2, (2, 2))

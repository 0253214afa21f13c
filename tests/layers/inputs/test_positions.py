import numpy as np
import pytest

from keras_vit import vit
from keras_vit.layers import Positions
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

TOKENS = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")


def test_layer(tmp_path):
    run_layer_test(lambda dtype: Positions(dtype=dtype), TOKENS.shape, TOKENS.shape, [], tmp_path)


def test_adds_a_vector_to_each_token():
    layer = Positions()
    layer(TOKENS)
    table = np.random.default_rng(1).normal(size=(1, 5, 8)).astype("float32")
    layer.table.assign(table)
    np.testing.assert_allclose(np.asarray(layer(TOKENS)), TOKENS + table, atol=1e-6)
    with pytest.raises(ValueError, match="are for 5 tokens. Received: 4 tokens"):
        layer(TOKENS[:, :4])


def test_are_before_each_later_block():
    model = vit("mu/8", image_size=16, depth=3, num_classes=3, tokens={"block_positions": True})
    names = [layer.name for layer in model.layers]
    assert [name for name in names if name.startswith("position_")] == ["position_1", "position_2"]
    assert names.index("block_0") < names.index("position_1") < names.index("block_1")
    with pytest.raises(ValueError, match="Patch dropout needs positions .* block_positions=True"):
        vit("mu/8", image_size=16, tokens={"block_positions": True}, patch_dropout=0.5)

import json

import keras
import numpy as np
import pytest

from keras_vit.layers import PaddingMask

pytestmark = pytest.mark.backend

IDS = np.array([[5, 2049, 0, 0], [0, 2, 0, 4]], "int32")


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_masks_what_fills_a_text_and_nothing_after_it(policy):
    layer = PaddingMask(0, others=2, dtype=policy)
    for ids in (IDS, IDS.astype("float32")):
        mask = keras.ops.convert_to_numpy(layer(ids))
        assert mask.dtype == bool and mask.shape == (2, 1, 1, 6) == layer.compute_output_shape((2, 4))
        np.testing.assert_array_equal(mask[:, 0, 0, :4], IDS != 0)
        assert mask[..., 4:].all()
    assert not keras.ops.convert_to_numpy(PaddingMask(2049, dtype=policy)(IDS))[0, 0, 0, 1]
    symbolic = layer(keras.KerasTensor((None, 4), "int32"))
    assert (tuple(symbolic.shape), symbolic.dtype) == ((None, 1, 1, 6), "bool")
    config = layer.get_config()
    assert PaddingMask.from_config(json.loads(json.dumps(config))).get_config() == config


def test_bad_arguments():
    with pytest.raises(ValueError, match="`pad` must be an integer, 0 or more. Received: pad=-1"):
        PaddingMask(-1)

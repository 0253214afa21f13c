import keras
import numpy as np
import pytest

from keras_vit.layers import Words
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

IDS = np.array([[0, 3, 4999], [2049, 1, 2051]], "int32")


def test_layer(tmp_path):
    run_layer_test(lambda dtype: Words(5, 8, length=4, dtype=dtype), (2, 4), (2, 4, 8), [], tmp_path)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_looks_up_words_and_adds_positions(policy):
    """float16 and bfloat16 do not count to 4,999: ids are integers under every policy, also if they come as floats."""
    layer = Words(5000, 8, length=4, dtype=policy)
    for ids in (IDS, IDS.astype("float32")):
        found = keras.ops.convert_to_numpy(keras.ops.cast(layer(ids), "float32"))
        words, positions = map(keras.ops.convert_to_numpy, layer.weights)
        assert [w.path.rpartition("/")[2] for w in layer.weights] == ["word_embedding", "position_embedding"]
        np.testing.assert_allclose(found, words[IDS] + positions[:3], atol=1e-7 if policy == "float32" else 1e-3)


def test_metadata_is_saved_and_bad_input_refused():
    config = Words(5, 8, 4, metadata={"tokens": np.arange(2)}).get_config()
    assert config["metadata"] == {"tokens": [0, 1]} and Words.from_config(config).metadata == config["metadata"]
    with pytest.raises(ValueError, match=r"at most 4 words. Received: shape=\(2, 5\)"):
        Words(5, 8, 4)(np.zeros((2, 5), "int32"))
    with pytest.raises(ValueError, match="`metadata` must be a dictionary. Received: metadata='clip'"):
        Words(5, 8, 4, metadata="clip")

import json

import keras
import numpy as np
import pytest

from keras_vit.tasks.pretrain.decoder import PixelDecoder, rows

pytestmark = pytest.mark.backend

PARTS = ("embed", "mask_token", "position", "block_0", "norm", "predict")


def decoder():
    return PixelDecoder(16, 1, 2, 5, grid=(2, 3), num_prefix=2, mlp_dim=24, name="decoder")


def test_shapes_config_and_paths():
    made = decoder()
    tokens, order = np.ones((3, 4, 7), "float32"), np.tile(np.arange(6), (3, 1))
    assert made(tokens, order).shape == (3, 6, 5)
    assert made.compute_output_shape((None, 4, 7), (None, 6)) == (None, 6, 5)
    symbolic = made(keras.KerasTensor((None, 4, 7)), keras.KerasTensor((None, 6), dtype="int32"))
    assert symbolic.shape == (None, 6, 5)
    config = made.get_config()
    assert PixelDecoder.from_config(json.loads(json.dumps(config))).get_config() == config
    assert {v.path.split("/")[1] for v in made.weights} == set(PARTS)
    assert not made.position.trainable


def test_fixed_positions_are_the_authors():
    """As `util/pos_embed.py` of MAE: the class token at 0, then for each patch its column, then its row."""
    omega = 10000.0 ** -(np.arange(4) / 4)
    wanted = [np.zeros(16), np.zeros(16)]
    for row in range(2):
        for column in range(3):
            angles = [column * omega, row * omega]
            wanted.append(np.concatenate([part for a in angles for part in (np.sin(a), np.cos(a))]))
    made = decoder()
    made.build((None, 4, 7))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(made.position)[0], wanted, atol=1e-6)


def test_tokens_return_to_their_places():
    """With blocks that add nothing, a patch's output depends on its own token and position."""
    made = decoder()
    rng, order = np.random.default_rng(0), np.array([[3, 0, 2, 1, 4, 5]])
    tokens = rng.normal(size=(1, 4, 7)).astype("float32")  # two of the prefix, two visible
    made(tokens, order)
    for variable in made.blocks[0].weights:
        if variable.path.endswith(("proj/kernel", "fc2/kernel")):
            variable.assign(np.zeros(variable.shape))
    embedded, mask = made.embed(tokens)[:, 2:], made.mask_token
    wanted = np.concatenate([np.tile(np.asarray(mask), (1, 6, 1))], 1)
    wanted[:, [1, 3]] = np.asarray(embedded)  # places 0 and 1 of the order
    wanted = made.predict(made.norm(wanted + np.asarray(made.position)[:, 2:]))
    np.testing.assert_allclose(np.asarray(made(tokens, order)), np.asarray(wanted), atol=1e-5)


def test_rows():
    x, indices = np.arange(24.0).reshape(2, 4, 3), np.array([[3, 0], [1, 1]])
    np.testing.assert_array_equal(np.asarray(rows(keras.ops.array(x), indices)), np.stack([x[0, [3, 0]], x[1, [1, 1]]]))


def test_bad_width():
    with pytest.raises(ValueError, match="multiple of 4"):
        PixelDecoder(18, 1, 2, 5, grid=(2, 3)).build((None, 4, 7))
    with pytest.raises(ValueError, match="`depth` must be a positive integer"):
        PixelDecoder(16, 0, 2, 5, grid=(2, 3))

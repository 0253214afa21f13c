import keras
import numpy as np
import pytest

from keras_vit.layers import AddToImage, TextureTransfer
from keras_vit.layers.attention import texture_transfer

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (2, 8, 10, 3)).astype("float32")
LARGE = RNG.integers(0, 256, (2, 24, 28, 3)).astype("float32")


def finding(scale=2):
    """A layer whose values are the pixels of each position's cell, without what shrinking keeps."""
    layer = TextureTransfer(3 * scale**2, scale=scale)
    layer([IMAGES, LARGE])
    kernel = np.zeros(layer.values.kernel.shape, "float32")
    for i in range(scale):
        for j in range(scale):
            for k in range(3):
                kernel[scale + i, scale + j, k, (i * scale + j) * 3 + k] = 1
    layer.values.kernel.assign(kernel)
    return layer


def shrunk(images, scale=2):
    layer = TextureTransfer(1, scale=scale)
    layer([images, images])
    return np.asarray(texture_transfer.enlarged(keras.ops.convert_to_tensor(images), layer.smaller))


def details(textures, scale=2):
    batch, rows, columns, _ = textures.shape
    cells = np.asarray(textures).reshape(batch, rows, columns, scale, scale, 3) * 127.5
    return cells.transpose(0, 1, 3, 2, 4, 5).reshape(batch, scale * rows, scale * columns, 3)


def enlarged(images, scale=2):
    batch, rows, columns, channels = images.shape
    zeros = np.zeros((batch, scale * rows, scale * columns, channels), "float32")
    return np.asarray(AddToImage(scale=scale)([images, zeros]))


def test_an_image_finds_its_own_textures():
    textures, scores = finding()([shrunk(LARGE), LARGE])
    np.testing.assert_allclose(enlarged(shrunk(LARGE)) + details(textures), LARGE, atol=0.1)
    np.testing.assert_allclose(scores, 1, atol=0.02)


@pytest.mark.parametrize("step, share", [(2, 0.1), (3, 0.2)])
def test_a_moved_image_is_found_where_it_is(step, share):
    """Also between two pixels of the small image, and in another brightness; but for the edges."""
    moved = np.roll(LARGE, (step, 2), (1, 2)) * 0.5 + 20
    textures, scores = finding()([shrunk(LARGE), moved])
    inside = np.s_[:, 8:-8, 8:-8]
    found, wanted = details(textures)[inside], 0.5 * (LARGE - enlarged(shrunk(LARGE)))[inside]
    assert np.abs(found - wanted).mean() < share * np.abs(wanted).mean()
    assert np.asarray(scores)[:, 4:-4, 4:-4].min() > 0.95
    assert np.asarray(finding()([shrunk(LARGE), LARGE[::-1]])[1]).mean() < 0.8


def test_is_the_formula_of_the_paper(monkeypatch):
    """Equations 1, 2, 3 and 5, one position after the other; in parts as in one."""
    layer = finding()
    textures, scores = layer([IMAGES, LARGE])
    coarse = [texture_transfer.enlarged(x, layer.smaller) for x in layer._moved(LARGE / np.float32(127.5))]
    queries = np.asarray(layer._patches(keras.ops.convert_to_tensor(IMAGES / np.float32(127.5))))
    keys = np.concatenate([np.asarray(layer._patches(x)) for x in coarse], 1)
    relevance = queries @ keys.transpose(0, 2, 1)
    np.testing.assert_allclose(np.asarray(scores).reshape(2, -1), relevance.max(-1), atol=1e-5)
    monkeypatch.setattr(texture_transfer, "SCORES", 1000)
    again, _ = layer([IMAGES, LARGE])
    np.testing.assert_array_equal(np.asarray(again), np.asarray(textures))


def test_layer(tmp_path):
    images, references = keras.Input(IMAGES.shape[1:]), keras.Input(LARGE.shape[1:])
    textures, scores = TextureTransfer(5, scale=2)([images, references])
    model = keras.Model([images, references], [textures, scores])
    assert [tuple(x.shape) for x in model.outputs] == [(None, 8, 10, 5), (None, 8, 10, 1)]
    assert [v.path.split("/", 1)[1] for v in model.weights] == ["features/kernel", "values/kernel", "values/bias"]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(loaded([IMAGES, LARGE]), model([IMAGES, LARGE])):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    half, _ = TextureTransfer(5, scale=2, dtype="mixed_bfloat16")([IMAGES, LARGE])
    assert keras.backend.standardize_dtype(half.dtype) == "bfloat16"
    plain, _ = TextureTransfer(4, scale=1)([IMAGES, LARGE])
    assert plain.shape == (2, 8, 10, 4)


def test_every_weight_is_trained():
    images, references = keras.Input(IMAGES.shape[1:]), keras.Input(LARGE.shape[1:])
    textures, scores = TextureTransfer(5, scale=2)([images, references])
    model = keras.Model([images, references], keras.layers.Multiply()([textures, scores]))
    model.compile(keras.optimizers.SGD(1.0), loss="mse")
    before = [np.asarray(v) for v in model.weights]
    model.train_on_batch([IMAGES, LARGE], np.ones((2, 8, 10, 5)))
    assert all(np.abs(np.asarray(v) - b).max() > 1e-7 for v, b in zip(model.weights, before))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="multiples of 5. Received: .*24, 28, 3"):
        TextureTransfer(4, scale=5)([IMAGES, LARGE])
    with pytest.raises(ValueError, match="equal channels"):
        TextureTransfer(4)([IMAGES, LARGE[..., :1]])
    with pytest.raises(ValueError, match="`filters` must be a positive integer. Received: filters=0"):
        TextureTransfer(0)

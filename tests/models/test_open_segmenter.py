import keras
import numpy as np
import pytest

from keras_vit.models.open_segmenter import is_open_segmenter, mask_decoder, needed, with_pairs
from keras_vit.traits import Traits
from tests import clipsegs, owls
from tests.towers import two_towers

pytestmark = pytest.mark.backend
IMAGES = np.random.default_rng(0).integers(0, 256, (2, clipsegs.SIDE, clipsegs.SIDE, 3)).astype("float32")
IDS = np.array([[2, 5, 7, 1, 0, 0, 0, 0], [2, 9, 1, 0, 0, 0, 0, 0], [2, 3, 1, 0, 0, 0, 0, 0]], "int32")


def test_a_mask_for_each_image_and_each_text(tmp_path):
    model = clipsegs.shared()
    assert model.output_shape == (None, 24, 24, None)
    found = np.asarray(model({"images": IMAGES, "texts": IDS}, training=False))
    assert found.shape == (2, 24, 24, 3) and found.dtype == "float32"
    alone = np.asarray(model({"images": IMAGES[1:], "texts": IDS[:1]}, training=False))
    np.testing.assert_allclose(alone, found[1:, ..., :1], atol=1e-5)
    model.save(tmp_path / "clipseg.keras")
    again = keras.models.load_model(tmp_path / "clipseg.keras")
    np.testing.assert_allclose(np.asarray(again({"images": IMAGES, "texts": IDS})), found, atol=1e-6)


def test_each_image_with_its_own_text_and_back():
    model = clipsegs.shared()
    assert with_pairs(model, False) is model
    paired = with_pairs(model, True)
    inputs = {"images": IMAGES, "texts": IDS[:2]}
    every, own = np.asarray(model(inputs)), np.asarray(paired(inputs))
    assert paired.output_shape == (None, 24, 24, 1) and is_open_segmenter(paired)
    np.testing.assert_allclose(own, np.stack([every[0, ..., 0], every[1, ..., 1]])[..., None], atol=1e-5)
    np.testing.assert_allclose(np.asarray(with_pairs(paired, False)(inputs)), every, atol=1e-6)
    less = needed(paired)
    np.testing.assert_allclose(np.asarray(less(inputs)), own, atol=1e-6)
    names = {layer.name for layer in less.get_layer("image").layers}
    assert "block_2" in names and not {"norm", "pool", "head"} & names  # nor what comes after


def test_what_is_a_segmenter():
    assert is_open_segmenter(clipsegs.shared()) and Traits(clipsegs.shared()).structure == "open_segmenter"
    assert not any(map(is_open_segmenter, (two_towers(), owls.shared())))


def test_the_decoder_has_the_public_names():
    alone = mask_decoder(blocks=2, channels=8, grid=(2, 2), patch_size=8, units=5, width=4, num_heads=2, mlp_dim=8)
    paths = {weight.path for weight in alone.weights}
    assert {"decoder/film_mul/kernel", "decoder/reduce1/bias", "decoder/block1/attention/query/kernel"} <= paths
    assert "decoder/up/kernel" in paths and alone.output_shape == (None, 16, 16, None)

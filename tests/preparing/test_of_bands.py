import numpy as np
import pytest

import keras_vit
from keras_vit.models.metadata import keep
from keras_vit.preparing.of_bands import of_bands, within
from keras_vit.utils.bands import Reading
from keras_vit.utils.value_range import of_pairs

VALUES = np.random.default_rng(0).integers(0, 5000, (20, 30, 2)).astype("uint16")
RANGE = of_pairs([[100, 4000], [0, 4500]])


def test_files_are_clipped_to_a_range_of_bands(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    found = of_bands(tmp_path / "a.npy", None, 2, RANGE)
    np.testing.assert_array_equal(found, np.clip(VALUES, [100, 0], [4000, 4500]))
    with pytest.raises(ValueError, match="a.npy': `images` must contain pixels from 0 to 4000"):
        of_bands(tmp_path / "a.npy", None, 2, (0, 4000))
    with pytest.raises(ValueError, match="must have 8 bits"):
        of_bands(tmp_path / "a.npy", None, 2, (0, 255))


def test_arrays_without_data():
    image = VALUES.astype("float32")
    image[3, 4, 0] = np.nan
    found = within(image, Reading(no_data="nan"), RANGE)
    assert found[3, 4, 0] in np.clip(image[2:5, 3:6, 0], 100, 4000) and found.min() >= 0
    assert np.isnan(within(image, Reading(), None)[3, 4, 0])
    image[..., 1] = np.nan
    assert (within(image, Reading(no_data="nan"), RANGE)[..., 1] == 0).all()


def test_preprocess_reads_what_the_model_states(tmp_path):
    model = keras_vit.vit(
        image_size=16, channels=2, width=8, depth=1, num_heads=1, mlp_dim=8, patch_size=8, num_classes=2,
        value_range=[[100, 4000], [0, 4500]],
    )  # fmt: skip
    np.save(tmp_path / "a.npy", np.concatenate([VALUES, VALUES[..., :1] // 2], -1))
    with pytest.raises(ValueError, match="must have the 2 bands that the model takes.*Received: 3"):
        keras_vit.preprocess(model, tmp_path / "a.npy")
    keep(model, bands={"count": 2, "bands": [3, 1]})
    pixels = keras_vit.preprocess(model, tmp_path / "a.npy")
    assert pixels.shape == (1, 16, 16, 2) and pixels[..., 0].min() >= 100 and pixels[..., 0].max() <= 2500
    picked = np.stack([VALUES[..., 0] // 2, VALUES[..., 0]], -1)
    np.testing.assert_array_equal(pixels, keras_vit.preprocess(model, picked))

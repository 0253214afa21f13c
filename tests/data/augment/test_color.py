import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.augment.color import gray  # noqa: E402
from keras_vit.data.draws import draws  # noqa: E402
from tests.data.augment.test_augment import IMAGES, run  # noqa: E402


def test_jitter_is_brightness_then_contrast_then_saturation():
    factors = 1 + 0.4 * (2 * draws(3, 5, 0)("jitter", 64, 3).numpy() - 1)
    assert 0.6 <= factors.min() < 0.65 and 1.35 < factors.max() < 1.4
    luma = [0.299, 0.587, 0.114]
    for image, jittered, (brightness, contrast, saturation) in zip(IMAGES, run(jitter=0.4), factors):
        image = np.clip(image * brightness, 0, 255)
        mean = (image @ luma).mean()
        image = np.clip(mean + (image - mean) * contrast, 0, 255)
        plain = (image @ luma)[..., None]
        np.testing.assert_allclose(jittered, np.clip(plain + (image - plain) * saturation, 0, 255), atol=1e-2)
    flat = np.full((64, 5, 5, 1), 100, "float32")  # gray: brightness alone shows
    np.testing.assert_allclose(run(flat, jitter=0.4)[:, 0, 0, 0], 100 * factors[:, 0], rtol=1e-5)


def test_gray_is_luma():
    np.testing.assert_allclose(gray(tf.constant(IMAGES))[..., 0], IMAGES @ [0.299, 0.587, 0.114], rtol=1e-5)
    np.testing.assert_array_equal(gray(tf.constant(IMAGES[..., :1])), IMAGES[..., :1])


def test_erase_blackens_one_rectangle_in_its_share_of_images():
    white = np.full((400, 20, 20, 1), 255, "float32")
    erased = run(white, erase=0.3)[..., 0] == 0
    touched = erased.any(axis=(1, 2))
    assert 0.2 < touched.mean() < 0.4
    for mask in erased[touched]:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        assert mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert 0.005 < mask.mean() < 0.27  # 2 to 20 %, give or take a pixel on each side

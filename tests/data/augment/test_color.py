import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.augment.color import blur, gray, solarize  # noqa: E402
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


def test_blur_is_a_gaussian_for_each_image():
    from scipy.ndimage import gaussian_filter1d

    deviations = np.float32([0.3, 1.0, 2.0])
    found = blur(tf.constant(IMAGES[:3]), tf.constant(deviations), 6).numpy()
    for image, blurred, deviation in zip(IMAGES[:3], found, deviations):
        for axis in (0, 1):
            image = gaussian_filter1d(np.float64(image), deviation, axis=axis, mode="mirror", radius=6)
        np.testing.assert_allclose(blurred, image, atol=1e-2)
    none = blur(tf.zeros((0, 9, 9, 3)), tf.zeros(0), 2)
    assert none.shape == (0, 9, 9, 3)


def test_solarize_inverts_light_pixels():
    assert solarize(tf.constant([0.0, 127.9, 128.0, 255.0])).numpy().tolist() == [0, np.float32(127.9), 127, 0]

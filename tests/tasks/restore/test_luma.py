import numpy as np
import pytest

from keras_vit.tasks.restore.luma import PSNR, PixelDistance, luma

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
TRUE, FOUND = (RNG.uniform(0, 255, (2, 6, 8, 3)).astype("float32") for _ in range(2))
BLACK_AND_WHITE = np.array([[0, 0, 0], [255, 255, 255]], "float32")


def test_brightness_goes_from_16_to_235():
    np.testing.assert_allclose(np.asarray(luma(BLACK_AND_WHITE))[:, 0], [16, 235], atol=1e-3)
    np.testing.assert_allclose(np.asarray(luma(BLACK_AND_WHITE[:, :1]))[:, 0], [16, 235], atol=1e-3)


def test_brightness_is_scikit_image_s():
    color = pytest.importorskip("skimage.color")
    np.testing.assert_allclose(np.asarray(luma(TRUE))[..., 0], color.rgb2ycbcr(TRUE / 255)[..., 0], atol=1e-3)


def test_the_distance_is_the_mean_absolute_error():
    np.testing.assert_allclose(float(PixelDistance()(TRUE, FOUND)), np.abs(TRUE - FOUND).mean() / 255, rtol=1e-5)
    of_luma = np.abs(np.asarray(luma(TRUE)) - np.asarray(luma(FOUND))).mean() / 255
    np.testing.assert_allclose(float(PixelDistance(of_luma=True)(TRUE, FOUND)), of_luma, rtol=1e-5)
    again = PixelDistance.from_config(PixelDistance(of_luma=True).get_config())
    assert again.of_luma and again.name == "loss"


def test_the_ratio_is_of_each_image_after_clipping():
    metric = PSNR()
    metric.update_state(TRUE, FOUND - 300)
    wanted = [10 * np.log10(255**2 / np.mean(image.astype("float64") ** 2)) for image in TRUE]
    np.testing.assert_allclose(float(metric.result()), np.mean(wanted), rtol=1e-4)
    again = PSNR.from_config(PSNR(of_luma=True).get_config())
    again.update_state(TRUE, TRUE, sample_weight=[1.0, 0.0])
    assert float(again.result()) > 100

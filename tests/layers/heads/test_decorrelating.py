import keras
import numpy as np
import pytest

from keras_vit.layers.heads.decorrelating import SCALE, decorrelating

pytestmark = pytest.mark.backend


def test_kernels_are_a_basis_in_both_signs():
    kernels = keras.ops.convert_to_numpy(decorrelating((3, 3, 3, 54), "float32")).reshape(27, 54) / SCALE
    np.testing.assert_allclose(kernels[:, :27].T @ kernels[:, :27], np.eye(27), atol=1e-6)
    np.testing.assert_array_equal(kernels[:, 27:], -kernels[:, :27])


def test_few_filters_are_the_slowest_waves():
    kernels = keras.ops.convert_to_numpy(decorrelating((3, 3, 3, 8), "float32"))
    np.testing.assert_allclose(kernels[..., 0], SCALE / np.sqrt(27), rtol=1e-6)  # brightness
    blue_to_red, columns, rows = (kernels[..., i] for i in (1, 2, 3))
    np.testing.assert_allclose(blue_to_red[0, 0] / blue_to_red[0, 0, 0], [1, 0, -1], atol=1e-6)
    np.testing.assert_allclose(columns[0, :, 0] / columns[0, 0, 0], [1, 0, -1], atol=1e-6)
    np.testing.assert_allclose(rows[:, 0, 0] / rows[0, 0, 0], [1, 0, -1], atol=1e-6)
    assert decorrelating((3, 3, 1, 17)).shape == (3, 3, 1, 17)


def test_responses_to_a_smooth_image_are_nearly_uncorrelated():
    rng = np.random.default_rng(0)
    waves = np.fft.rfft2(rng.normal(size=(64, 64))) / (1 + 64 * np.hypot(*np.meshgrid(*map(np.fft.fftfreq, (33, 64)))))
    pixels = np.lib.stride_tricks.sliding_window_view(np.fft.irfft2(waves), (3, 3)).reshape(-1, 9)
    kernels = keras.ops.convert_to_numpy(decorrelating((3, 3, 1, 18), "float32"))[..., 0, :9].reshape(9, 9)
    strongest = lambda x: np.abs(np.corrcoef(x.T) - np.eye(9)).max()  # noqa: E731
    assert strongest(pixels) > 0.5 and strongest(pixels @ kernels) < 0.3


def test_more_filters_than_the_basis_has_are_refused():
    with pytest.raises(ValueError, match="on 1 channels has at most 18 filters. Received: filters=20"):
        decorrelating((3, 3, 1, 20))

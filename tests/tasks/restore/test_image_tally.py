import numpy as np
import pytest

metrics = pytest.importorskip("skimage.metrics")

from skimage.color import rgb2ycbcr  # noqa: E402

from keras_vit.tasks.restore.image_tally import ImageTally  # noqa: E402

RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 256, (3, 24, 30, 3)).astype("float32")
FOUND = TRUE + RNG.normal(size=TRUE.shape) * [[[[5]]], [[[20]]], [[[0]]]]


def test_luma_without_borders_is_scikit_image_s():
    tally = ImageTally(border=3)
    scores = tally.add({"originals": TRUE}, FOUND)
    wanted = []
    for true, found in zip(TRUE[:2], FOUND[:2]):
        pair = [rgb2ycbcr(x / 255)[3:-3, 3:-3, 0] for x in (true.astype("float64"), found.clip(0, 255).round())]
        more = dict(gaussian_weights=True, sigma=1.5, use_sample_covariance=False)
        wanted.append(
            (
                metrics.peak_signal_noise_ratio(*pair, data_range=255),
                metrics.structural_similarity(*pair, data_range=255, **more),
            )
        )
    np.testing.assert_allclose(scores, [*np.array(wanted)[:, 0], 100.0], atol=1e-6)  # equal images: 100
    np.testing.assert_allclose(tally.result()["psnr"], scores.mean(), atol=1e-6)
    np.testing.assert_allclose(tally.result()["ssim"], np.mean([*np.array(wanted)[:, 1], 1]), atol=1e-6)


def test_colors_and_gray_images():
    tally = ImageTally(of_luma=False)
    scores = tally.add({"originals": TRUE[:1]}, FOUND[:1])
    error = np.mean((TRUE[0] - FOUND[0].clip(0, 255).round()) ** 2)
    np.testing.assert_allclose(scores, 10 * np.log10(255**2 / error), atol=1e-6)
    gray = ImageTally()
    one = gray.add({"originals": TRUE[..., :1]}, TRUE[..., :1] + 1)
    three = gray.add({"originals": TRUE[..., :1].repeat(3, -1)}, TRUE[..., :1].repeat(3, -1) + 1)
    np.testing.assert_allclose(one, three, atol=1e-6)


def test_the_given_image_is_measured_too():
    small, original = np.full((1, 4, 4, 3), 90.0), np.full((1, 8, 8, 3), 100.0)
    tally = ImageTally(of_luma=False, enlarged=lambda image: image.repeat(2, 0).repeat(2, 1) + 5.4)
    tally.add({"images": small, "originals": original}, original)
    assert tally.result() == {"psnr": 100.0, "input_psnr": pytest.approx(20 * np.log10(255 / 5))}  # 95.4 rounds to 95


def test_images_smaller_than_the_window_have_no_similarity():
    tally = ImageTally()
    tally.add({"originals": TRUE[:, :8, :8]}, FOUND[:, :8, :8])
    assert tally.result().keys() == {"psnr"} and ImageTally().result() == {} and tally.figures() == {}


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install .keras-vision-transformers.restoration"):
        ImageTally()

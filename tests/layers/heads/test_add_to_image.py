import numpy as np
import pytest
from PIL import Image

from keras_vit.layers import AddToImage
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (2, 8, 10, 3)).astype("float32")


def changes(scale=1, channels=3):
    return RNG.normal(size=(2, 8 * scale, 10 * scale, channels)).astype("float32")


@pytest.mark.parametrize("scale, given, found", [(1, 3, 3), (2, 1, 3), (3, 3, 3)])
def test_layer(scale, given, found, tmp_path):
    make = lambda dtype: AddToImage(scale=scale, dtype=dtype)  # noqa: E731
    shape = (2, 8 * scale, 10 * scale)
    run_layer_test(make, [IMAGES.shape, (*shape, given)], (*shape, found), [], tmp_path)


def test_enlarges_as_pillow_does():
    images = 64 + IMAGES // 2  # so that Pillow, which clips and rounds twice, clips nothing
    got = np.asarray(AddToImage(scale=2)([images, 0 * changes(2)]))
    for image, enlarged in zip(images, got):
        wanted = Image.fromarray(image.astype("uint8")).resize((20, 16), Image.Resampling.BICUBIC)
        np.testing.assert_allclose(enlarged, np.asarray(wanted), atol=1.1)


def test_adds_changes_to_pixels():
    added = changes()
    np.testing.assert_allclose(np.asarray(AddToImage()([IMAGES, added])), IMAGES + 127.5 * added, atol=1e-3)
    one = changes(channels=1)
    np.testing.assert_allclose(np.asarray(AddToImage()([IMAGES, one])), IMAGES + 127.5 * one, atol=1e-3)


def test_keeps_the_brightness_of_gray_images():
    gray = IMAGES[..., :1]
    got = np.asarray(AddToImage(keep_brightness=True)([gray, changes()]))
    assert got.shape == (2, 8, 10, 3) and np.ptp(got, axis=-1).max() > 10
    np.testing.assert_allclose(got @ np.float32([[0.299], [0.587], [0.114]]), gray, atol=1e-3)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="`scale` must be a positive integer. Received: scale=0"):
        AddToImage(scale=0)
    with pytest.raises(
        ValueError, match=r"\(batch, 16, 20, 1 or 3\), 2 times as large as the images. Received: images"
    ):
        AddToImage(scale=2)([IMAGES, changes()])
    with pytest.raises(ValueError, match="Received: images .* changes"):
        AddToImage()([IMAGES, changes(channels=2)])

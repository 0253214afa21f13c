import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter1d

from keras_vit import preprocess, vit
from keras_vit.preparing.padded import padded_matrices

pytestmark = pytest.mark.backend
PHOTO = np.random.default_rng(0).integers(0, 256, (30, 47, 3)).astype("uint8")


def reference(image, size):
    """Pads to a square, filters each axis as SciPy does, and interpolates bilinearly at the pixels' centers."""
    side = max(image.shape[:2])
    square = np.zeros((side, side, 3))
    square[: image.shape[0], : image.shape[1]] = image
    factors = np.array([side, side]) / size
    for axis, factor in enumerate(factors[::-1] if (factors > 1).all() else ()):
        sigma = (factor - 1) / 2
        square = gaussian_filter1d(square, sigma, axis=axis, mode="mirror", radius=int(np.ceil(3 * sigma)))
    for axis, want in enumerate(size):
        at = np.clip((np.arange(want) + 0.5) * side / want - 0.5, 0, side - 1)
        low = np.minimum(at.astype(int), side - 2)
        part = np.moveaxis(square, axis, -1)
        square = np.moveaxis(part[..., low] * (1 - at + low) + part[..., low + 1] * (at - low), -1, axis)
    return square


@pytest.mark.parametrize("size", [(16, 16), (24, 16), (64, 64), (64, 16)])
def test_an_image_is_padded_filtered_and_resized(size):
    rows, columns = padded_matrices(PHOTO.shape[:2], size)
    found = np.einsum("ri,ijc,sj->rsc", rows, PHOTO, columns)
    np.testing.assert_allclose(found, reference(PHOTO, size), atol=1e-6)


def test_models_see_images_so(tmp_path):
    model = vit("mu/4", image_size=16, depth=1, metadata={"evaluation": {"resize": "pad"}})
    Image.fromarray(PHOTO).save(tmp_path / "a.png")
    found = preprocess(model, [tmp_path / "a.png", np.swapaxes(PHOTO, 0, 1)])
    np.testing.assert_allclose(found[0], reference(PHOTO, (16, 16)), atol=1e-3)
    np.testing.assert_allclose(found[1], np.swapaxes(found[0], 0, 1), atol=1e-3)
    assert not found[0, 13:].any()  # black, below


def test_what_is_padded_is_black_in_every_range():
    low = vit("mu/4", image_size=16, depth=1, value_range=(-1, 1), metadata={"evaluation": {"resize": "pad"}})
    found = preprocess(low, PHOTO / 127.5 - 1)
    np.testing.assert_allclose(found[0], reference(PHOTO, (16, 16)) / 127.5 - 1, atol=1e-5)

import numpy as np
import pytest

import keras_vit
from keras_vit.frozen import pca
from keras_vit.utils.warned import LeftOut

pytestmark = pytest.mark.backend


@pytest.fixture(scope="module")
def square():
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap")
    images = np.random.default_rng(0).normal(60, 3, (2, 32, 32, 3))
    images[:, 12:24, 12:24] += (120, -30, 60)  # patches 3 to 5
    return model, np.clip(images, 0, 255).astype("uint8")


def test_an_object_is_the_foreground(square):
    model, images = square
    colors = keras_vit.pca_image(model, images)
    assert colors.shape == (2, 8, 8, 3) and colors.dtype == "float32"
    assert colors.min() >= 0 and colors.max() <= 1
    inside = np.zeros((8, 8), bool)
    inside[3:6, 3:6] = True
    assert (colors.max(-1)[:, inside] > 0).mean() > 0.8 and not colors[:, ~inside].any()


def test_without_foreground_all_patches_have_colors(square):
    model, images = square
    colors = keras_vit.pca_image(model, images, foreground=False)
    assert (colors.max(-1) > 0).mean() > 0.9
    alone = keras_vit.pca_image(model, images[:1], foreground=False)
    assert not np.allclose(alone, colors[:1])  # the basis is of all images together


def test_patches_that_are_all_alike_are_refused():
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, position=None, pooling="gap")
    with pytest.raises(ValueError, match="Three components need 4 patches with different features"):
        keras_vit.pca_image(model, np.zeros((1, 32, 32, 3), "uint8"))


def test_one_bad_file_does_not_end_the_others(square, tmp_path):
    model, images = square
    (tmp_path / "bad.png").write_bytes(b"no image")
    given = [images[0], tmp_path / "bad.png", images[1]]
    with pytest.warns(LeftOut, match="Left out 1 of 3 images"):
        colors = keras_vit.pca_image(model, given, bad_images="skip")
    assert np.isnan(colors[1]).all()
    np.testing.assert_allclose(colors[[0, 2]], keras_vit.pca_image(model, images), atol=1e-5)
    with pytest.raises(ValueError, match="bad.png' is not a PNG"):
        keras_vit.pca_image(model, given)


def test_in_tiles_an_object_is_painted_where_it_is(tmp_path):
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap", position=None)
    images = [np.random.default_rng(1).normal(60, 3, (*sides, 3)) for sides in ((70, 90), (64, 41))]
    for image in images:
        image[20:36, 24:36] += (120, -30, 60)  # on a seam of tiles; rows 5 to 8, columns 6 to 8 of the patches
    images = [np.clip(image, 0, 255).astype("uint8") for image in images]
    np.save(tmp_path / "a.npy", images[0])
    (tmp_path / "bad.png").write_bytes(b"no image")
    given = [tmp_path / "a.npy", tmp_path / "bad.png", images[1]]
    with pytest.warns(LeftOut, match="Left out 1 of 3 images") as caught:
        first, none, second = keras_vit.pca_image(model, given, tiles=True, bad_images="skip")
    assert len([warning for warning in caught if warning.category is LeftOut]) == 1
    assert first.shape == (18, 23, 3) and second.shape == (16, 11, 3) and np.isnan(none).all()
    for colors in (first, second):
        inside = np.zeros(colors.shape[:2], bool)
        inside[5:9, 6:9] = True
        assert (colors.max(-1)[inside] > 0).mean() > 0.8 and not colors[~inside].any()


def test_images_of_one_tile_have_the_colors_they_have_without(square):
    model, images = square
    for foreground in (True, False):
        found = keras_vit.pca_image(model, images, foreground=foreground, tiles={"overlap": 0.5})
        plain = keras_vit.pca_image(model, images, foreground=foreground)
        np.testing.assert_allclose(np.stack(found), plain, atol=1e-3)


def test_components_of_some_patches_are_those_of_all(square, monkeypatch):
    model, _ = square
    image = np.random.default_rng(1).integers(0, 60, (160, 160, 3)).astype("uint8")
    image[:, 80:] += 150
    every = keras_vit.pca_image(model, image, foreground=False, tiles=True)[0]
    monkeypatch.setattr(pca, "SAMPLE", 500)
    some = keras_vit.pca_image(model, image, foreground=False, tiles=True)[0]
    assert np.corrcoef(every[..., 0].ravel(), some[..., 0].ravel())[0, 1] > 0.99

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data, Recipe, Restore
from keras_vit.data import sources
from keras_vit.data.readers import whole

SIDES = ((20, 31), (33, 16))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, sides in enumerate(SIDES):
        Image.fromarray(rng.integers(0, 256, (*sides, 3), "uint8")).save(tmp_path / f"{i}.png")
    return tmp_path


def test_images_come_alone_at_their_own_size_and_degraded(folder):
    task = Restore(scale=3, noise=2.0)
    recipe = Recipe(name="x", model={}, task=task, data=Data(source=f"folder:{folder}"))
    source = sources.load(recipe.data, "all", ())
    found = list(whole.whole_arrays(source, recipe, (8, 8, 3)))
    for path, example in zip(source.images, found, strict=True):
        pixels = np.asarray(Image.open(path))
        height, width = (side // 3 * 3 for side in pixels.shape[:2])
        np.testing.assert_array_equal(example["originals"], pixels[None, :height, :width])
        assert example["images"].shape == (1, height // 3, width // 3, 3)
    again = list(whole.whole_arrays(source, recipe, (8, 8, 3)))
    np.testing.assert_array_equal(found[1]["images"], again[1]["images"])
    gray = Recipe(name="x", model={}, task=Restore(gray=True), data=recipe.data)
    example = next(whole.whole_arrays(source, gray, (8, 8, 1)))
    assert example["images"].shape[-1] == 1 and example["originals"].shape[-1] == 3
    source = sources.load(recipe.data, "all", ())
    (folder / "1.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="was readable when it was checked"):
        list(whole.whole_arrays(source, recipe, (8, 8, 3)))

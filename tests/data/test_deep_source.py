import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_vit import Recipe, config
from keras_vit.config import Augment, Data
from keras_vit.data import deep_source, pipeline, sources

tifffile = pytest.importorskip("tifffile")
pytest.importorskip("imagecodecs")
RANDOM = np.random.default_rng(0)
VALUES = RANDOM.integers(0, 65536, (8, 4, 20, 30)).astype("uint16")
RANGE = ((0, 65535), (1000, 60_000), (0, 30_000), (-5, 70_000))


@pytest.fixture
def folder(tmp_path):
    for i, values in enumerate(VALUES):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        tifffile.imwrite(tmp_path / "ab"[i % 2] / f"{i}.tif", values, photometric="minisblack", planarconfig="separate")
    return tmp_path


def load(folder, **options):
    data = Data(source=f"folder:{folder}", batch_size=4, **options)
    return sources.load(data, "all"), data


def test_batches_are_the_files_numbers(folder):
    source, data = load(folder, value_range=RANGE)
    assert source.bands == 4 and source.channels == (4,)
    recipe = Recipe("a", {"image_size": (20, 30), "channels": 4}, data=data)
    recipe = dataclasses.replace(recipe, task=recipe.task.on(source, {"num_classes": 2}))
    clipped = np.clip(VALUES.transpose(0, 2, 3, 1).astype("float32"), *np.array(RANGE, "float32").T)
    order = [int(str(path).rpartition("/")[2][0]) for path in source.images]
    found = np.concatenate([batch["images"] for batch in pipeline.evaluation_arrays(source, recipe, (20, 30, 4))])
    np.testing.assert_allclose(found, clipped[order], atol=0.02)
    batch = next(iter(pipeline.training_batches(source, recipe, (20, 30, 4))))[0].numpy()
    assert all(np.abs(clipped - image).max((1, 2, 3)).min() < 0.02 for image in batch)


def test_augmentations_work_on_bands(folder):
    source, data = load(folder, value_range=RANGE)
    for settings in (
        Augment(crop="inception", flip=True, erase=0.9, mixup=0.5),
        Augment(crop="padded", rotation=20.0, scale=0.2, cutmix=1.0),
    ):
        recipe = config.check_recipe(
            Recipe("a", {"image_size": 16, "channels": 4, "num_classes": 2}, data=data, augment=settings)
        )
        recipe = dataclasses.replace(recipe, task=recipe.task.on(source, {"num_classes": 2}))
        low, high = np.array(RANGE, "float32").T
        for images, _ in pipeline.training_batches(source, recipe, (16, 16, 4)):
            assert images.shape == (4, 16, 16, 4) and np.isfinite(images).all()
            assert (images >= low - 0.1).numpy().all() and (images <= high + 0.1).numpy().all()
            assert np.ptp(images[..., 0]) > 1000


@pytest.mark.parametrize("option", ["jitter", "randaugment"])
def test_augmentations_of_color_are_refused(option):
    augment = Augment(**{option: 1 if option == "randaugment" else 0.5})
    with pytest.raises(ValueError, match=f"augment.{option} needs images of 1 or 3 channels. Received: channels=4"):
        config.check_recipe(Recipe("a", {"image_size": 16, "channels": 4}, augment=augment))


def test_what_is_refused(folder):
    for options, words in (
        ({}, r"need data.value_range: .* Received: '.*tif' of uint16"),
        ({"value_range": RANGE, "bands": (5,)}, "has the bands 1 to 4"),
    ):
        with pytest.raises(ValueError, match=words):
            load(folder, **options)
    source, _ = load(folder, value_range=RANGE, bands=(4, 1))
    assert source.bands == 2
    tifffile.imwrite(folder / "a" / "9.tif", VALUES[0, :3], photometric="minisblack", planarconfig="separate")
    with pytest.raises(ValueError, match=r"the same number of bands, or data.bands .* Received: . in .* and . in "):
        load(folder, value_range=RANGE)
    tifffile.imwrite(folder / "a" / "9.tif", VALUES[0], photometric="minisblack")
    with pytest.raises(ValueError, match="9.tif' has 4 pages: data.pages="):
        load(folder, value_range=RANGE)
    assert load(folder, value_range=RANGE, pages="bands")[0].bands == 4
    values = VALUES[0].astype("float32")
    values[0, 3, 4] = np.nan
    tifffile.imwrite(folder / "a" / "9.tif", values, photometric="minisblack", planarconfig="separate")
    with pytest.raises(ValueError, match="9.tif' has pixels of NaN, .* data.no_data='nan'"):
        load(folder, value_range=RANGE)
    assert len(load(folder, value_range=RANGE, no_data="nan")[0]) == 9
    for other in (-9999, "file"):
        with pytest.raises(ValueError, match="9.tif' has pixels of NaN, .* Received: data.no_data="):
            load(folder, value_range=RANGE, no_data=other)
    with pytest.raises(ValueError, match="data.value_range is for folders of pictures, and arrays of them"):
        sources.load(Data(value_range=(0, 1)), "all")


def test_eight_bits_need_no_option(tmp_path):
    for i, values in enumerate(VALUES[:, :3].astype("uint8")):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        tifffile.imwrite(tmp_path / "ab"[i % 2] / f"{i}.tif", values.transpose(1, 2, 0), photometric="rgb")
    source, data = load(tmp_path)
    assert source.bands == 3
    recipe = Recipe("a", {"image_size": (20, 30)}, data=data)
    recipe = dataclasses.replace(recipe, task=recipe.task.on(source, {"num_classes": 2}))
    found = np.concatenate([batch["images"] for batch in pipeline.evaluation_arrays(source, recipe, (20, 30, 3))])
    order = [int(str(path).rpartition("/")[2][0]) for path in source.images]
    np.testing.assert_array_equal(found, VALUES[order][:, :3].astype("uint8").transpose(0, 2, 3, 1))


def test_arrays(tmp_path):
    images = VALUES.transpose(0, 2, 3, 1)
    data = Data(value_range=RANGE, batch_size=4)
    np.testing.assert_array_equal(deep_source.of_arrays(images, data, (20, 30, 4)), images)
    picked = deep_source.of_arrays(images, dataclasses.replace(data, bands=(4, 1)), (20, 30, 2))
    np.testing.assert_array_equal(picked, images[..., [3, 0]])
    holes = images.astype("float32")
    holes[2, 3, 4, 1] = np.nan
    with pytest.raises(ValueError, match="must be finite numbers, or data.no_data='nan' masks NaN"):
        deep_source.of_arrays(holes, data, (20, 30, 4))
    found = deep_source.of_arrays(holes, dataclasses.replace(data, no_data="nan"), (20, 30, 4))
    assert np.isfinite(found).all() and (found != holes).sum() == 1
    for options, words in (({"bands": (5,)}, "numbers from 1 to 4"), ({"pages": "bands"}, "are for files")):
        with pytest.raises(ValueError, match=words):
            deep_source.of_arrays(images, dataclasses.replace(data, **options), (20, 30, 4))


def test_scaled_clips_and_masks():
    data = Data(value_range=((0, 10), (-10, 10)))
    found = deep_source.scaled(tf.constant([[[5.0, np.nan], [-3.0, 99.0]]]), data).numpy()
    np.testing.assert_allclose(found, [[[127.5, 0], [0, 255]]])
    back = deep_source.in_units({"images": found}, data)["images"]
    np.testing.assert_allclose(back, [[[5, -10], [0, 10]]])


def test_pngs_of_16_bits(tmp_path):
    from PIL import Image

    for i, values in enumerate(VALUES):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(values[0]).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    assert load(tmp_path)[0].bands is None  # the upper eight bits, as ever
    source, data = load(tmp_path, value_range=(0, 65535))
    assert source.bands == 1
    recipe = Recipe("a", {"image_size": (20, 30), "channels": 1}, data=data)
    recipe = dataclasses.replace(recipe, task=recipe.task.on(source, {"num_classes": 2}))
    found = np.concatenate([batch["images"] for batch in pipeline.evaluation_arrays(source, recipe, (20, 30, 1))])
    order = [int(str(path).rpartition("/")[2][0]) for path in source.images]
    np.testing.assert_allclose(found[..., 0], VALUES[order, 0], atol=0.01)


def test_weights_of_bands_need_a_range():
    import keras_vit

    small = dict(image_size=16, width=8, depth=1, num_heads=1, mlp_dim=8, patch_size=8, num_classes=2)
    of_bands = keras_vit.vit(**small, value_range=[[0, 9], [0, 9], [0, 99]])
    with pytest.raises(ValueError, match="data.value_range must be given. Received: data.value_range=None"):
        deep_source.check_model(of_bands, Data())
    deep_source.check_model(of_bands, Data(value_range=(0, 9)))
    deep_source.check_model(keras_vit.vit(**small), Data())


def test_eight_bits_among_more_are_refused(folder):
    tifffile.imwrite(
        folder / "b" / "8.tif", VALUES[0].astype("uint8"), photometric="minisblack", planarconfig="separate"
    )
    with pytest.raises(ValueError, match="must not be mixed. Received: '.*8.tif' of 8 bits and '.*' of more"):
        load(folder, value_range=RANGE)


def test_a_file_that_changes_later_is_named(folder):
    source, data = load(folder, value_range=RANGE)
    recipe = Recipe("a", {"image_size": (20, 30), "channels": 4}, data=data)
    recipe = dataclasses.replace(recipe, task=recipe.task.on(source, {"num_classes": 2}))
    values = VALUES[1].astype("float32")
    values[2, 3, 4] = np.nan
    tifffile.imwrite(folder / "b" / "1.tif", values, photometric="minisblack", planarconfig="separate")
    with pytest.raises(ValueError, match="^'.*b/1.tif' has NaN or infinite pixels: data.no_data='nan' masks NaN.$"):
        list(pipeline.evaluation_arrays(source, recipe, (20, 30, 4)))
    (folder / "b" / "1.tif").write_bytes(b"II*")
    with pytest.raises(ValueError, match="1.tif' was readable when it was checked, and now is not: is not a TIFF"):
        list(pipeline.evaluation_arrays(source, recipe, (20, 30, 4)))

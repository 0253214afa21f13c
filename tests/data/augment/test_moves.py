"""A mask goes where its image goes: seen by a mask that is drawn as an image too."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras_vit  # noqa: E402
from keras_vit.config import Augment, Data, Optim, Recipe  # noqa: E402
from keras_vit.data import pipeline  # noqa: E402
from keras_vit.data.augment import crops  # noqa: E402
from keras_vit.data.sources import Source  # noqa: E402
from keras_vit.utils import instance_maps  # noqa: E402
from keras_vit.utils.depth_maps import npy_bytes  # noqa: E402
from tests.data.augment.test_masks import png  # noqa: E402
from tests.marks import few  # noqa: E402

RNG = np.random.default_rng(0)
ROWS, COLUMNS = np.mgrid[:61, :80]
SHAPE = (((ROWS - 25) / 20) ** 2 + ((COLUMNS - 30) / 22) ** 2 < 1) | ((ROWS > 35) & (COLUMNS > 45) & (COLUMNS < 72))
MASK = SHAPE.astype("uint8")[..., None]
IMAGE = np.repeat(MASK * 255, 3, axis=-1)
BATCH = RNG.integers(0, 200, (12, 9, 7, 1)).astype("uint8")


def agree(images, masks, share=0.8):
    """Checks masks against the images of the same shape where these are not at its edge: black or white."""
    images, masks = np.asarray(images)[..., 0], np.asarray(masks)[..., 0]
    plain = (images < 1e-3) | (images > 255 - 1e-3)
    assert plain.mean() > share and masks.dtype == np.uint8 and set(np.unique(masks)) <= {0, 1}
    np.testing.assert_array_equal(masks[plain], images[plain] > 127)


@few(4)
@pytest.mark.parametrize("kind", ["pixels", "files"])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize(
    "size, crop",
    [
        ((32, 32, 3), {"crop": "inception", "flip": True}),
        ((50, 150, 1), {"crop": "inception", "crop_area": 0.3}),
        ((32, 40, 3), {"crop": "window", "crop_shrink": 1.4, "flip": True}),
        ((24, 50, 3), {"crop": None}),
        ((24, 50, 3), {"resize": 60}),
        ((61, 80, 3), {"resize": None}),
    ],
)
def test_a_mask_is_cut_where_its_image_is(size, crop, antialias, kind):
    data = Data(resize=crop.get("resize"), antialias=antialias)
    settings = None if "resize" in crop else Augment(**crop)
    encoded = tf.io.encode_png(IMAGE) if kind == "files" else tf.constant(IMAGE[..., : size[2]])
    items = {"images": encoded, "segmentation_masks": tf.constant(png(MASK[..., 0])) if kind == "files" else MASK}

    def cut(numbers):
        items_now = {name: tf.convert_to_tensor(item) for name, item in items.items()}
        if settings is None:
            return crops.evaluation_example(items_now, size, data)
        return crops.training_example(items_now, size, data, settings, numbers)

    numbers = tf.constant(RNG.random((8, 4)), "float32")
    found = tf.data.Dataset.from_tensor_slices(numbers).map(cut).batch(8).get_single_element()
    assert found["segmentation_masks"].shape == (8, *size[:2], 1)
    agree(found["images"], found["segmentation_masks"])


def test_a_jpeg_s_mask_is_cut_too():
    photograph = {"images": tf.io.encode_jpeg(IMAGE, quality=100), "segmentation_masks": tf.constant(png(MASK[..., 0]))}
    numbers = tf.constant([0.3, 0.6, 0.1, 0.2])
    settings = Augment(crop="inception", flip=True)
    found = crops.training_example(photograph, (32, 32, 3), Data(), settings, numbers)
    assert np.mean((found["images"][..., 0] > 127) == (found["segmentation_masks"][..., 0] == 1)) > 0.98


def test_windows_of_whole_pixels_are_exact():
    settings = Augment(crop="window", flip=True)
    image = (BATCH[0].repeat(7, 0)[:61].repeat(12, 1)[:, :80]).repeat(3, -1)
    for numbers in RNG.random((6, 4)):
        items = {"images": tf.constant(image), "segmentation_masks": tf.constant(image[..., :1])}
        found = crops.training_example(items, (40, 40, 3), Data(), settings, tf.constant(numbers, "float32"))
        np.testing.assert_array_equal(found["images"][..., :1], found["segmentation_masks"])


def test_a_mask_of_another_size_is_refused():
    items = {"images": tf.constant(IMAGE), "segmentation_masks": tf.constant(MASK[1:])}
    with pytest.raises(tf.errors.InvalidArgumentError, match="A mask must have the size of its image"):
        crops.evaluation_example(items, (8, 8, 3), Data())


def test_depth_is_cut_where_its_image_is():
    depth = 1 + IMAGE[..., :1].astype("float32")
    depth[:30, :20] = np.nan  # holes stay holes
    items = {"images": tf.constant(IMAGE), "depths": tf.constant(depth), "segmentation_masks": tf.constant(MASK)}
    files = items | {"depths": tf.constant(npy_bytes(depth[..., 0]))}
    for numbers in RNG.random((6, 4)):
        settings = Augment(crop="inception", flip=True)
        found = [crops.training_example(each, (32, 40, 3), Data(), settings, numbers) for each in (items, files)]
        np.testing.assert_array_equal(found[0]["depths"], found[1]["depths"])
        known = found[0]["depths"].numpy() > 0
        np.testing.assert_array_equal(found[0]["depths"][known] > 1, found[0]["segmentation_masks"][known] == 1)


def test_objects_are_cut_where_their_image_is_and_keep_their_values():
    objects = np.where(MASK == 1, 16_000_007, -2).astype("int32")  # more than float32 tells apart
    items = {"images": tf.constant(IMAGE), "instance_masks": tf.constant(objects), "segmentation_masks": MASK}
    items = {name: tf.convert_to_tensor(item) for name, item in items.items()}
    files = items | {"instance_masks": tf.constant(instance_maps.png(objects))}
    for numbers in RNG.random((6, 4)):
        settings = Augment(crop="inception", flip=True)
        found = [crops.training_example(each, (32, 40, 3), Data(), settings, numbers) for each in (items, files)]
        np.testing.assert_array_equal(found[0]["instance_masks"], found[1]["instance_masks"])
        assert found[0]["instance_masks"].dtype == tf.int32 and found[1]["instance_masks"].shape == (32, 40, 1)
        expected = np.where(found[0]["segmentation_masks"].numpy() == 1, 16_000_007, -2)
        np.testing.assert_array_equal(found[0]["instance_masks"], expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="A mask must have the size of its image"):
        crops.evaluation_example(files | {"images": items["images"][1:]}, (8, 8, 3), Data())


@pytest.mark.parametrize("kind", ["arrays", "files"])
def test_objects_come_out_of_the_pipeline_as_they_went_in(kind):
    """Also from images of other sizes, cut, shifted, warped and flipped: values stay whole, and -1 is outside."""

    class Own(keras_vit.Task):
        targets = ("instance_masks",)

        def batch(self, examples, settings, seed):
            return examples["images"], examples["instance_masks"]

    maps = np.tile(np.where(MASK == 1, 5001, -7).astype("int32"), (4, 1, 1, 1))
    targets = np.array([instance_maps.png(one) for one in maps], object) if kind == "files" else maps
    source = Source(np.tile(IMAGE, (4, 1, 1, 1)), {"instance_masks": targets}, tuple("abcdef"))
    settings = Augment(crop="padded", crop_padding=4, rotation=20.0, flip=True)
    recipe = Recipe(name="x", model={}, task=Own(), data=Data(batch_size=2), augment=settings, optim=Optim(epochs=1))
    images, found = next(pipeline.training_batches(source, recipe, (32, 40, 3), first_epoch=0).as_numpy_iterator())
    assert found.shape == (2, 32, 40, 1) and found.dtype == np.int32 and {*np.unique(found)} == {5001, -7, -1}
    agree(images, (found == 5001).astype("uint8"), share=0.7)
    evaluated = next(pipeline.evaluation_batches(source, recipe, (61, 80, 3)).as_numpy_iterator())[1]
    np.testing.assert_array_equal(evaluated, maps[:2])
    raw = next(pipeline.evaluation_arrays(source, recipe, (32, 40, 3)))["instance_masks"]
    np.testing.assert_array_equal(instance_maps.pixels(raw[0]), maps[0, ..., 0])

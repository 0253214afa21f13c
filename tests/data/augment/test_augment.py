import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment  # noqa: E402
from keras_vit.data.augment.augment import augment  # noqa: E402
from keras_vit.data.draws import draws  # noqa: E402
from tests.marks import few, slow  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (64, 9, 9, 3)).astype("float32")
EVERYTHING = dict(crop="padded", crop_padding=2, rotation=20.0, scale=0.2, shear=0.2, translation=0.1, flip=True,
                  jitter=0.3, randaugment=2, erase=0.5)  # fmt: skip


def run(images=IMAGES, seed=3, epoch=5, first=0, **settings):
    return augment({"images": tf.constant(images)}, Augment(**settings), draws(seed, epoch, first))["images"].numpy()


def test_nothing_asked_changes_nothing():
    np.testing.assert_array_equal(run(), IMAGES)


@slow
@few(1)
@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_draws_by_seed_epoch_and_position_alone(channels):
    signature = [tf.TensorSpec((None, 9, 9, channels)), *[tf.TensorSpec((), "int64")] * 3]
    compiled = tf.function(
        lambda i, s, e, f: augment({"images": i}, Augment(**EVERYTHING), draws(s, e, f))["images"], signature
    )

    def run(images, seed=3, epoch=5, first=0):
        return compiled(images, seed, epoch, first).numpy()

    images = IMAGES[..., :channels]
    first = run(images)
    assert first.shape == images.shape and first.min() >= 0 and first.max() <= 255
    np.testing.assert_array_equal(first, run(images))
    np.testing.assert_array_equal(first[40:50], run(images[40:50], first=40))
    for other in (dict(seed=4), dict(epoch=6)):
        assert (first != run(images, **other)).any(axis=(1, 2, 3)).mean() > 0.9
    same = run(np.repeat(images[:1], 64, axis=0))
    assert len({image.tobytes() for image in same}) > 55


def test_flip_mirrors_half_of_the_images():
    images = np.repeat(IMAGES[:1], 4000, axis=0)
    flipped = run(images, flip=True)
    mirrored, kept = ((flipped == other).all(axis=(1, 2, 3)) for other in (images[:, :, ::-1], images))
    assert (mirrored ^ kept).all() and abs(mirrored.sum() - 2000) < 5 * np.sqrt(1000)


SHAPES = (np.hypot(*(np.mgrid[:32, :32] - 13)) < 9).astype("uint8")[None, ..., None].repeat(24, 0)


def both(masks=SHAPES, **settings):
    """Augments masks, and images that show them in white."""
    examples = {"images": tf.constant(masks * 255.0, "float32"), "segmentation_masks": tf.constant(masks)}
    found = augment(examples, Augment(**settings), draws(3, 5, 0))
    return found["images"].numpy(), found["segmentation_masks"].numpy()


ALL = dict(rotation=20.0, scale=0.2, shear=0.2, translation=0.2, flip=True, crop="padded", crop_padding=5)
ONE = [dict(rotation=40.0), dict(scale=0.4), dict(shear=0.4), dict(translation=0.3)]


@pytest.mark.parametrize("settings", [*ONE, ALL], ids=str)
def test_masks_go_where_their_images_go(settings):
    images, masks = both(**settings)
    inside = masks != 255
    plain = inside & ((images == 0) | (images > 255 - 1e-2))
    assert plain.sum() > 0.8 * inside.sum() and (masks != SHAPES).any(axis=(1, 2, 3)).mean() > 0.9
    np.testing.assert_array_equal(masks[plain], images[plain] > 127)
    white, ones = both(np.ones_like(SHAPES), **settings)
    assert (ones[white == 0] == 255).all() and (ones[white > 255 - 1e-2] == 1).all() and (ones == 255).any()


def test_colors_leave_targets_alone():
    masks = both(jitter=0.4, erase=0.5)[1]
    np.testing.assert_array_equal(masks, SHAPES)
    examples = {"images": tf.constant(IMAGES), "labels": tf.range(64)}
    found = augment(examples, Augment(**EVERYTHING), draws(3, 5, 0))
    np.testing.assert_array_equal(found["labels"], np.arange(64))
    np.testing.assert_array_equal(found["images"], run(**EVERYTHING))


def test_randaugment_moves_images_alone_and_is_refused_with_masks():
    with pytest.raises(ValueError, match="moves images only. Received: examples with segmentation_masks"):
        both(randaugment=1)

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment  # noqa: E402
from keras_vit.data.augment import augment, grey  # noqa: E402
from keras_vit.data.draws import draws  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (64, 9, 9, 3)).astype("float32")
EVERYTHING = dict(crop="padded", crop_padding=2, rotation=20.0, scale=0.2, shear=0.2, translation=0.1, flip=True,
                  jitter=0.3, randaugment=2, erase=0.5)  # fmt: skip


def run(images=IMAGES, seed=3, epoch=5, first=0, **settings):
    return augment({"images": tf.constant(images)}, Augment(**settings), draws(seed, epoch, first))["images"].numpy()


def dot(row, column):
    """Images with one bright pixel."""
    images = np.zeros((200, 9, 9, 1), "float32")
    images[:, row, column] = 255
    return images


def centres(images):
    """Centre of mass of each image, (row, column), from the middle."""
    weight = images[..., 0] / images[..., 0].sum(axis=(1, 2), keepdims=True)
    at = np.arange(9) - 4
    return np.stack([(weight.sum(2) * at).sum(1), (weight.sum(1) * at).sum(1)], axis=1)


def test_nothing_asked_changes_nothing():
    np.testing.assert_array_equal(run(), IMAGES)


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


def test_a_padded_crop_is_a_window_of_the_padded_image():
    cut = run(crop="padded", crop_padding=2)
    padded = np.pad(IMAGES, ((0, 0), (2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (9, 9), (1, 2)).transpose(0, 1, 2, 4, 5, 3)
    matches = (windows == cut[:, None, None]).all(axis=(3, 4, 5))  # (64, 5, 5)
    np.testing.assert_array_equal(matches.sum((1, 2)), 1)
    places = np.argwhere(matches)[:, 1:]
    assert set(places.ravel()) == {0, 1, 2, 3, 4} and abs(np.corrcoef(places.T)[0, 1]) < 0.4
    many = run(np.repeat(IMAGES[:1], 5000, axis=0), crop="padded", crop_padding=1)
    counts = np.unique(many.reshape(5000, -1), axis=0, return_counts=True)[1]
    assert len(counts) == 9 and abs(counts - 5000 / 9).max() < 5 * np.sqrt(5000 / 9)


def test_rotation_turns_about_the_centre_and_stays_in_range():
    moved = centres(run(dot(4, 7), rotation=30.0))
    radius, angle = np.hypot(*moved.T), np.degrees(np.arctan2(moved[:, 0], moved[:, 1]))
    np.testing.assert_allclose(radius, 3, atol=0.3)
    assert 20 < angle.max() <= 31 and -31 <= angle.min() < -20


def test_translation_moves_by_at_most_its_share():
    moved = centres(run(dot(4, 4), translation=0.25))
    assert np.abs(moved).max() <= 0.25 * 9 + 1e-3
    assert moved[:, 0].std() > 0.5 and moved[:, 1].std() > 0.5


def test_scale_moves_along_the_ray():
    moved = centres(run(dot(2, 4), scale=0.5))
    np.testing.assert_allclose(moved[:, 1], 0, atol=1e-3)
    assert -3.2 < moved[:, 0].min() < -2.5 and -1.5 < moved[:, 0].max() < -0.9  # -2 times 0.5 to 1.5


def test_shear_moves_rows_sideways():
    moved = centres(run(dot(1, 4), shear=0.5))
    np.testing.assert_allclose(moved[:, 0], -3, atol=1e-3)
    assert 1 < np.abs(moved[:, 1]).max() <= 1.51


def test_flip_mirrors_half_of_the_images():
    images = np.repeat(IMAGES[:1], 4000, axis=0)
    flipped = run(images, flip=True)
    mirrored, kept = ((flipped == other).all(axis=(1, 2, 3)) for other in (images[:, :, ::-1], images))
    assert (mirrored ^ kept).all() and abs(mirrored.sum() - 2000) < 5 * np.sqrt(1000)


def test_jitter_is_brightness_then_contrast_then_saturation():
    factors = 1 + 0.4 * (2 * draws(3, 5, 0)("jitter", 64, 3).numpy() - 1)
    assert 0.6 <= factors.min() < 0.65 and 1.35 < factors.max() < 1.4
    luma = [0.299, 0.587, 0.114]
    for image, jittered, (brightness, contrast, saturation) in zip(IMAGES, run(jitter=0.4), factors):
        image = np.clip(image * brightness, 0, 255)
        mean = (image @ luma).mean()
        image = np.clip(mean + (image - mean) * contrast, 0, 255)
        plain = (image @ luma)[..., None]
        np.testing.assert_allclose(jittered, np.clip(plain + (image - plain) * saturation, 0, 255), atol=1e-2)
    flat = np.full((64, 5, 5, 1), 100, "float32")  # grey: brightness alone shows
    np.testing.assert_allclose(run(flat, jitter=0.4)[:, 0, 0, 0], 100 * factors[:, 0], rtol=1e-5)


def test_grey_is_luma():
    np.testing.assert_allclose(grey(tf.constant(IMAGES))[..., 0], IMAGES @ [0.299, 0.587, 0.114], rtol=1e-5)
    np.testing.assert_array_equal(grey(tf.constant(IMAGES[..., :1])), IMAGES[..., :1])


def test_erase_blackens_one_rectangle_in_its_share_of_images():
    white = np.full((400, 20, 20, 1), 255, "float32")
    erased = run(white, erase=0.3)[..., 0] == 0
    touched = erased.any(axis=(1, 2))
    assert 0.2 < touched.mean() < 0.4
    for mask in erased[touched]:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        assert mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert 0.005 < mask.mean() < 0.27  # 2 to 20 %, give or take a pixel on each side


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


def test_colours_leave_targets_alone():
    masks = both(jitter=0.4, erase=0.5)[1]
    np.testing.assert_array_equal(masks, SHAPES)
    examples = {"images": tf.constant(IMAGES), "labels": tf.range(64)}
    found = augment(examples, Augment(**EVERYTHING), draws(3, 5, 0))
    np.testing.assert_array_equal(found["labels"], np.arange(64))
    np.testing.assert_array_equal(found["images"], run(**EVERYTHING))


def test_randaugment_moves_images_alone_and_is_refused_with_masks():
    with pytest.raises(ValueError, match="moves images only. Received: segmentation_masks beside them"):
        both(randaugment=1)

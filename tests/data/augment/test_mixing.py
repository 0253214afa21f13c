import functools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment  # noqa: E402
from keras_vit.data.augment import mixing  # noqa: E402
from tests.marks import few  # noqa: E402

BATCH, SIDE = 6, 16
IMAGES = np.ones((BATCH, SIDE, SIDE, 1), "float32") * np.arange(10, 10 + BATCH, dtype="float32")[:, None, None, None]
LABELS = np.eye(BATCH, dtype="float32")


@functools.cache
def batches(count=1000, mixup=0.0, cutmix=0.0):
    """Images `(count, batch, height, width)` and labels `(count, batch, classes)` of as many seeds."""
    settings = Augment(mixup=mixup, cutmix=cutmix)
    one = lambda seed: mixing.mix(tf.constant(IMAGES), tf.constant(LABELS), settings, tf.stack([7, seed]))  # noqa: E731
    images, labels = tf.data.Dataset.range(count).map(one).batch(count).get_single_element()
    return images.numpy()[..., 0], labels.numpy()


def own_weights(labels):
    """The weight of the image's own label, once it is seen that the rest is the label before it."""
    own = labels[:, np.arange(BATCH), np.arange(BATCH)]
    before = labels[:, np.arange(BATCH), np.arange(BATCH) - 1]
    np.testing.assert_allclose(own + before, 1, atol=1e-6)
    np.testing.assert_allclose(labels.sum(-1), 1, atol=1e-6)
    np.testing.assert_array_equal(own, np.repeat(own[:, :1], BATCH, axis=1))  # one weight a batch
    return own[:, 0]


def test_nothing_set_changes_nothing():
    images, labels = mixing.mix(IMAGES, LABELS, Augment(), [1, 2])
    assert images is IMAGES and labels is LABELS


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_mixup_blends_images_and_labels_by_one_weight(alpha):
    images, labels = batches(mixup=alpha)
    own = own_weights(labels)
    assert (own >= 0.5).all() and own.min() < 0.55 and own.max() > 0.99
    np.testing.assert_allclose(images, np.broadcast_to(images[:, :, :1, :1], images.shape))  # all pixels alike
    difference = (IMAGES - np.roll(IMAGES, 1, axis=0))[:, 0, 0, 0]
    recovered = (images[:, :, 0, 0] - np.roll(IMAGES, 1, axis=0)[:, 0, 0, 0]) / difference
    np.testing.assert_allclose(recovered, np.repeat(own[:, None], BATCH, axis=1), atol=1e-4)


def test_cutmix_weighs_labels_by_the_pixels_that_it_put_in():
    images, labels = batches(cutmix=1.0)
    before = np.roll(IMAGES, 1, axis=0)[..., 0]
    pasted = images == before
    assert (pasted | (images == IMAGES[..., 0])).all()
    np.testing.assert_allclose(1 - own_weights(labels), pasted.mean(axis=(2, 3))[:, 0], atol=1e-6)
    for mask in pasted[:, 0]:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        if len(rows):
            assert mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
            assert mask.sum() == len(rows) * len(columns)
    places = pasted[:, 0].mean(axis=0)  # of the box: anywhere, the middle most, no side more than another
    assert places.min() > 0.1 and places[6:10, 6:10].mean() > 1.5 * places[[0, 0, -1, -1], [0, -1, 0, -1]].mean()
    assert abs(places[:, :8].mean() - places[:, 8:].mean()) < 0.06
    assert abs(places[:8].mean() - places[8:].mean()) < 0.06


@few(1)
@pytest.mark.parametrize("alpha", [0.2, 0.8, 1.0, 2.0])
def test_weights_are_beta_distributed(alpha):
    draw = tf.function(lambda: tf.map_fn(lambda i: mixing._beta(alpha, tf.stack([3, i])), tf.range(4000),
                                         fn_output_signature=tf.float32))  # fmt: skip
    values = draw().numpy()
    variance = 1 / (4 * (2 * alpha + 1))
    assert values.min() >= 0 and values.max() <= 1
    assert abs(values.mean() - 0.5) < 4 * np.sqrt(variance / 4000)
    assert values.var() == pytest.approx(variance, rel=0.1)


def test_a_very_small_alpha_gives_no_nan():
    for mixup, cutmix in ((1e-3, 0.0), (0.0, 1e-3)):
        images, labels = batches(50, mixup=mixup, cutmix=cutmix)
        assert np.isfinite(images).all()
        own_weights(labels)


def test_with_both_each_batch_draws_one():
    images, labels = batches(mixup=0.8, cutmix=1.0)
    own_weights(labels)
    known = np.isin(images, IMAGES).all(axis=(1, 2, 3))  # CutMix makes no new values
    assert abs(known.sum() - 500) < 5 * np.sqrt(250)
    np.testing.assert_array_equal(images, batches.__wrapped__(mixup=0.8, cutmix=1.0)[0])  # a function of the seed


def test_examples_become_images_and_one_hot_labels():
    examples = {"images": tf.constant(IMAGES), "labels": tf.range(BATCH)}
    images, labels = mixing.mixed(examples, BATCH, None, [1, 2])
    assert images is examples["images"] and labels.dtype == tf.float32
    np.testing.assert_array_equal(labels, LABELS)
    for found, expected in zip(
        mixing.mixed(examples, BATCH, Augment(mixup=0.5), tf.constant([1, 2])),
        mixing.mix(tf.constant(IMAGES), tf.constant(LABELS), Augment(mixup=0.5), tf.constant([1, 2])),
    ):
        np.testing.assert_array_equal(found, expected)

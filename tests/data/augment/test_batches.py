import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import keras  # noqa: E402

import keras_vit  # noqa: E402
from keras_vit import Augment  # noqa: E402
from tests.marks import slow  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (22, 8, 8, 3)).astype("uint8")
LABELS = np.arange(22) % 4


def dataset(labels=LABELS, images=IMAGES):
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(8)


def passed(data):
    """Returns all images and labels of one pass."""
    return [
        tf.nest.map_structure(lambda *parts: np.concatenate(parts), *part) for part in zip(*data.as_numpy_iterator())
    ]


@slow
@pytest.mark.parametrize("images", [IMAGES, IMAGES.astype("float32"), IMAGES.astype("int32")])
def test_each_pass_draws_anew_and_each_program_the_same(images):
    settings = Augment(rotation=20.0, flip=True, jitter=0.2, erase=0.3)
    made = [keras_vit.augment(dataset(images=images), settings, seed=seed) for seed in (1, 1, 2)]
    (first, labels), (second, _) = passed(made[0]), passed(made[0])
    np.testing.assert_array_equal(labels, LABELS)
    assert labels.dtype == LABELS.dtype and first.dtype == "float32" and first.min() >= 0 and first.max() <= 255
    assert (first != second).any((1, 2, 3)).mean() > 0.9
    for found, again in zip((first, second), (passed(made[1])[0], passed(made[1])[0])):
        np.testing.assert_array_equal(found, again)
    assert (first != passed(made[2])[0]).any((1, 2, 3)).mean() > 0.9
    assert made[0].cardinality() == 3 and len(passed(made[0].repeat(2))[0]) == 44


def test_each_image_of_an_epoch_draws_for_itself():
    same = np.repeat(IMAGES[:1], 64, 0)
    images, _ = passed(keras_vit.augment(dataset(np.arange(64), same), Augment(rotation=30.0, translation=0.2)))
    assert len({image.tobytes() for image in images}) > 60


def test_nothing_asked_changes_nothing():
    images, labels = passed(keras_vit.augment(dataset(), Augment()))
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize("kind", ["numbers", "texts", "multi-hot", "weights"])
def test_labels_of_other_kinds_stay(kind):
    labels = {
        "numbers": RNG.normal(size=(22, 3)), "texts": np.array(["a"] * 22), "multi-hot": RNG.integers(0, 2, (22, 5)),
        "weights": LABELS,
    }[kind]  # fmt: skip
    data, weights = dataset(labels), RNG.random(22)
    if kind == "weights":
        data = tf.data.Dataset.from_tensor_slices((IMAGES, labels, weights)).batch(8)
    found = passed(keras_vit.augment(data, Augment(crop="inception", flip=True)))
    assert found[0].shape == IMAGES.shape
    np.testing.assert_array_equal(found[1], labels.astype("S") if kind == "texts" else labels)
    assert len(found) == 2 or (found[2] == weights).all()


@pytest.mark.parametrize("settings", [{"mixup": 0.5}, {"cutmix": 1.0}, {"mixup": 0.5, "cutmix": 1.0}])
@pytest.mark.parametrize("labels", ["indices", "column", "one-hot"])
def test_labels_are_mixed_as_their_images(settings, labels):
    """The mean gray of images that show their class as a gray is that of the labels."""
    grays = np.repeat(LABELS[:, None, None, None] * 60, 8 * 8 * 3, -1).reshape(22, 8, 8, 3).astype("uint8")
    given = {"indices": LABELS, "column": LABELS[:, None], "one-hot": np.eye(4)[LABELS]}[labels]
    images, found = passed(keras_vit.augment(dataset(given, grays), Augment(**settings), num_classes=4))
    np.testing.assert_allclose(found @ (np.arange(4) * 60), images.mean((1, 2, 3)), atol=1e-3)
    assert (found.max(-1) < 1).any() and found.dtype == "float32"


def test_labels_of_one_logit_are_mixed_and_an_image_alone_is_left_as_it_is():
    grays = np.repeat((LABELS % 2)[:, None, None, None] * 200, 8 * 8 * 3, -1).reshape(22, 8, 8, 3).astype("uint8")
    for labels in (LABELS % 2, (LABELS % 2)[:, None].astype("float32")):
        images, found = passed(keras_vit.augment(dataset(labels, grays), Augment(mixup=0.5), num_classes=1))
        np.testing.assert_allclose(found * 200, images.mean((1, 2, 3))[:, None], atol=1e-3)
    alone = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS.astype("uint8"))).batch(1)
    images, found = passed(keras_vit.augment(alone, Augment(mixup=0.5, cutmix=1.0), num_classes=1000))
    np.testing.assert_allclose(images, IMAGES, atol=1e-3)
    np.testing.assert_array_equal(found.argmax(-1), LABELS)


def test_labels_are_one_hot_without_mixing_too():
    _, labels = passed(keras_vit.augment(dataset(), Augment(), num_classes=4))
    np.testing.assert_array_equal(labels, np.eye(4)[LABELS])


def test_what_is_unknown_of_either_image_stays_unknown():
    labels = np.tile([[0, -1, 1], [1, 1, 1]], (11, 1))
    _, found = passed(keras_vit.augment(dataset(labels), Augment(mixup=0.5), num_classes=3))
    assert (found[:, 0] >= 0).all() and (found[:, 1] == -1).sum() >= 11 and (found[:, 2] == 1).all()
    assert ((found[:, 1] == -1) | (found[:, 1] == 1)).all()
    _, found = passed(keras_vit.augment(dataset(labels), Augment(), num_classes=3))
    np.testing.assert_array_equal(found, labels)


@pytest.mark.parametrize(
    "labels, classes, said",
    [
        (np.arange(22) % 5 * 2, 1, "numbers from 0 to 1. Received"),
        (np.full((22, 1), -1.0), 1, "numbers from 0 to 1. Received"),
        (np.full((22, 3), np.nan), 3, "numbers from 0 to 1, or -1 for unknown. Received"),
        (np.full((22, 3), -2), 3, "numbers from 0 to 1, or -1 for unknown. Received"),
        (np.full(22, 3), 3, "class indices from 0 to 2. Received"),
    ],
)
def test_values_that_labels_do_not_have_are_refused(labels, classes, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        passed(keras_vit.augment(dataset(labels), Augment(), num_classes=classes))


def test_masks_and_boxes_follow_their_images():
    masks = (RNG.random((22, 8, 8, 1)) < 0.5).astype("uint8")
    boxes = np.tile(np.float32([0.25, 0.25, 0.5, 0.75, 2]), (22, 3, 1))
    images = np.repeat(masks * 255, 3, -1)
    targets = {"segmentation_masks": masks, "bounding_boxes": boxes, "labels": LABELS}
    targets["instance_masks"] = masks * np.int32(1001)
    images, found = passed(keras_vit.augment(dataset(targets, images), Augment(flip=True, crop="padded")))
    objects = np.where(found["segmentation_masks"] == 255, -1, found["segmentation_masks"] * np.int32(1001))
    np.testing.assert_array_equal(found["instance_masks"], objects)
    inside = found["segmentation_masks"] != 255
    np.testing.assert_array_equal(inside * found["segmentation_masks"] * 255.0, images[..., :1])
    assert {*found} == {*targets} and not (found["bounding_boxes"] == boxes).all()
    np.testing.assert_array_equal(found["labels"], LABELS)


def test_keras_layers_are_called_and_fit_takes_it(eagerly):
    settings = Augment(layers=(keras.layers.RandomFlip("horizontal", seed=1),), mixup=0.2)
    data = keras_vit.augment(dataset(), settings, num_classes=4)
    assert (passed(data)[0] != passed(data)[0]).any()
    model = keras_vit.vit("mu/4", image_size=8, num_classes=4, depth=1)
    model.compile("adam", keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    keras_vit.check_data(model, data)
    assert np.isfinite(model.fit(data, epochs=2, verbose=0).history["loss"]).all()

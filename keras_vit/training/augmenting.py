"""The augmentation of recipes for `model.fit` outside of them."""

from typing import Any

from keras_vit import config
from keras_vit.training import devices
from keras_vit.utils import checks


def augment(dataset: Any, settings: config.Augment, *, num_classes: int | None = None, seed: int = 0) -> Any:
    """Augments the batches of a dataset, as a recipe does.

    Each image draws by seed, epoch and its place in the dataset: a second pass draws others, and the same program draws
    the same numbers. Call it after `.batch`, on training data only.

    Args:
        dataset: A `tf.data.Dataset` of batches `(images, labels)`, or with weights `(images, labels, weights)`. Images
            are `(batch, height, width, channels)`, pixels from 0 to 255, integers or floats. Labels are of any kind
            and stay as they are; a dictionary of `"segmentation_masks"`, uint8 `(batch, height, width, 1)`,
            `"instance_masks"`, int32 `(batch, height, width, 1)`, of each image its `keras_vit.instance_map`, or
            `"bounding_boxes"`, float32 `(batch, most, 5)` as in `docs/tasks/detect.md`, follows its images.
        settings: A `keras_vit.Augment`. Crops keep the size of the images.
        num_classes: If given, labels become one-hot, float32 `(batch, num_classes)`: they are class indices, `(batch,)`
            or `(batch, 1)`, or already `(batch, num_classes)`, one-hot or multi-hot, from 0 to 1 or -1 for unknown,
            which stays unknown. 1 is for a model with one logit, of labels from 0 to 1. MixUp and CutMix need it.
        seed: Integer from 0.

    Returns:
        A `tf.data.Dataset` like `dataset`, with float32 images.

    Raises:
        TypeError: For anything but a dataset of such tuples, or an `Augment`.
        ValueError: For a dataset without batches; for labels that do not fit `num_classes`; for options that do not fit
            the targets. Pixels outside of 0 to 255, indices outside of the classes, and other numbers than
            labels have raise `tf.errors.InvalidArgumentError` in the batch that has them.

    Example:

    >>> settings = keras_vit.Augment(flip=True, crop="padded", mixup=0.2)
    >>> train = keras_vit.augment(train, settings, num_classes=10)
    """
    devices.need_tensorflow("Augmentation of a dataset")
    if not isinstance(settings, config.Augment):
        raise TypeError(f"`settings` must be a keras_vit.Augment. Received: {checks.shown(settings):.200}")
    if num_classes is not None:
        checks.positive(num_classes=num_classes)
    checks.whole(seed=seed)
    from keras_vit.data.augment.batches import augmented

    batches = augmented(dataset, settings, config.Data(), num_classes, seed)
    batches.augmented_with = settings  # which `data/readers/examples.py` looks for
    return batches

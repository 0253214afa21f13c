"""Augmentation of any `tf.data.Dataset` of batches."""

import tensorflow as tf

from keras_vit.data.augment import crops
from keras_vit.data.augment.augment import augment
from keras_vit.data.augment.cuts import BOXES
from keras_vit.data.augment.keras_layers import layers_function
from keras_vit.data.augment.mixing import mixed_several
from keras_vit.data.draws import draws
from keras_vit.data.targets import KINDS

PLACES = 2**20  # numbers are drawn by position: batches are smaller than this
PLACED = ("segmentation_masks", "instance_masks", "bounding_boxes", "depths")  # targets that have a place in the image


def augmented(dataset, settings, data, num_classes, seed):
    """Does the work of `keras_vit.augment`, whose arguments these are; `data` is a `keras_vit.config.Data`."""
    spec = checked(dataset, settings, num_classes)
    named = isinstance(spec[1], dict)
    names = ("images", *(spec[1] if named else ()))
    cut = settings.crop in BOXES

    @tf.autograph.experimental.do_not_convert  # which would put its own lines around an error
    def move(at, batch):
        images, targets = _pixels(batch[0]), batch[1]
        draw = draws(seed, at[0], at[1] * PLACES)
        examples = {"images": images, **(targets if named else {})}
        if cut:
            numbers = draw("crop", tf.shape(images)[0], 4)
            examples = _cropped(examples, numbers, spec[0].shape[1:], data, settings)
        return augment(examples, settings, draw), at[None], batch

    @tf.autograph.experimental.do_not_convert
    def finish(examples, at, batch):
        images = examples.pop("images")
        targets = examples if named else batch[1]
        if num_classes is not None:
            labels = _one_hot(targets["labels"] if named else targets, num_classes)
            examples = {"images": images, "multilabels": labels}  # one-hot ones too: none is unknown
            images, labels = mixed_several(examples, settings, tf.random.fold_in(at[0], seed))
            targets = {**targets, "labels": labels} if named else labels
        return images, targets, *batch[2:]

    epochs = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).take(1)
    places = epochs.flat_map(lambda epoch: tf.data.Dataset.counter().map(lambda number: tf.stack([epoch, number])))
    batches = tf.data.Dataset.zip(places, dataset).map(move, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    if settings.layers:
        change = tf.autograph.experimental.do_not_convert(layers_function(settings.layers, seed, names))
        batches = batches.map(lambda examples, at, batch: (*change(examples, at), batch))
    batches = batches.map(finish, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    count = dataset.cardinality()
    if count != tf.data.UNKNOWN_CARDINALITY:
        batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return batches


def checked(dataset, settings, num_classes):
    """Returns what a batch of a dataset is, its images and targets; raises as `keras_vit.augment`."""
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(f"`dataset` must be a tf.data.Dataset of batches. Received: {type(dataset).__name__}")
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) not in (2, 3) or not isinstance(spec[0], tf.TensorSpec):
        raise TypeError(f"A dataset must yield batches (images, labels). Received: {spec!r:.200}")
    _check_images(spec[0], settings)
    mixing = settings.mixup or settings.cutmix
    if mixing and num_classes is None:
        raise ValueError(
            "`num_classes` must be given for MixUp and CutMix, which blend labels of classes. "
            "Received: num_classes=None"
        )
    if mixing and len(spec) == 3:
        raise ValueError("MixUp and CutMix take no weights of images. Received: batches (images, labels, weights)")
    targets = spec[1] if isinstance(spec[1], dict) else {"labels": spec[1]}
    unknown = sorted(set(targets) - (set(KINDS) - {"images"}))
    if unknown or not all(isinstance(each, tf.TensorSpec) for each in targets.values()):
        raise ValueError(
            f"Targets must be one tensor, or a dictionary with keys among {', '.join(list(KINDS)[1:])}. "
            f"Received: {spec[1]!r:.200}"
        )
    for name in [name for name in PLACED if name in targets]:
        _check_form(name, targets[name], spec[0].shape[1:3])
        if mixing:
            raise ValueError(f"MixUp and CutMix blend neither masks nor boxes nor depth. Received: {name}")
    if num_classes is not None:
        _check_labels(targets.get("labels"), num_classes)
    return spec


def _check_images(images, settings):
    shape = images.shape
    if shape.rank == 3:
        raise ValueError(f"A dataset must yield batches: call `.batch(size)`. Received: images of shape {shape}")
    if shape.rank != 4 or None in shape[1:] or not (images.dtype.is_integer or images.dtype.is_floating):
        raise ValueError(
            "Images must be numbers of shape (batch, height, width, channels), of which only the batch may be unknown. "
            f"Received: shape={shape}, dtype={images.dtype.name}"
        )
    if shape[3] not in (1, 3) and (settings.jitter or settings.randaugment):
        raise ValueError(f"Jitter and RandAugment need images of 1 or 3 channels. Received: channels={shape[3]}")


def _check_form(name, target, size):
    dtype, form = KINDS[name].pixels, (None, 5) if name == "bounding_boxes" else (*size, 1)
    fits = target.shape.rank == 1 + len(form) and target.shape[1:].is_compatible_with(form)
    if target.dtype != dtype or not fits:
        sides = ", ".join("most" if side is None else str(side) for side in form)
        raise ValueError(
            f"{name!r} must be {dtype.name}, (batch, {sides}). Received: {target.dtype.name}, {target.shape}"
        )


def _check_labels(labels, classes):
    """Raises ValueError for labels that are neither indices nor a number for each class."""
    shape = None if labels is None or labels.dtype == "string" else labels.shape
    indices = shape is not None and labels.dtype.is_integer and shape.rank in (1, 2) and shape[1:] in ([], [1])
    numbers = shape is not None and (shape[1:] == [classes] or (classes == 1 and shape.rank == 1))
    if not indices and not numbers:
        raise ValueError(
            f"With num_classes={classes}, labels must be integers, (batch,), or numbers, (batch, {classes}). "
            f"Received: {'none' if labels is None else f'{labels.dtype.name}, {shape}'}"
        )


def _pixels(images):
    """Returns images as float32; a batch outside of 0 to 255, or of 0 to 1, is an error when it is reached."""
    if images.dtype == "uint8":
        return tf.cast(images, "float32")
    images = tf.cast(images, "float32")
    low, high = tf.reduce_min(images), tf.reduce_max(images)
    scaled = (high > 0) & (high <= 1) & tf.reduce_any(images % 1 > 0)
    text = "`images` must contain pixels from 0 to 255. Received: values from"
    with tf.control_dependencies([tf.debugging.Assert((low >= 0) & (high <= 255) & ~scaled, [text, low, "to", high])]):
        return tf.identity(images)


def _one_hot(labels, classes):
    """Returns labels as float32, (batch, classes); a batch with another value than labels have is an error."""
    if classes == 1 or labels.shape[1:] == [classes]:
        labels = tf.reshape(tf.cast(labels, "float32"), [-1, classes])
        inside = (labels >= 0) & (labels <= 1) | (labels == -1) & (classes > 1)
        text = f"`labels` must be numbers from 0 to 1{', or -1 for unknown' if classes > 1 else ''}. Received:"
    else:
        labels = tf.reshape(tf.cast(labels, "int64"), [-1])
        inside = (labels >= 0) & (labels < classes)
        text = f"`labels` must be class indices from 0 to {classes - 1}. Received:"
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(inside), [text, labels])]):
        return labels if labels.dtype == "float32" else tf.one_hot(labels, classes)


def _cropped(examples, numbers, size, data, settings):
    placed = {name: value for name, value in examples.items() if name == "images" or KINDS[name].cut}
    types = {name: value.dtype for name, value in placed.items()}

    def cropped(pair):
        return crops.training_example(pair[0], size, data, settings, pair[1])

    return {**examples, **tf.map_fn(cropped, (placed, numbers), fn_output_signature=types)}

"""Keras preprocessing layers in the training pipeline, seeded so that a resumed run draws what it would have drawn.

A layer of Keras counts its draws in a `keras.random.SeedGenerator`. Before each batch these generators are set from
(seed, epoch, position of the batch).
"""

import contextlib
import random
import warnings

import keras
import tensorflow as tf

from keras_vit.data.targets import KINDS
from keras_vit.layers.base import check_channels_last
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers, tf_data_generator

MASKS = "segmentation_masks"
NEED_LABELS = ("MixUp", "CutMix", "FourierMix", "Mosaic")  # of Keras and KerasCV
# AugMix blends the indices of classes; the others fail on masks.
STILL = (  # layers of Keras that leave everything in its place
    "AutoContrast", "ContrastLimitedAdaptiveHistogramEqualization", "Equalization", "GaussianNoise", "RandomBrightness",
    "RandomColorDegeneration", "RandomColorJitter", "RandomContrast", "RandomErasing", "RandomGaussianBlur",
    "RandomGrayscale", "RandomHue", "RandomInvert", "RandomPosterization", "RandomSaturation", "RandomSharpness",
    "Solarization",
)  # fmt: skip
EVERY_IMAGE = ("Rescaling", "Normalization", "Resizing", "CenterCrop")  # the model's and the pipeline's own work
NO_MASKS = ("AugMix", "ContrastLimitedAdaptiveHistogramEqualization", "RandomGrayscale")


def layers_function(layers, seed, names=("images",)):
    """Returns a function that applies Keras preprocessing layers to a batch, in order; one batch at a time.

    Args:
        layers: Layers that keep the shape of images and need no labels, of `keras.layers` or `keras_cv.layers`.
        seed: Integer, of the run.
        names: Of the items of an example. With `"segmentation_masks"`, layers change them as they change the images.

    Returns:
        A function from examples (a dictionary of `"images"`, float32 `(batch, height, width, channels)`, and targets),
        and the epoch and position of each image (int64, `(batch, 2)`) to the same.

    Raises:
        TypeError: If an item is not a layer.
        ValueError: If a layer would have to change labels too, cannot change masks, or moves what boxes are around.
    """
    check_layers(layers, names)
    for layer in layers:
        foreign = any(not type(inner).__module__.startswith("keras.") for inner in sublayers(layer))
        if foreign and not seed_generators([layer]):
            warnings.warn(
                f"{layer.name!r} has no keras.random.SeedGenerator. If it draws random numbers, a resumed run augments "
                "differently.",
                stacklevel=2,
            )
    generators = seed_generators(layers)
    layers = _leaves(layers) if MASKS in names else layers

    def apply_layers(examples, at):
        batch_seed = tf.random.fold_in(at[0], seed)
        for number, generator in enumerate(generators):
            start = tf.random.stateless_uniform((), tf.random.fold_in(batch_seed, number), 0, 2**31 - 1, "int64")
            generator.state.assign(tf.cast(tf.stack([start, 0]), generator.state.dtype))
        with _python_seed(seed):
            for layer in layers:
                examples = {**examples, **(_with_masks if MASKS in names else _images_alone)(layer, examples)}
        return examples, at

    return apply_layers


def check_layers(layers, names=("images",)):
    """Raises as `layers_function`; arguments as there."""
    for layer in layers:
        if not isinstance(layer, keras.Layer):
            raise TypeError(f"Augment.layers must contain Keras layers. Received: {checks.shown(layer)}")
        if any(type(inner).__name__ in NEED_LABELS for inner in sublayers(layer)):
            raise ValueError(
                f"Augment.layers must not mix labels: use Augment.mixup or Augment.cutmix. Received: {layer.name!r}"
            )
        check_channels_last(layer, "Augment.layers")
    leaves = _leaves(layers)
    for layer in leaves:
        if type(layer).__name__ in EVERY_IMAGE:
            raise ValueError(
                "Augment.layers are for training only: the model rescales pixels, and the pipeline resizes images. "
                f"Received: {type(layer).__name__} {layer.name!r}"
            )
    if MASKS in names:
        _check_masks(leaves)
    moving = [layer for layer in leaves if type(layer).__name__ not in STILL]
    placed = [name for name in names if name not in ("images", MASKS) and KINDS[name].warp]
    if placed and moving:
        raise ValueError(
            f"Augment.layers must leave everything in its place where there are {placed[0].replace('_', ' ')}; "
            "Augment's own crop, flip and rotation move them. "
            f"Received: {type(moving[0]).__name__} {moving[0].name!r}"
        )


def _check_masks(layers):
    """Raises ValueError if a layer cannot change segmentation masks as it changes images."""
    for layer in layers:
        if not hasattr(layer, "transform_segmentation_masks") or type(layer).__name__ in NO_MASKS:
            raise ValueError(
                "Augment.layers must change segmentation masks with their images, and leave their values as they are. "
                f"Received: {type(layer).__name__} {layer.name!r}"
            )
        if getattr(layer, "fill_mode", None) == "constant" and layer.fill_value:
            raise ValueError(
                "A layer with fill_mode='constant' must have fill_value=0 where there are segmentation masks. "
                f"Received: fill_value={layer.fill_value} of {layer.name!r}"
            )


def _leaves(layers):
    """Returns layers without the `Sequential`s and `Pipeline`s around them."""
    inside = [(layer, getattr(layer, "layers", None)) for layer in layers]
    return [leaf for layer, inner in inside for leaf in ([layer] if inner is None else _leaves(inner))]


def _images_alone(layer, examples):
    images = examples["images"]
    return {"images": tf.ensure_shape(tf.cast(layer(images, training=True), "float32"), images.shape)}


def _with_masks(layer, examples):
    """Masks are given as 1 for class 0 and so on, and 0 for outside, with which layers fill."""
    images, masks = examples["images"], examples[MASKS]
    changed = layer({"images": images, MASKS: tf.cast(masks + 1, "float32")}, training=True)  # 255 becomes 0
    return {
        "images": tf.ensure_shape(tf.cast(changed["images"], "float32"), images.shape),
        MASKS: tf.ensure_shape(tf.cast(changed[MASKS], "uint8") - 1, masks.shape),
    }


def seed_generators(layers):
    """Returns every seed generator from which some layers, and the layers inside them, draw inside tf.data."""
    generators = {}
    for inner in (inner for layer in layers for inner in sublayers(layer)):
        if keras.backend.backend() == "tensorflow":
            own = [value for value in vars(inner).values() if isinstance(value, keras.random.SeedGenerator)]
        else:  # tf.data runs TensorFlow, with a generator that the layer makes for it
            own = [tf_data_generator(inner)] if hasattr(inner, "generator") else []
        generators |= {id(generator): generator for generator in own}
    return list(generators.values())


@contextlib.contextmanager
def _python_seed(seed):
    """Seeds Python's `random` inside the block: `keras.layers.AugMix` draws from it while it is traced."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)

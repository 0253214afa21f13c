"""Random augmentation of a batch: pure functions of (examples, settings, draws)."""

import tensorflow as tf

from keras_vit.data.augment.color import erase, jitter
from keras_vit.data.augment.cuts import BOXES
from keras_vit.data.augment.geometry import draw_affine, draw_shift
from keras_vit.data.augment.randaugment import randaugment
from keras_vit.data.targets import KINDS, moved


def augment(examples, settings, draw, channels=None):
    """Augments every example of a batch by its own random numbers.

    Args:
        examples: Dictionary of `"images"`, a float32 tensor `(batch, height, width, channels)`, 0..255, and targets of
            `targets.KINDS`, which follow when their image moves.
        settings: A `keras_vit.config.Augment`; MixUp and CutMix are in `mixing`, crops of encoded images in `crops`.
        draw, channels: As in `keras_vit.data.augment.color.jitter`.

    Returns:
        Dictionary like `examples`.

    Raises:
        ValueError: For RandAugment with targets that have a place in the image.
    """
    count, height, width = tf.shape(examples["images"])[0], *examples["images"].shape[1:3]
    if settings.crop == "padded":
        examples = moved(examples, "shift", settings.crop_padding, draw_shift(count, settings.crop_padding, draw))
    if settings.rotation or settings.scale or settings.shear or settings.translation:
        examples = moved(examples, "warp", draw_affine(count, height, width, settings, draw))
    if settings.flip and settings.crop not in BOXES:  # those crops flip too
        examples = moved(examples, "flip", draw("flip", count, 1)[:, 0] < 0.5)
    images = examples["images"]
    if settings.jitter:
        images = jitter(images, settings.jitter, draw, channels)
    if settings.randaugment:
        placed = [name for name in examples if name != "images" and KINDS[name].warp]
        if placed:
            raise ValueError(f"Augment.randaugment moves images only. Received: examples with {', '.join(placed)}")
        images = randaugment(images, settings.randaugment, settings.magnitude, draw)
    if settings.erase:
        images = erase(images, settings.erase, draw)
    return {**examples, "images": images}

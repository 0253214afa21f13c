"""Several crops of each image, with other colors each, for learning without labels.

Caron et al. 2021 (arXiv:2104.14294), section 3.2 and appendix C, with the probabilities of the authors' code.
"""

import math
import zlib

import tensorflow as tf

from keras_vit.data.augment.color import blur, gray, jitter, solarize
from keras_vit.data.augment.moves import change_some
from keras_vit.data.draws import scaled

RATIO = 4 / 3  # largest of the sides of a box
JITTERED, STRENGTH, GRAYED = 0.8, 0.4, 0.2  # probability of a jitter, its strength, and probability of no color
DEVIATIONS, SIDE = (0.1, 2.0), 224  # of the blur in pixels, of images of this side
GLOBAL = ((1.0, 0.0), (0.1, 0.2))  # of the two global crops: probabilities of a blur, and of an inversion
LOCAL = (0.5, 0.0)


def multicrop(images, seed, *, local_crops, local_size, border, smallest=0.05, flip=False, colors=True):
    """Returns two global crops of each image, of its size, and smaller local ones.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255.
        seed: Integer tensor, `(2,)`, which alone determines the crops.
        local_crops: Number of local crops; 0 for none.
        local_size: `(height, width)` of a local crop.
        border: Smallest share of the area in a global crop, largest in a local one.
        smallest: Smallest share of the area in a local crop.
        flip: Whether each crop is mirrored with probability 1/2.
        colors: Whether each crop changes its colors.

    Returns:
        Two uint8 tensors, `(batch, 2, height, width, channels)` and `(batch, local_crops, *local_size, channels)`; the
        second is `None` without local crops.
    """
    size = images.shape[1:3]
    deviations = tuple(pixels * max(size) / SIDE for pixels in DEVIATIONS)

    def crop(name, size, areas, chances):
        draw = _draws(seed, name)
        crops = cropped(images, size, areas, draw, flip)
        crops = colored(crops, draw, *chances, deviations) if colors else crops
        return tf.cast(tf.round(tf.clip_by_value(crops, 0, 255)), "uint8")

    large = [crop(f"global {i}", size, (border, 1.0), chances) for i, chances in enumerate(GLOBAL)]
    small = [crop(f"local {i}", local_size, (smallest, border), LOCAL) for i in range(local_crops)]
    return tf.stack(large, axis=1), tf.stack(small, axis=1) if small else None


def cropped(images, size, areas, draw, flip):
    """Cuts a random box out of each image of a batch and resizes it, bilinearly.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`.
        size: `(height, width)` of the result.
        areas: Smallest and largest share of the area.
        draw: Function `draw(name, count, numbers)` to random numbers, `(count, numbers)`.
        flip: Whether to mirror with probability 1/2.
    """
    height, width = images.shape[1:3]
    numbers = tf.cast(draw("box", tf.shape(images)[0], 5), "float64")  # as in `geometry.draw_affine`
    share, ratio, top, left, mirrored = tf.unstack(numbers, axis=1)
    area = height * width * scaled(share, *areas)
    ratio = tf.exp(scaled(ratio, -math.log(RATIO), math.log(RATIO)))  # height : width
    rows, columns = tf.minimum(tf.sqrt(area * ratio), height), tf.minimum(tf.sqrt(area / ratio), width)
    down, right = rows / size[0], columns / size[1]  # input pixels of an output pixel
    y = top * (height - rows) + down / 2 - 0.5  # of the center of the first output pixel
    x = left * (width - columns) + right / 2 - 0.5
    if flip:
        x, right = tf.where(mirrored < 0.5, x + (size[1] - 1) * right, x), tf.where(mirrored < 0.5, -right, right)
    zero = tf.zeros_like(x)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.cast(tf.stack([right, zero, x, zero, down, y, zero, zero], axis=1), "float32"),
        output_shape=size,
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )


def colored(images, draw, blurred, inverted, deviations):
    """Changes the colors of some images of a batch, float32, 0..255.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, with one channel or three.
        draw: As in `cropped`.
        blurred: Probability of a blur.
        inverted: Probability that light pixels are inverted.
        deviations: Smallest and largest standard deviation of the blur, in pixels.
    """
    numbers = draw("colors", tf.shape(images)[0], 5)
    images = change_some(images, numbers[:, 0] < JITTERED, lambda some: jitter(some, STRENGTH, draw))
    images = change_some(images, numbers[:, 1] < GRAYED, lambda some: tf.zeros_like(some) + gray(some))
    chosen, radius = numbers[:, 2] < blurred, _radius(deviations, images.shape[1:3])
    if blurred and radius:
        drawn = tf.boolean_mask(scaled(numbers[:, 3], *deviations), chosen)
        images = change_some(images, chosen, lambda some: blur(some, drawn, radius))
    if inverted:
        images = change_some(images, numbers[:, 4] < inverted, solarize)
    return images


def _radius(deviations, size):
    return min(math.ceil(3 * deviations[1]), min(size) - 1)


def _draws(seed, crop):
    """Returns the function `draw(name, count, numbers)` of one crop of a batch."""

    def draw(name, count, numbers):
        own = tf.random.fold_in(seed, zlib.crc32(f"{crop} {name}".encode()) & 0x7FFFFFFF)
        return tf.random.stateless_uniform((count, numbers), own)

    return draw

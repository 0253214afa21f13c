"""RandAugment (Cubuk et al. 2020, arXiv:1909.13719): a few operations on each image, drawn from sixteen.

The operations and their strengths, in `operations`, are those of big_vision and EfficientNet's code. Only the drawn
operation is computed.
"""

import tensorflow as tf

from keras_vit.data.augment.operations import OPERATIONS


def randaugment(images, count, magnitude, draw):
    """Applies `count` operations, drawn with replacement, to each image.

    Args:
        images: float32 tensor, `(batch, height, width, channels)`, 0..255; fractions are truncated.
        count: Operations an image.
        magnitude: Strength of all of them, 0 to 30; the paper's scale was made for at most 10.
        draw: Result of `keras_vit.data.draws.draws`.

    Returns:
        Tensor like `images`, whole numbers.
    """
    numbers = draw("randaugment", tf.shape(images)[0], 4 * count)

    def apply_operations(image, numbers):
        for which, sign, row, column in (tf.unstack(numbers[4 * i : 4 * i + 4]) for i in range(count)):
            arguments = (image, magnitude / 10, tf.where(sign < 0.5, -1.0, 1.0), tf.stack([row, column]))
            branches = [lambda f=function, a=arguments: f(*a) for function in OPERATIONS.values()]
            image = tf.switch_case(tf.cast(which * len(branches), "int32"), branches)
            image.set_shape(images.shape[1:])
        return image

    whole = tf.cast(tf.clip_by_value(images, 0, 255), "uint8")
    changed = tf.map_fn(lambda pair: apply_operations(*pair), (whole, numbers), fn_output_signature=tf.uint8)
    return tf.cast(tf.ensure_shape(changed, images.shape), "float32")

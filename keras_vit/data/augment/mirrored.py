"""Flips of clips whose classes say left and right: boxes are mirrored, and classes become others."""

import tensorflow as tf

from keras_vit.data.augment.boxes import flip
from keras_vit.models.outputs import ignored


def mirrored(clips, boxes, partners, seed):
    """Mirrors half of the clips of a batch, at random, with their boxes and classes.

    Args:
        clips: float32 `(batch, frames, height, width, channels)`.
        boxes: float32 `(batch, most, 5)`, as in `boxes`.
        partners: What each class is in a mirror, `(classes,)`.
        seed: Integer tensor, `(2,)`.
    """
    chosen = tf.random.stateless_uniform(tf.shape(clips)[:1], seed) < 0.5
    boxes = flip(boxes, chosen, clips.shape[2:4])
    edges, kinds = boxes[..., :4], boxes[..., 4]
    regions = kinds < -1  # to ignore
    places = tf.cast(tf.where(regions, ignored(kinds), kinds), "int32") + 1
    turned = tf.gather(tf.constant([-1, *partners], "float32"), places)  # first an empty box
    turned = tf.where(chosen[:, None], tf.where(regions, ignored(turned), turned), kinds)
    clips = tf.where(chosen[:, None, None, None, None], tf.reverse(clips, [3]), clips)
    return clips, tf.concat([edges, turned[..., None]], axis=-1)

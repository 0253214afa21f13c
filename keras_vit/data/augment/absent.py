"""Sentences that are not of an image: each is borrowed from another image of the batch, and its mask is empty."""

import numpy as np
import tensorflow as tf

BITS = 31  # of an int32
MARKS = 4  # integers after the ids of a text: two for its own sentences, two for all sentences of its image
VOID = 255  # pixels that count nowhere; also outside the image


def marked(ids, images):
    """Returns ids with marks that say which sentences are known to be true of the same image.

    Each different sentence has one of 62 bits, so of more than 62 sentences some share one: two sentences without a
    common bit are different, and two with one are taken for the same.

    Args:
        ids: Integers, `(rows, length)`; or `(rows, most, length)`, several sentences with one meaning, -1 as padding.
        images: What tells the image of each row, `(rows,)`: paths or numbers.

    Returns:
        int32 array like `ids`, `MARKS` longer in the last axis.
    """
    several = ids[:, None] if ids.ndim == 2 else ids  # (rows, most, length)
    there = several[:, :, 0] >= 0
    _, names = np.unique(several[there], axis=0, return_inverse=True)
    number = np.zeros(there.shape, "int64")
    number[there] = names.ravel() % (2 * BITS)
    bits = np.zeros((*there.shape, 2), "int32")
    for half in (0, 1):
        mine = there & (number // BITS == half)
        bits[mine, half] = np.left_shift(1, number[mine] % BITS)
    of_rows = np.bitwise_or.reduce(bits, axis=1)  # (rows, 2)
    _, place = np.unique(images, return_inverse=True)
    of_images = np.zeros((place.max(initial=-1) + 1, 2), "int32")
    np.bitwise_or.at(of_images, place.ravel(), of_rows)
    marks = np.concatenate([of_rows, of_images[place.ravel()]], axis=1)  # (rows, MARKS)
    marks = np.repeat(marks[:, None], several.shape[1], axis=1)
    return np.concatenate([several, marks], axis=2).reshape(*ids.shape[:-1], -1).astype("int32")


def parted(ids):
    """Returns the ids and the marks of `marked`: tensors `(batch, ..., length)` and `(batch, MARKS)`."""
    marks = ids[..., -MARKS:]
    return ids[..., :-MARKS], marks if marks.shape.rank == 2 else marks[:, 0]


def borrowed(texts, masks, marks, share, seed):
    """Gives some images a sentence of another image of the batch and an empty mask.

    A sentence that is one of the image's own, in any row, is not borrowed: the image keeps its own then.

    Args:
        texts: Ids, `(batch, length)`.
        masks: uint8 `(batch, height, width, 1)`: 1 where the sentence is true, 0 elsewhere, other values void.
        marks: int32 `(batch, MARKS)`, from `parted`.
        share: Probability of an image to be asked for another's sentence.
        seed: Integer tensor, `(2,)`.

    Returns:
        Texts and masks. Void pixels stay void.
    """
    count = tf.shape(texts)[0]
    step = tf.random.stateless_uniform((), tf.random.fold_in(seed, 2), 0, 2**30, tf.int32)
    others = (tf.range(count) + 1 + step % tf.maximum(count - 1, 1)) % count  # never the image itself, but of one
    known = tf.bitwise.bitwise_and(tf.gather(marks[:, :2], others), marks[:, 2:])
    drawn = tf.random.stateless_uniform((count,), tf.random.fold_in(seed, 3)) < share
    absent = drawn & tf.reduce_all(known == 0, axis=1)
    empty = tf.where(masks == 1, tf.zeros_like(masks), masks)
    texts = tf.where(absent[:, None], tf.gather(texts, others), texts)
    return texts, tf.where(absent[:, None, None, None], empty, masks)

"""Which of an image's texts are seen."""

import tensorflow as tf


def one(ids, seed, end=None, pad=0):
    """Returns one of the texts of each image, drawn at random.

    Args:
        ids: Integer tensor, `(batch, most, length)`; rows of -1 after an image's last text.
        seed: Integer tensor, `(2,)`.
        end, pad: As in `some`.

    Returns:
        A tensor `(batch, length)`.
    """
    count = tf.reduce_sum(tf.cast(ids[:, :, 0] >= 0, "int32"), axis=1)
    numbers = tf.random.stateless_uniform(tf.shape(count), tf.random.fold_in(seed, 1))
    place = tf.minimum(tf.cast(numbers * tf.cast(count, "float32"), "int32"), count - 1)
    return tf.gather(ids, place, batch_dims=1)


def some(ids, seed, end=None, pad=0):
    """Returns some of the texts of each image as one text, in random order: each with probability 1/2, one at least.

    Args:
        ids: As in `one`.
        seed: As in `one`.
        end: Id after a text, which is put after the last alone; `None` if there is none.
        pad: Id that fills a row.

    Returns:
        A tensor `(batch, length)`; what is longer is cut.
    """
    length = ids.shape[2]
    there = ids[:, :, 0] >= 0
    order, chance = tf.unstack(
        tf.random.stateless_uniform((2, *tf.unstack(tf.shape(there))), tf.random.fold_in(seed, 1))
    )
    order = tf.where(there, order, 2.0)  # those that are not there are last
    first = tf.equal(tf.argsort(tf.argsort(order)), 0)
    kept = there & (first | (chance < 0.5))
    mixed = tf.gather(tf.where(kept[:, :, None], ids, -1), tf.argsort(order), batch_dims=1)
    flat = tf.reshape(mixed, (tf.shape(ids)[0], -1))
    words = tf.ragged.boolean_mask(flat, (flat >= 0) & (flat != pad) & (flat != (-1 if end is None else end)))
    room = length if end is None else length - 1
    words = words[:, :room]
    if end is not None:
        words = tf.concat([words, tf.fill((tf.shape(ids)[0], 1), tf.cast(end, ids.dtype))], axis=1)
    return words.to_tensor(pad, shape=(None, length))


def known_by(examples):
    """Returns the ids by which texts are known to be equal, `(batch, texts, length)`: drawn ones, and the first."""
    texts = examples["texts"]
    return tf.stack([texts, examples["first"]], axis=1) if "first" in examples else texts[:, None]


DRAWS = {"one": one, "some": some}

"""Which of an image's texts are seen."""

import tensorflow as tf


def one(ids, seed, start=None, end=None, pad=0):
    """Returns one of the texts of each image, drawn at random.

    Args:
        ids: Integer tensor, `(batch, most, length)`; rows of -1 after an image's last text.
        seed: Integer tensor, `(2,)`.
        start, end, pad: As in `some`.

    Returns:
        A tensor `(batch, length)`.
    """
    count = tf.reduce_sum(tf.cast(ids[:, :, 0] >= 0, "int32"), axis=1)
    numbers = tf.random.stateless_uniform(tf.shape(count), tf.random.fold_in(seed, 1))
    place = tf.minimum(tf.cast(numbers * tf.cast(count, "float32"), "int32"), count - 1)
    return tf.gather(ids, place, batch_dims=1)


def some(ids, seed, start=None, end=None, pad=0):
    """Returns some of the texts of each image as one text, in random order: each with probability 1/2, one at least.

    Args:
        ids: As in `one`.
        seed: As in `one`.
        start: Id before a text. Joined texts have it once, before the first. `None` if there is none.
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
    mask = there & (first | (chance < 0.5))
    mixed = tf.gather(tf.where(mask[:, :, None], ids, -1), tf.argsort(order), batch_dims=1)
    flat = tf.reshape(mixed, (tf.shape(ids)[0], -1))
    marks = [mark for mark in (start, end, pad) if mark is not None]
    written = (flat >= 0) & tf.reduce_all(flat[..., None] != tf.constant(marks, ids.dtype), axis=-1)
    before, after = ([] if mark is None else [_column(ids, mark)] for mark in (start, end))
    words = tf.ragged.boolean_mask(flat, written)[:, : length - len(before) - len(after)]
    return tf.concat([*before, words, *after], axis=1).to_tensor(pad, shape=(None, length))


def known_by(examples):
    """Returns the ids by which texts are known to be equal, `(batch, texts, length)`: drawn ones, and the first."""
    texts = examples["texts"]
    return tf.stack([texts, examples["first"]], axis=1) if "first" in examples else texts[:, None]


def forced(ids, end, pad, begun=False, start=None):
    """Returns the words that each word is written after, and the words to write.

    Args:
        ids: Integer tensor, `(batch, length)`, padded.
        end: Id after a text, which stands before the first word too, unless texts have begun.
        pad: Id that fills a row; it may be `end`.
        begun: Whether rows begin with an id of their own that is not written.
        start: Id that stands before the first word; `None` for that of the row, or else for `end`.

    Returns:
        Two tensors of one shape; the second has -1 after the end.
    """
    if begun:
        before, words = ids[:, :-1], ids[:, 1:]
    else:
        before, words = tf.concat([_column(ids, end), ids[:, :-1]], axis=1), ids
    before = before if start is None else tf.concat([_column(ids, start), before[:, 1:]], axis=1)
    ended = tf.cumsum(tf.cast(words == end, "int32"), axis=1, exclusive=True) > 0
    over = ended | ((words == pad) & (pad != end))
    return tf.where(before < 0, pad, before), tf.where(over, -1, words)


def _column(ids, mark):
    return tf.fill((tf.shape(ids)[0], 1), tf.cast(mark, ids.dtype))


DRAWS = {"one": one, "some": some}

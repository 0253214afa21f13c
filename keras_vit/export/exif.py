"""The orientations in the EXIF data of image files, found by TensorFlow alone: an exported model cannot run Python.

The tag is in a block of TIFF, which is a segment of a JPEG or a chunk of a PNG: EXIF 2.32 (CIPA DC-008),
sections 4.5.4 and 4.6; PNG, third edition, section 11.3.3.7.
"""

import tensorflow as tf

from keras_vit.utils.images import ORIENTATION

NAME = b"Exif\0\0"
SHORT, LONG = 3, 4  # types of numbers
ENTRIES = 256  # of a directory, at most; they are sorted, and few numbers are below that of the orientation


def orientations(items):
    """Returns the orientation of each encoded JPEG and PNG, a vector of strings: int32 `(n,)`; 1 of other files."""
    kind = tf.strings.substr(items, 0, 4)
    jpeg, png = tf.strings.substr(kind, 0, 2) == b"\xff\xd8", kind == b"\x89PNG"
    named = _occurs(tf.where(png, items, b""), b"eXIf")  # a PNG may have thousands of chunks, and few have this one
    start, stop = tf.unstack(_walk(items, jpeg, 2, _segment_of_jpeg) + _walk(items, named, 8, _chunk_of_png))
    return _read(tf.strings.substr(items, start, stop - start))


def _walk(items, chosen, first, step):
    """Returns where the block of TIFF starts and ends in each chosen file, int64 `(2, n)`; 0 without, and in others.

    Args:
        items: The files.
        chosen: Which of them are of this kind.
        first: Where the first segment of such a file starts.
        step: Function of items, where a segment starts in each, and its first eight bytes, `(n, 8)`. Returns where in
            the segment the block starts, 0 in others; and the segment's length, 0 of the last.
    """
    ends = tf.where(chosen, _lengths(items), 0)

    def body(at, found):
        inside, length = step(items, at, _bytes(items, at, 8))
        after = tf.minimum(at + length, ends)
        found = tf.where((inside > 0) & (at < ends), tf.stack([tf.minimum(at + inside, after), after]), found)
        return tf.where((length > 0) & (found[1] == 0), after, ends), found

    start = (tf.minimum(tf.constant(first, "int64"), ends), tf.stack([ends, ends]) * 0)
    return tf.while_loop(lambda at, _: tf.reduce_any(at < ends), body, start)[1]


def _segment_of_jpeg(items, at, head):
    kind, length = head[:, 1], 2 + _number(head[:, 2:4])
    length = tf.where(kind == 0xFF, tf.ones_like(length), length)  # the space between segments may be filled with it
    follows = (head[:, 0] == 0xFF) & (kind != 0xD9) & (kind != 0xDA)
    exif = (kind == 0xE1) & (_part(items, at + 4, 6) == NAME)
    return 10 * tf.cast(exif, "int64"), length * tf.cast(follows, "int64")


def _chunk_of_png(items, at, head):
    return 8 * tf.cast(_part(items, at + 4, 4) == b"eXIf", "int64"), 12 + _number(head[:, :4])


def _read(blocks):
    """Returns the orientation in the first directory of each block of TIFF, int32 `(n,)`; 1 without."""
    prefixed = tf.strings.substr(blocks, 0, len(NAME)) == NAME  # by some writers of PNG
    at = len(NAME) * tf.cast(prefixed, "int64")
    head = _bytes(blocks, at, 8)
    little, big = _is(head[:, :4], b"II*\0"), _is(head[:, :4], b"MM\0*")

    def number(values):
        return _number(tf.where(little[(..., *[None] * (values.shape.rank - 1))], values[..., ::-1], values))

    at += number(head[:, 4:])
    count = number(_bytes(blocks, at, 2))
    entries = tf.reshape(_bytes(blocks, at + 2, 12 * ENTRIES), (-1, ENTRIES, 12))
    right = (number(entries[..., :2]) == ORIENTATION) & (tf.range(ENTRIES, dtype="int64") < count[:, None])
    entry = tf.gather(entries, tf.argmax(right, axis=1), axis=1, batch_dims=1)
    kind = number(entry[:, 2:4])
    value = tf.where(kind == SHORT, number(entry[:, 8:10]), number(entry[:, 8:]))
    known = ((kind == SHORT) | (kind == LONG)) & (value >= 1) & (value <= 8)
    stated = (little | big) & tf.reduce_any(right, axis=1) & known
    return tf.where(stated, tf.cast(value, "int32"), 1)


def _occurs(items, name):
    pieces = tf.raw_ops.StringSplitV2(input=items, sep=name, maxsplit=1)
    return tf.math.bincount(tf.cast(pieces.indices[:, 0], "int32"), minlength=tf.size(items), dtype="int32") > 1


def _lengths(items):
    return tf.cast(tf.strings.length(items), "int64")


def _bytes(items, at, count):
    """Returns `count` bytes of each file, from `at`: int64 `(n, count)`, with zeros behind the end."""
    return tf.cast(tf.io.decode_raw(_part(items, at, count), "uint8", fixed_length=count), "int64")


def _part(items, at, count):
    lengths = tf.cast(tf.strings.length(items), "int64")
    at = tf.minimum(tf.cast(at, "int64"), lengths)
    return tf.strings.substr(items, at, tf.fill(tf.shape(at), tf.constant(count, "int64")))


def _is(values, expected):
    return tf.reduce_all(values == tf.constant(list(expected), "int64"), axis=-1)


def _number(values):
    """Returns numbers from their bytes, the highest first, on the last axis."""
    return tf.reduce_sum(values * [256**i for i in reversed(range(values.shape[-1]))], axis=-1)

"""Pictures that look alike, by a difference hash of their thumbnails: copies in another format, size or quality.

Each bit says which of two neighboring parts of the picture is brighter (Krawetz 2013, "Kind of like that"). Pictures
are alike if at most `MOST` bits differ, and the thumbnails are alike in their colors too. Only pictures that share one
of `PARTS` parts of the hash are compared (Manku et al. 2007, "Detecting near-duplicates for web crawling"): this finds
all pairs with fewer than `PARTS` different bits, and most of the others. A part in a plain ground says nothing and is
not compared. Drawings on a plain ground differ in few bits: larger thumbnails decide, and more strictly.
"""

import numpy as np

from keras_vit.inspecting.pixels import GRAY
from keras_vit.utils.progress import counted

WORDS, BITS = 2, 56  # a hash has two numbers of 56 bits: neighbors in rows, and in columns
PARTS = 8  # of 14 bits
MOST = 14  # bits that may differ
ALIKE = 0.8  # likeness of thumbnails from which on two pictures are one
TIE = 1.0  # brightness by which neighbors must differ, of 255
UNEVEN = 7  # neighbors of a part that must differ
GROUND = 28  # equal neighbors, of 112, from which on a picture has a plain ground
SURE = 0.99  # likeness of its larger thumbnail from which on it and another one are one
FLAT = 3.0  # brightness, standard deviation: a plain picture has no hash, its bits would be noise
AT_ONCE = 2**22  # pairs that are compared at once
VIEWS = (  # how the copy is turned: turns by 90 degrees against the clock, of the picture or of its mirror image
    *(("", 0, False), ("mirrored", 0, True), ("turned", 1, False), ("turned", 2, False), ("turned", 3, False)),
    *(("mirrored and turned", 1, True), ("mirrored and turned", 2, True), ("mirrored and turned", 3, True)),
)


def is_flat(thumbs):
    """Returns which thumbnails, `(n, side, side, 3)`, are too plain for a hash: booleans."""
    uneven = hashes(thumbs)[1]
    comparable = np.any([_compared(uneven, part) for part in range(PARTS)], 0)
    return (_bright(thumbs).std((1, 2)) < FLAT) | ~comparable


def has_ground(thumbs):
    """Returns which thumbnails have a plain ground: booleans."""
    return _has_ground(hashes(thumbs)[1])


def _has_ground(uneven):
    return WORDS * BITS - np.bitwise_count(uneven).sum(1) >= GROUND


def hashes(thumbs):
    """Returns the difference hash of thumbnails, and which of its neighbors differ: uint64 `(n, WORDS)` both."""
    bright, powers = _bright(thumbs), np.uint64(2) ** np.arange(BITS, dtype="uint64")
    steps = [np.diff(bright, axis=axis).reshape(len(thumbs), BITS) for axis in (2, 1)]
    return tuple(np.stack([(value(each) > TIE) @ powers for each in steps], 1) for value in (np.positive, np.abs))


def seen(thumbs, turns, mirrored):
    """Returns thumbnails turned by 90 degrees, some times, after mirroring them left to right."""
    thumbs = thumbs[:, :, ::-1] if mirrored else thumbs
    return np.ascontiguousarray(np.rot90(thumbs, turns, (1, 2)))


def likeness(first, second):
    """Returns how alike thumbnails are, `(n,)`: 1 for equal ones; below 0 if they differ more than each from its mean.

    The squared difference is compared with the contrast of both, so that pictures of little contrast must be closer.

    Args:
        first, second: `(n, side, side, 3)`, or `(n, side, side, 1)`.
    """
    first, second = (
        array.reshape(len(array), array.shape[1] ** 2, array.shape[3]).astype("float32") for array in (first, second)
    )
    contrast = sum(((array - array.mean(1, keepdims=True)) ** 2).sum((1, 2)) for array in (first, second))
    return 1 - ((first - second) ** 2).sum((1, 2)) / np.maximum(contrast, 1e-6)


def alike(thumbs, grays):
    """Yields pairs of pictures that are alike: two arrays of positions, their likeness, and how one is turned.

    Args:
        thumbs: uint8, `(n, side, side, 3)`, none of them flat.
        grays: Larger ones without colors, uint8 `(n, larger, larger)`.
    """
    own, grays = hashes(thumbs), grays[..., None]
    ground = _has_ground(own[1])
    for text, turns, mirrored in VIEWS:
        others = own if not text else hashes(seen(thumbs, turns, mirrored))
        what = f"comparing pictures{text and f', {text}'}"
        for first, second in _close(own, others, what):
            score = likeness(thumbs[first], seen(thumbs[second], turns, mirrored))
            kept = score >= ALIKE
            plain = np.flatnonzero(kept & (ground[first] | ground[second]))
            score[plain] = likeness(grays[first[plain]], seen(grays[second[plain]], turns, mirrored))
            kept[plain] = score[plain] >= SURE
            if kept.any():
                yield first[kept], second[kept], score[kept], text


def _close(own, others, what):
    """Yields pairs of positions whose hashes differ in at most `MOST` bits, the first below the second.

    That is enough: the opposite of each view is a view too.

    Args:
        own: Hashes, and which of their neighbors differ, `(n, WORDS)` both.
        others: Those of the same pictures as they are compared.
        what: What the line of progress begins with.
    """
    for [part] in counted(([part] for part in range(PARTS)), PARTS, what, after=2.0):
        known, asking = (np.flatnonzero(_compared(uneven, part)) for _, uneven in (own, others))
        keys, asked = _part(own[0][known], part), _part(others[0][asking], part)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        begin, end = np.searchsorted(keys, asked, "left"), np.searchsorted(keys, asked, "right")
        for rows, places in _blocks(begin, end - begin):
            first, second = known[order[places]], asking[rows]
            kept = first < second
            first, second = first[kept], second[kept]
            close = np.bitwise_count(own[0][first] ^ others[0][second]).sum(1) <= MOST
            if close.any():
                yield first[close], second[close]


def _compared(uneven, part):
    """Returns of which hashes a part is compared: booleans."""
    return np.bitwise_count(_part(uneven, part)) >= UNEVEN


def _part(values, part):
    """Returns one part of each hash, `(n,)`."""
    each = PARTS // WORDS
    bits = BITS // each
    return (values[:, part // each] >> np.uint64(bits * (part % each))) & np.uint64(2**bits - 1)


def _blocks(begin, counts):
    """Yields which row is compared with which places, all from `begin` on, `AT_ONCE` or a few more at once."""
    rows = np.flatnonzero(counts)
    ends = np.cumsum(counts[rows])
    start = 0
    while start < len(rows):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + AT_ONCE, "right")), start + 1)
        some = rows[start:stop]
        repeated = np.repeat(some, counts[some])
        offsets = np.arange(len(repeated)) - np.repeat(ends[start:stop] - counts[some] - done, counts[some])
        yield repeated, begin[repeated] + offsets
        start = stop


def _bright(thumbs):
    return np.round(thumbs.astype("float32") @ GRAY, 1)

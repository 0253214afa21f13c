"""Pictures that look alike, by a difference hash of their thumbnails: copies in another format, size or quality.

Each bit says which of two neighboring parts of the picture is brighter (Krawetz 2013, "Kind of like that"). Pictures
are alike if at most `MOST` bits differ, and the thumbnails are alike in their colors too. Only pictures that share one
of `PARTS` parts of the hash are compared (Manku et al. 2007, "Detecting near-duplicates for web crawling"): this finds
all pairs with fewer than `PARTS` different bits, and most of the others.
"""

import numpy as np

from keras_vit.utils.progress import counted

WORDS, BITS = 2, 56  # a hash has two numbers of 56 bits: neighbors in rows, and in columns
PARTS = 8  # of 14 bits
MOST = 14  # bits that may differ
ALIKE = 0.8  # likeness of thumbnails from which on two pictures are one
FLAT = 3.0  # brightness, standard deviation: a plain picture has no hash, its bits would be noise
AT_ONCE = 2**22  # pairs that are compared at once
VIEWS = (  # how the copy is turned: turns by 90 degrees against the clock, of the picture or of its mirror image
    *(("", 0, False), ("mirrored", 0, True), ("turned", 1, False), ("turned", 2, False), ("turned", 3, False)),
    *(("mirrored and turned", 1, True), ("mirrored and turned", 2, True), ("mirrored and turned", 3, True)),
)


def is_flat(thumbs):
    """Returns which thumbnails, `(n, side, side, 3)`, are too plain for a hash: booleans."""
    return _bright(thumbs).std((1, 2)) < FLAT


def hashes(thumbs):
    """Returns the difference hash of thumbnails, uint64 `(n, WORDS)`."""
    bright = _bright(thumbs)
    across, down = bright[:, :, 1:] > bright[:, :, :-1], bright[:, 1:] > bright[:, :-1]
    powers = np.uint64(2) ** np.arange(BITS, dtype="uint64")
    return np.stack([each.reshape(len(thumbs), BITS) @ powers for each in (across, down)], 1)


def seen(thumbs, turns, mirrored):
    """Returns thumbnails turned by 90 degrees, some times, after mirroring them left to right."""
    thumbs = thumbs[:, :, ::-1] if mirrored else thumbs
    return np.ascontiguousarray(np.rot90(thumbs, turns, (1, 2)))


def likeness(first, second):
    """Returns how alike thumbnails are, `(n,)`: 1 for equal ones; below 0 if they differ more than each from its mean.

    The squared difference is compared with the contrast of both, so that pictures of little contrast must be closer.
    """
    first, second = (array.reshape(len(array), -1, 3).astype("float32") for array in (first, second))
    contrast = sum(((array - array.mean(1, keepdims=True)) ** 2).sum((1, 2)) for array in (first, second))
    return 1 - ((first - second) ** 2).sum((1, 2)) / np.maximum(contrast, 1e-6)


def alike(thumbs):
    """Yields pairs of pictures that are alike: two arrays of positions, their likeness, and how one is turned.

    Args:
        thumbs: uint8, `(n, side, side, 3)`, none of them flat.
    """
    own = hashes(thumbs)
    for text, turns, mirrored in VIEWS:
        others = own if not text else hashes(seen(thumbs, turns, mirrored))
        what = f"comparing pictures{text and f', {text}'}"
        for first, second in _close(own, others, what):
            score = likeness(thumbs[first], seen(thumbs[second], turns, mirrored))
            kept = score >= ALIKE
            if kept.any():
                yield first[kept], second[kept], score[kept], text


def _close(own, others, what):
    """Yields pairs of positions whose hashes differ in at most `MOST` bits, the first below the second.

    That is enough: the opposite of each view is a view too.

    Args:
        own: Hashes, `(n, WORDS)`.
        others: Those of the same pictures as they are compared.
        what: What the line of progress begins with.
    """
    parts = range(PARTS)
    for part in counted(([part] for part in parts), PARTS, what, after=2.0):
        keys, asked = _part(own, part[0]), _part(others, part[0])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        begin, end = np.searchsorted(keys, asked, "left"), np.searchsorted(keys, asked, "right")
        for rows, places in _blocks(begin, end - begin):
            first, second = order[places], rows
            kept = first < second
            first, second = first[kept], second[kept]
            close = np.bitwise_count(own[first] ^ others[second]).sum(1) <= MOST
            if close.any():
                yield first[close], second[close]


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
    return np.round(thumbs.astype("float32") @ np.array([0.299, 0.587, 0.114], "float32"), 1)

"""Equal pictures, by the hashes of their pixels."""

from typing import NamedTuple

import numpy as np

from keras_vit.inspecting import findings
from keras_vit.inspecting.pictures import NONE

SAME = "the same pixels"


class Groups(NamedTuple):
    """Equal pictures are one group."""

    of: np.ndarray  # number of each picture's group
    first: np.ndarray  # whether a picture is the first of its group in its split


def groups(digests, splits=None):
    """Returns the `Groups` of pictures.

    Args:
        digests: uint8, `(pictures, bytes)`.
        splits: Number of each picture's split, or `None`.
    """
    of = np.unique(_whole(digests), return_inverse=True)[1].reshape(-1)
    split = np.zeros(len(of), int) if splits is None else splits
    first = np.zeros(len(of), bool)
    first[np.unique(of * (split.max(initial=0) + 2) + split + 1, return_index=True)[1]] = True
    return Groups(of, first)


def alone(count):
    """Returns the `Groups` of pictures of which no pixels are known."""
    return Groups(np.arange(count), np.ones(count, bool))


def find(pictures, groups, rows):
    """Yields a `Finding` of each picture that is equal to one before it, or to one in another split.

    Args:
        pictures: `Pictures`.
        groups: Their `Groups`.
        rows: Positions of those that could be read.
    """
    ranks = pictures.ranks
    order = rows[np.lexsort((rows, ranks[rows], groups.of[rows]))]  # by group, then from training to test
    starts = np.flatnonzero(np.diff(groups.of[order], prepend=-1))
    counts = np.diff(starts, append=len(order))
    for start, count in zip(starts[counts > 1].tolist(), counts[counts > 1].tolist()):
        members = order[start : start + count].tolist()
        yield from _of_group(pictures, members, ranks)


def _of_group(pictures, members, ranks):
    firsts = {}  # of each split, the last one of the highest rank
    for i in members:
        first = firsts.setdefault(ranks[i], i)
        if first != i:
            yield findings.pair("exact", pictures, i, first, 1.0, SAME)
    divided = {rank: first for rank, first in firsts.items() if rank != NONE}
    if len(divided) < 2:
        return
    low, high = divided[min(divided)], divided[max(divided)]
    for i in members:
        if ranks[i] != NONE and i != high:
            ends = (low, i) if ranks[i] == ranks[high] else (i, high)
            yield findings.pair("leak", pictures, *ends, 1.0, SAME)


def shared(found, pictures, groups):
    """Yields what was found of a picture for those that are equal to it in its split; a wrong label, if it is theirs.

    Args:
        found: Findings of pictures that are the first of their groups.
        pictures: `Pictures`.
        groups: Their `Groups`.
    """
    splits, copies = np.zeros(len(pictures), int) if pictures.splits is None else pictures.splits, {}
    for i in np.flatnonzero(~groups.first).tolist():
        copies.setdefault((groups.of[i], splits[i]), []).append(i)
    for one in found:
        for i in copies.get((groups.of[one.row], splits[one.row]), ()):
            if one.kind != "label" or pictures.label(i) == one.label:
                yield one._replace(file=pictures.names[i], label=pictures.label(i), row=i)


def _whole(digests):
    """Returns each row of bytes as one value."""
    return np.ascontiguousarray(digests).view(f"V{digests.shape[1]}").reshape(-1)

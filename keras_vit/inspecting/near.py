"""Nearly equal pictures: those that look alike, and neighbors in the space of vectors of which one is a crop."""

import itertools

import numpy as np

from keras_vit.inspecting import crops, findings, hashes
from keras_vit.inspecting.pictures import NONE
from keras_vit.utils.progress import counted

# Distances of vectors by the usual one, the median of that to the last neighbor: models differ in how far apart
# pictures are.
REACH = 0.75  # neighbors within it are compared by their pixels
CLOSE = 0.1  # of pictures whose pixels are not there: within it they are nearly equal
BLOCK = 4096  # pairs between two steps of the line of progress
PART = 0.95  # likeness from which on one is a crop of the other


class Best:
    """The best partner of each picture.

    Args:
        count: Number of pictures.
    """

    def __init__(self, count):
        self.partner = np.full(count, NONE)
        self.score = np.full(count, -np.inf, "float32")
        self.how = np.zeros(count, "int8")
        self.hows = [""]

    def add(self, rows, partners, scores, how):
        """Keeps partners of pictures that are better than those so far.

        Args:
            rows, partners: Positions, `(pairs,)`.
            scores: How alike they are.
            how: In words, how that was found.
        """
        if how not in self.hows:
            self.hows.append(how)
        better = scores > self.score[rows]
        order = np.flatnonzero(better)[np.argsort(scores[better], kind="stable")]  # NumPy keeps the last of several
        self.partner[rows[order]], self.score[rows[order]] = partners[order], scores[order]
        self.how[rows[order]] = self.hows.index(how)

    def found(self):
        """Yields the position of each picture that has a partner, that of the partner, the score, and how."""
        rows = np.flatnonzero(self.partner != NONE)
        for values in zip(rows.tolist(), self.partner[rows].tolist(), self.score[rows].tolist(), self.how[rows]):
            yield *values[:3], self.hows[values[3]]


class Pairs:
    """The best partners of each picture in its split, and in each other one.

    Args:
        ranks: Of each picture's split.
        groups: Of equal pictures, which are no nearly equal ones: `exact.Groups`.
    """

    def __init__(self, ranks, groups):
        self.ranks = ranks
        self.groups = groups
        self.inside = Best(len(ranks))
        self.across = {rank: Best(len(ranks)) for rank in np.unique(ranks[ranks != NONE]).tolist()}  # by the partner's

    def add(self, first, second, scores, how):
        """Adds pairs of pictures, by their positions."""
        other = self.groups.of[first] != self.groups.of[second]
        first, second, scores = (np.asarray(values)[other] for values in (first, second, scores))
        first, second = np.minimum(first, second), np.maximum(first, second)
        ranks = self.ranks[first], self.ranks[second]
        same = ranks[0] == ranks[1]
        self.inside.add(second[same], first[same], scores[same], how)
        split = ~same & (ranks[0] != NONE) & (ranks[1] != NONE)
        for one, other in ((first, second), (second, first)):
            for rank, best in self.across.items():
                kept = split & (self.ranks[other] == rank)
                best.add(one[kept], other[kept], scores[kept], how)

    def findings(self, pictures):
        """Yields a `Finding` of each picture that has a partner; each pair is there once."""
        for row, partner, score, how in self.inside.found():
            yield findings.pair("near", pictures, row, partner, score, how)
        seen = set()
        for row, partner, score, how in itertools.chain(*(best.found() for best in self.across.values())):
            pair = (row, partner) if self.ranks[row] < self.ranks[partner] else (partner, row)
            if pair not in seen:
                seen.add(pair)
                yield findings.pair("leak", pictures, *pair, score, how)


def add_alike(pairs, thumbs, grays, rows):
    """Adds pairs of pictures that look alike; returns how many are too plain to be compared.

    Args:
        pairs: `Pairs`.
        thumbs, grays: Thumbnails of all pictures.
        rows: Positions of those to compare.
    """
    flat = hashes.is_flat(thumbs[rows])
    rows = rows[~flat]
    for first, second, score, view in hashes.alike(thumbs[rows], grays[rows]):
        pairs.add(rows[first], rows[second], score, f"look alike{view and ', '}{view}")
    return int(flat.sum())


def add_crops(pairs, graph, thumbs, grays, rows):
    """Adds pairs of neighbors of which one is a crop of the other: vectors propose them, pixels decide.

    Not of plain pictures; of those with a plain ground as strictly as `hashes.alike`.

    Args:
        pairs: `Pairs`.
        graph: The `Graph` of vectors.
        thumbs, grays: Thumbnails of all pictures.
        rows: Positions of the pictures of the vectors.
    """
    flat, needed = np.zeros(len(thumbs), bool), np.full(len(thumbs), PART, "float32")
    flat[rows] = hashes.is_flat(thumbs[rows])
    needed[rows[hashes.has_ground(thumbs[rows])]] = hashes.SURE
    first, second, _ = within(graph, REACH * usual(graph))
    low, high = np.sort([rows[first], rows[second]], 0)
    first, second = np.divmod(np.unique(low * (high.max(initial=0) + 1) + high), high.max(initial=0) + 1)  # each once
    blocks = (np.arange(start, min(start + BLOCK, len(first))) for start in range(0, len(first), BLOCK))
    for block in counted(blocks, len(first), "comparing neighbors", after=2.0):
        one, other = first[block], second[block]
        one, other = (each[~(flat[one] | flat[other])] for each in (one, other))
        scores, parts, mirrored = crops.likeness(grays[one], grays[other])
        for part, flipped in itertools.product((False, True), repeat=2):
            kept = (parts == part) & (mirrored == flipped) & (scores >= np.maximum(needed[one], needed[other]))
            how = f"{'a crop' if part else 'look alike'}{', mirrored' if flipped else ''}"
            pairs.add(one[kept], other[kept], scores[kept], how)


def add_close(pairs, graph, rows, near=None):
    """Adds pairs of pictures whose vectors are close.

    Args:
        pairs: `Pairs`.
        graph: The `Graph` of vectors.
        rows: Positions of their pictures.
        near: Cosine similarity from which on two are close; `None` for `CLOSE` of the usual distance.
    """
    first, second, distances = within(graph, CLOSE * usual(graph) if near is None else 1 - near)
    pairs.add(rows[first], rows[second], 1 - distances, "vectors")


def within(graph, most):
    """Returns pairs of neighbors that are at most so far apart: two arrays of positions, and the distances."""
    first, place = np.nonzero(graph.distances <= most)
    return first, graph.neighbors[first, place], graph.distances[first, place]


def usual(graph):
    """Returns the usual distance of vectors: the median of that to the last neighbor."""
    return float(np.median(graph.distances[:, -1]))

"""Boxes that were found tile by tile in a large picture, joined so that each object has one.

Edges are top, left, bottom, right, in pixels of the picture. A box that ends at an edge of its tile inside the picture
may be a piece of an object: it is cut.
"""

import numpy as np

ALIKE = 1 / 2  # of two boxes of one class: intersection over union from which on they are of one object
INSIDE = 1 / 2  # share of a cut box inside another one from which on it is a piece of its object
LEVEL = 1 / 2  # overlap of two pieces along their seam, at least, to be of one object
TRUST = 1 / 2  # of a cut box: it is chosen as one of this share of its score
NEAR = 0.02  # share of a tile's side up to which a box ends at its edge
ENDS = ((3, 1, 0, 2), (2, 0, 1, 3))  # for both directions: edges that face each other, then those along the seam


def joined(edges, classes, scores, tile, tiles, size):
    """Returns the boxes of a picture, best first: edges, classes and scores.

    Pieces of an object that is larger than the overlap become one box around both, with the higher score: boxes of two
    neighboring tiles that both cover what these have in common, from edge to edge. Of boxes of one class from different
    tiles that are alike, or of which one is cut and mostly inside the other, the better one is kept; cut boxes count as
    if they had half of their score. Boxes of the same tile are left as the model gave them.

    Args:
        edges: `(boxes, 4)`, in pixels of the picture.
        classes: Integers, `(boxes,)`.
        scores: `(boxes,)`.
        tile: The index of each box's tile, `(boxes,)`.
        tiles: The edges of the tiles, `(tiles, 4)`.
        size: `(height, width)` of the picture.
    """
    edges, scores, tiles = (np.asarray(each, "float64") for each in (edges, scores, tiles))
    if not len(edges):
        return edges.reshape(0, 4), np.asarray(classes), scores
    cut = _cut(edges, tiles[tile], size)
    edges, classes, scores, cut, group = _whole(edges, np.asarray(classes), scores, cut, tile, tiles)
    cut = cut.any(1)
    rank = np.argsort(-scores * np.where(cut, TRUST, 1), kind="stable")
    edges, classes, scores, cut = edges[rank], classes[rank], scores[rank], cut[rank]
    group = [group[i] for i in rank]
    first, second = _pairs(edges, classes, _cell(tiles))
    common, areas = _common(edges[first], edges[second]), _area(edges)
    union = areas[first] + areas[second] - common
    alike = common > ALIKE * union
    piece = cut[second] & (common > INSIDE * areas[second])
    lost = np.zeros(len(edges), bool)
    for i, j in sorted(zip(first[alike | piece].tolist(), second[alike | piece].tolist())):
        if not (lost[i] or lost[j] or group[i] & group[j]):
            lost[j] = True
    order = np.argsort(-scores[~lost], kind="stable")
    return edges[~lost][order], classes[~lost][order], scores[~lost][order]


def _cut(edges, tiles, size):
    """Returns which edges of boxes are at an edge of their tiles inside the picture, booleans `(boxes, 4)`."""
    ends = np.array([0, 0, *size])
    near = NEAR * np.tile(tiles[:, 2:] - tiles[:, :2], 2)
    return (np.abs(edges - tiles) <= np.maximum(near, 1)) & (np.abs(tiles - ends) > 0)


def _whole(edges, classes, scores, cut, tile, tiles):
    """Returns boxes with those in place of pieces that are of one object, and the set of the tiles of each."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = [_links(edges, classes, scores, cut, tile, tiles, *ends) for ends in ENDS]
    every, count = np.concatenate(links), len(edges)
    if not len(every):
        return edges, classes, scores, cut, [{int(each)} for each in tile]
    matrix = coo_matrix((np.ones(len(every)), every.T), (count, count))
    number, label = connected_components(matrix, directed=False)
    around, most = np.tile([np.inf, np.inf, -np.inf, -np.inf], (number, 1)), np.full(number, -np.inf)
    np.minimum.at(around[:, :2], label, edges[:, :2])
    np.maximum.at(around[:, 2:], label, edges[:, 2:])
    np.maximum.at(most, label, scores)
    _, one = np.unique(label, return_index=True)
    open_ends = cut.copy()
    for (end, begin, *_), pairs in zip(ENDS, links):
        open_ends[pairs[:, 0], end] = open_ends[pairs[:, 1], begin] = False
    still = np.zeros((number, 4), bool)
    np.logical_or.at(still, label, open_ends)
    group = [set() for _ in range(number)]
    for i, each in zip(label, tile):
        group[i].add(int(each))
    return around, classes[one], most, still, group


def _links(edges, classes, scores, cut, tile, tiles, end, begin, low, high):
    """Returns pairs of boxes that are pieces of one object on both sides of a seam, integers `(links, 2)`.

    The arguments after `tiles` are the edges that meet: `end` of the first piece and `begin` of the second; `low` and
    `high` are those across.
    """
    some = np.flatnonzero(cut[:, end] | cut[:, begin])
    first, second = (some[each] for each in _pairs(edges[some], classes[some], _cell(tiles), both=True))
    here, there = tiles[tile[first]], tiles[tile[second]]
    meet = cut[first, end] & cut[second, begin] & (here[:, low] == there[:, low]) & (here[:, begin] < there[:, begin])
    meet &= there[:, begin] <= here[:, end]  # tiles with something in common, or that touch
    near = np.maximum(NEAR * (here[:, end] - here[:, begin]), 1)
    meet &= (edges[first, begin] <= there[:, begin] + near) & (edges[second, end] >= here[:, end] - near)
    meet &= np.minimum(scores[first], scores[second]) >= TRUST * np.maximum(scores[first], scores[second])
    first, second = first[meet], second[meet]
    shared = np.minimum(edges[first, high], edges[second, high]) - np.maximum(edges[first, low], edges[second, low])
    either = np.maximum(edges[first, high], edges[second, high]) - np.minimum(edges[first, low], edges[second, low])
    level = shared / np.maximum(either, 1e-9)
    found, taken = [], (set(), set())
    for i in np.argsort(-level, kind="stable"):
        pair = int(first[i]), int(second[i])
        if level[i] >= LEVEL and pair[0] not in taken[0] and pair[1] not in taken[1]:
            found.append(pair)
            taken[0].add(pair[0])
            taken[1].add(pair[1])
    return np.array(found, int).reshape(-1, 2)


def _cell(tiles):
    return np.max(tiles[:, 2:] - tiles[:, :2], axis=0)


def _pairs(edges, classes, cell, both=False):
    """Returns the pairs of boxes of one class that may touch, the first before the second, two arrays of indices.

    The picture is divided into cells, and boxes of the same cell are compared: time grows with the boxes alone. With
    `both`, each pair comes in both orders.
    """
    low = np.floor((edges[:, :2] - 1) / cell).astype(int)
    high = np.floor((edges[:, 2:] + 1) / cell).astype(int)
    cells = {}
    for i, (top, left, bottom, right) in enumerate(np.concatenate([low, high], 1).tolist()):
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                cells.setdefault((row, column, int(classes[i])), []).append(i)
    found = [np.zeros((2, 0), int)]
    for members in cells.values():
        if len(members) > 1:
            members = np.array(members)
            pairs = members[np.stack(np.triu_indices(len(members), 1))]
            found.append(pairs[:, (_common(edges[pairs[0]], edges[pairs[1]], 2) > 0)])
    pairs = np.unique(np.concatenate(found, axis=1), axis=1)
    return np.concatenate([pairs, pairs[::-1]], axis=1) if both else pairs


def _common(first, second, more=0):
    """Returns the areas of the intersections of boxes, in pairs; `more` pixels are added to each side."""
    low, high = np.maximum(first[:, :2], second[:, :2]), np.minimum(first[:, 2:], second[:, 2:])
    return np.prod(np.maximum(high - low + more, 0), axis=-1)


def _area(edges):
    return np.prod(edges[:, 2:] - edges[:, :2], axis=-1)

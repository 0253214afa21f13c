"""Each object of a large picture gets one box, however tiles cut it."""

import numpy as np
import pytest

from keras_vit.utils.seams import joined
from keras_vit.utils.tiles import starts

SIZE, TILE, OVERLAP = (400, 500), 128, 0.25


def tiles_of(size=SIZE, tile=TILE, overlap=OVERLAP, step=None):
    rows, columns = (starts(side, tile, overlap, step) for side in size)
    return np.array([(y, x, y + tile, x + tile) for y in rows for x in columns])


def seen(objects, tiles, least=0.01):
    """Returns what a perfect detector finds in each tile: the visible part of each object, a number of its own."""
    edges, classes, scores, tile = [], [], [], []
    for number, place in enumerate(tiles):
        for i, (box, label) in enumerate(objects):
            part = np.concatenate([np.maximum(box[:2], place[:2]), np.minimum(box[2:], place[2:])])
            if (part[2:] - part[:2] >= least).all():
                edges.append(part)
                classes.append(label)
                scores.append(0.9 - 0.001 * i)
                tile.append(number)
    return np.array(edges), np.array(classes), np.array(scores), np.array(tile)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.5])
def test_a_perfect_detector_of_tiles_finds_each_object_once(seed, overlap):
    random, tiles = np.random.default_rng(seed), tiles_of(overlap=overlap)
    centers = [(y, x) for y in range(35, 360, 66) for x in range(40, 480, 66)]
    objects = []
    for y, x in centers:
        height, width = random.uniform(15, 60, 2)
        y, x = np.array([y, x]) + random.uniform(-2, 2, 2)
        objects.append((np.array([y - height / 2, x - width / 2, y + height / 2, x + width / 2]), random.integers(3)))
    edges, classes, scores = joined(*seen(objects, tiles), tiles, SIZE)
    assert len(edges) == len(objects) and (np.diff(scores) <= 0).all()
    for box, label in objects:
        apart = np.abs(edges - box).max(1)
        assert apart.min() < 1e-9 and classes[apart.argmin()] == label


@pytest.mark.parametrize("box", [[10, 20, 60, 480], [20, 30, 390, 90], [30, 30, 370, 470], [0, 0, 400, 500]])
def test_an_object_over_many_tiles_is_put_together(box):
    tiles = tiles_of()
    for overlap in (0.0, 0.25, 0.5):
        tiles = tiles_of(overlap=overlap)
        inside = [place for place in tiles if not (place[0] > box[0] and place[2] < box[2])]
        edges, _, _ = joined(*seen([(np.array(box, float), 0)], tiles), tiles, SIZE)
        assert len(inside) and np.abs(edges[0] - box).max() < 1e-9 and len(edges) == 1


def test_pieces_that_a_detector_places_inexactly_are_joined_too():
    random, tiles = np.random.default_rng(0), tiles_of()
    objects = [(np.array([y, x, y + 40.0, x + 40.0]), 0) for y in range(5, 340, 55) for x in range(5, 440, 55)]
    edges, classes, scores, tile = seen(objects, tiles)
    edges = edges + random.uniform(-1.5, 1.5, edges.shape)
    found, _, _ = joined(edges, classes, scores, tile, tiles, SIZE)
    assert len(found) == len(objects)


def test_neighbors_of_a_tile_and_other_classes_are_left_as_they_are():
    tiles = tiles_of()
    boxes = np.array([[10, 10, 50, 50], [12, 12, 50, 50], [10, 10, 50, 50.0]])
    found = joined(boxes, np.array([0, 0, 1]), np.array([0.5, 0.9, 0.7]), np.zeros(3, int), tiles, SIZE)
    assert found[2].tolist() == [0.9, 0.7, 0.5] and found[1].tolist() == [0, 1, 0]
    boxes = np.array([[10, 100, 50, 126], [10, 100, 50, 126.0]])  # in the overlap of two tiles, of two classes
    assert len(joined(boxes, np.array([0, 1]), np.array([0.5, 0.9]), np.array([0, 1]), tiles, SIZE)[0]) == 2


def test_a_whole_box_wins_over_a_piece_with_a_higher_score_unless_it_is_unlikely():
    tiles = np.array([[0, 0, 100, 100], [0, 75, 100, 175]])
    boxes, classes, tile = np.array([[20, 60, 60, 99], [20, 75, 60, 99.0]]), np.zeros(2, int), np.arange(2)
    edges, _, scores = joined(boxes, classes, [0.6, 0.9], tile, tiles, (100, 175))
    assert scores.tolist() == [0.6, 0.9] or edges.tolist() == [[20, 60, 60, 99]]
    boxes[0, 3] = 90  # seen whole by the first tile
    edges, _, scores = joined(boxes, classes, [0.6, 0.9], tile, tiles, (100, 175))
    assert edges.tolist() == [[20, 60, 60, 90]] and scores.tolist() == [0.6]
    edges, _, scores = joined(boxes, classes, [0.1, 0.9], tile, tiles, (100, 175))
    assert scores[0] == 0.9


def test_a_small_object_on_a_large_one_is_kept():
    """As obss/sahi#560: merging by the smaller one's share would make one of them."""
    tiles = tiles_of()
    objects = [(np.array([20, 60, 100, 125.0]), 0), (np.array([40, 100, 60, 120.0]), 0)]
    edges, _, _ = joined(*seen(objects, tiles), tiles, SIZE)
    assert sorted(edges.tolist()) == sorted(box.tolist() for box, _ in objects)


def test_a_lone_piece_stays_and_nothing_is_nothing():
    tiles = tiles_of()
    edges, _, scores = joined(np.array([[10, 100, 50, 128.0]]), [1], [0.8], np.array([0]), tiles, SIZE)
    assert edges.tolist() == [[10, 100, 50, 128]] and scores.tolist() == [0.8]
    edges, classes, scores = joined(np.zeros((0, 4)), [], [], np.zeros(0, int), tiles, SIZE)
    assert edges.shape == (0, 4) and not len(classes) and not len(scores)


def test_time_grows_with_the_boxes():
    size = (3200, 3200)
    tiles = tiles_of(size)
    objects = [(np.array([y, x, y + 30.0, x + 30.0]), 0) for y in range(5, 3150, 44) for x in range(5, 3150, 44)]
    edges, _, _ = joined(*seen_quickly(objects, tiles), tiles, size)
    assert len(edges) == len(objects) > 5_000


def seen_quickly(objects, tiles):
    boxes = np.array([box for box, _ in objects])
    rows = []
    for number, place in enumerate(tiles):
        part = np.concatenate([np.maximum(boxes[:, :2], place[:2]), np.minimum(boxes[:, 2:], place[2:])], axis=1)
        part = part[(part[:, 2:] - part[:, :2] >= 4).all(1)]
        rows.append((part, np.full(len(part), number)))
    edges, tile = map(np.concatenate, zip(*rows))
    return edges, np.zeros(len(edges), int), np.full(len(edges), 0.5), tile

"""Boxes of pictures that are larger than the detector."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from keras_vit import config
from keras_vit.models.box_outputs import likely
from keras_vit.tasks.in_tiles import at_full_size

SIZE, CLASSES = (64, 96, 3), ("a", "b")


def detector(images, most=6):
    """Finds bright blocks of one color: red is "a", green is "b"; each box's score falls with its number."""
    from scipy.ndimage import find_objects, label

    found = np.zeros((len(images), most, 4 + 2), "float32")
    for i, image in enumerate(images):
        boxes = [(place, c) for c in (0, 1) for place in find_objects(label(image[..., c] > 100)[0])]
        for j, ((rows, columns), c) in enumerate(boxes):
            found[i, j, :4] = np.array([rows.start, columns.start, rows.stop, columns.stop]) / (64, 96, 64, 96)
            found[i, j, 4 + c] = 0.9 - 0.01 * j
    return found


def scene():
    picture = np.zeros((1, 150, 260, 3), "uint8")
    boxes = [
        (5, 5, 20, 25, 0),
        (50, 60, 70, 110, 1),
        (120, 220, 150, 260, 0),
        (40, 150, 47, 158, 0),
        (90, 20, 94, 250, 1),
    ]
    for top, left, bottom, right, c in boxes:
        picture[0, top:bottom, left:right, c] = 255
    return picture, boxes


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("tiles", [True, {"overlap": 0.5}, {"overlap": 0}, {"step": 8}])
def test_each_object_is_found_once_in_the_picture_s_own_pixels(tiles, several):
    picture, boxes = scene()
    task = config.Detect(classes=CLASSES, most=6, tiles=tiles, head="deformable" if several else "points")
    (found,) = at_full_size(task, detector, SIZE)(picture)
    edges, classes, scores = likely(found, 0.3, several)
    got = sorted((*np.round(box * (150, 260, 150, 260)).astype(int).tolist(), int(c)) for box, c in zip(edges, classes))
    assert got == sorted(boxes) and (np.diff(scores) <= 0).all()
    rows = task.result(found, (150, 260))
    assert sorted(row["bbox"] for row in rows) == sorted([x, y, r - x, b - y] for y, x, b, r, _ in boxes)
    assert task.answer(found).keys() == {"3 a", "2 b"}


def test_more_boxes_than_a_tile_may_have_are_all_kept_and_scored():
    picture = np.zeros((1, 640, 960, 3), "uint8")
    corners = [(y, x) for y in range(8, 620, 40) for x in range(8, 940, 60)]
    for y, x in corners:
        picture[0, y : y + 10, x : x + 10, 0] = 255
    task = config.Detect(classes=CLASSES, most=12, tiles=True)
    outputs = at_full_size(task, lambda images: detector(images, 12), SIZE)(picture)
    assert len(outputs[0]) == len(corners) == 256
    truth = np.array([[y / 640, x / 960, (y + 10) / 640, (x + 10) / 960, 0] for y, x in corners], "float32")
    tally = task.tally()
    assert tally.add({"images": picture, "bounding_boxes": truth[None]}, outputs).tolist() == [1]
    assert tally.result()["map"] == pytest.approx(1)  # of the best 100, it would be less than a half


def test_small_pictures_have_no_boxes_beyond_their_edges():
    """As obss/sahi#32, which found nothing there: a picture smaller than a tile is continued by its last pixels."""
    picture = np.zeros((1, 30, 40, 3), "uint8")
    picture[0, 20:, 30:, 0] = 255
    task = config.Detect(classes=CLASSES, most=6, tiles=True)
    (found,) = at_full_size(task, detector, SIZE)(picture)
    assert [row["bbox"] for row in task.result(found, (30, 40))] == [[30, 20, 10, 10]]
    (found,) = at_full_size(task, detector, SIZE)(picture * 0)
    assert found.shape == (0, 6) and [*task.answer(found)] == ["nothing"]


def test_no_number_is_no_box():
    task = config.Detect(classes=CLASSES, most=6, tiles=True)
    with pytest.raises(FloatingPointError, match="must return finite numbers"):
        at_full_size(task, lambda images: detector(images) * np.nan, SIZE)(np.zeros((1, 64, 96, 3)))

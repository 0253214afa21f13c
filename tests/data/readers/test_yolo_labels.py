import pathlib

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Data, Segment
from keras_vit.data import inspection, sources
from keras_vit.data.readers import yolo_labels
from keras_vit.utils import instance_maps
from keras_vit.utils.images import mask_pixels
from keras_vit.utils.warned import LeftOut
from tests.data.test_mask_frames import write_image

SQUARE = "0.1 0.1 0.5 0.1 0.5 0.5 0.1 0.5"


def read(tmp_path, text):
    (tmp_path / "a.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return yolo_labels.boxes([tmp_path / "a.txt"], 3, skip=True)[0]


@pytest.mark.parametrize(
    "text, boxes",
    [
        ("", []),
        ("\n \n", []),
        ("1 0.5 0.5 0.25 0.5", [(0.25, 0.375, 0.75, 0.625, 1)]),
        ("\ufeff1\t0.5  5e-1 0.25 .5\r\n", [(0.25, 0.375, 0.75, 0.625, 1)]),
        ("0.0 0.5 0.5 1 1\n2.000 0.5 0.5 1 1\n", [(0, 0, 1, 1, 0), (0, 0, 1, 1, 2)]),
        ("0 0.5 0.5 1.0000001 1\n1 0.75 -0.005 0.5 0.5", [(0, 0, 1, 1, 0), (0, 0.5, 0.245, 1, 1)]),
        ("0 0.9 0.5 0.4 1", [(0, 0.7, 1, 1, 0)]),  # what sticks out is cut off
        (f"2 {SQUARE}", [(0.1, 0.1, 0.5, 0.5, 2)]),
        ("2 0 0 0.5 1 1 0.2\n1 0.5 0.5 1 1", [(0, 0, 1, 1, 2), (0, 0, 1, 1, 1)]),  # each row is what it is
        ("1 1.0021 0 0.5 1 0 0.2", [(0, 0, 1, 1, 1)]),
        (
            "1 0.5 0.5 0.5 0.5\n0 0.5 0.5 0.5 0.5\n1 0.5 0.5 0.5 0.50",
            [(0.25,) * 2 + (0.75,) * 2 + (k,) for k in (1, 0)],
        ),
        ("1 0.5 0.5 0 0.5\n1 0.5 0.5 -0.001 0.5\n1 0.1 0.2 0.1 0.3 0.1 0.4", []),  # without area
    ],
)
def test_rows(text, boxes, tmp_path):
    found = read(tmp_path, text)
    assert found.fault is None and found.rows.shape == (len(boxes), 5) and found.rows.dtype == np.float32
    np.testing.assert_allclose(found.rows, np.reshape(boxes, (-1, 5)), atol=1e-6)


@pytest.mark.parametrize(
    "row, said",
    [
        ("3 0.5 0.5 0.1 0.1", "its class must be a whole number from 0 to 2"),
        ("-1 0.5 0.5 0.1 0.1", "class must be"),
        ("0.5 0.5 0.5 0.1 0.1", "class must be"),
        ("nan 0.5 0.5 0.1 0.1", "class must be"),
        ("cat 0.5 0.5 0.1 0.1", "could not convert string to float: 'cat'"),
        ("0 .1_5 0.5 0.1 0.1", "numbers must have no underscores"),
        ("0,0.5,0.5,0.1,0.1", "could not convert"),
        ("0 0.5 0.5 1.02 0.1", "must be shares of the image, from 0 to 1"),
        ("0 320 240 64 48", "must be shares"),
        ("0 0.5 0.5 -0.1 0.1", "must be shares"),
        ("0 0.5 0.5 nan 0.1", "must be shares"),
        ("0 0.5 0.5 inf 0.1", "must be shares"),
        ("0 0.5 0.5 0.1 0.1 0.9", "a sixth number, as a confidence or the number of a track"),
        ("0 0.5 0.5 0.1", "it must be a class with x, y, width and height, or with the x and y of three points"),
        ("0", "it must be a class with"),
        ("0 0.1 0.1 0.5 0.1 0.5 0.5 0.1", "it must be a class with"),
    ],
)
def test_wrong_rows_are_faults_with_file_and_line(row, said, tmp_path):
    fault = read(tmp_path, f"0 0.5 0.5 0.1 0.1\n\n{row}\n").fault
    assert (
        fault.startswith(f"{tmp_path / 'a.txt'}, line 3: ") and said in fault and fault.endswith(f"Received: {row!r}")
    )


def test_a_file_that_is_no_text_is_a_fault(tmp_path):
    assert "a.txt cannot be read: 'utf-8' codec" in read(tmp_path, b"\xff\xfe0").fault
    assert "No such file" in yolo_labels.read(tmp_path / "b.txt", 1).fault
    assert yolo_labels.read(None, 1)[:2] == (None, ())


def dataset(folder, labels, names="[cat, dog]"):
    """Writes images of 10 x 20 pixels with their labels."""
    for name, text in labels.items():
        write_image(folder / "images" / f"{name}.png", 1, (20, 10))
        (folder / "labels").mkdir(exist_ok=True)
        (folder / "labels" / f"{name}.txt").write_text(text)
    (folder / "data.yaml").write_text(f"train: images\nnames: {names}\n")
    return folder


def load(folder, targets=("segmentation_masks",), **settings):
    return sources.load(Data(source=f"folder:{folder}", **settings), "train", targets)


def pixels(source):
    masks = source.targets["segmentation_masks"]
    return {pathlib.Path(path).stem: mask_pixels(mask) for path, mask in zip(source.images, masks)}


def test_wrong_rows_are_an_error_or_their_image_is_left_out(tmp_path):
    dataset(tmp_path, {"a": f"0 {SQUARE}", "b": f"7 {SQUARE}"})
    for targets, what in ((("bounding_boxes",), "boxes"), (("segmentation_masks",), "mask")):
        with pytest.raises(
            ValueError, match=f"1 of 2 images cannot be used.*\n.*b.png .its {what}: .*b.txt, line 1: its class"
        ):
            load(tmp_path, targets)
    with pytest.warns(LeftOut, match="1 of 2 images, which cannot be used"):
        assert len(load(tmp_path, ("bounding_boxes",), bad_images="skip")) == 1
    dataset(tmp_path, {"b": "1 0.5 0.5 0 0.1"})
    with pytest.raises(
        ValueError, match="1 objects have no area.*skip:\n  .*b.txt, line 1. Received: '1 0.5 0.5 0 0.1'"
    ):
        load(tmp_path, ("bounding_boxes",))
    with pytest.warns(LeftOut, match="Left out 1 objects, which have no area in their image"):
        assert len(load(tmp_path, ("bounding_boxes",), bad_images="skip")) == 2


def test_polygons_are_masks_with_a_background(tmp_path):
    dataset(tmp_path, {"a": f"0 {SQUARE}\n1 0.3 0.3 0.4 0.3 0.4 0.4 0.3 0.4\n1 0 0 1 0 1 1 0 1", "b": ""})
    source = load(tmp_path)
    assert source.class_names == ("background", "cat", "dog") and set(source.mask_values) == {0, 1, 2}
    expected = np.full((10, 20), 2)  # the largest is below, the smallest on top
    expected[1:5, 2:10] = 1
    expected[3:4, 6:8] = 2
    np.testing.assert_array_equal(pixels(source)["a"], expected)
    assert not pixels(source)["b"].any()
    Segment(classes=("background", "cat", "dog")).on(source)
    with pytest.raises(
        ValueError, match="must have the classes of the task, .'background', 'dog', 'cat'.*in this order"
    ):
        Segment(classes=("background", "dog", "cat")).on(source)
    before = inspection.contents(train=source), source.fingerprint()
    dataset(tmp_path, {"b": f"1 {SQUARE}"})
    assert inspection.contents(train=load(tmp_path)) != before[0] and load(tmp_path).fingerprint() != before[1]


@pytest.mark.parametrize(
    "labels, names, said",
    [
        ("0 0.5 0.5 0.1 0.1", "[cat]", r"b.txt: a mask must be of polygons. Received: a box, 0 0.5 0.5 0.1 0.1"),
        ("", "[cat, background]", "beside 'background', which is the first of their classes"),
        ("", f"[{', '.join(map(str, range(254)))}]", "Masks must be of 253 classes or fewer"),
    ],
)
def test_what_masks_cannot_be_made_of(labels, names, said, tmp_path):
    dataset(tmp_path, {"a": "", "b": labels}, names)
    with pytest.raises(ValueError, match=said):
        load(tmp_path)


def test_places_are_those_of_the_upright_image(tmp_path):
    dataset(tmp_path, {"a": "0 0.5 0.1 1 0.2", "b": "0 0 0 1 0 1 0.2 0 0.2"})
    for name in "ab":
        write_image(tmp_path / "images" / f"{name}.png", 6, (20, 10))
    assert np.allclose(load(tmp_path, ("bounding_boxes",)).targets["bounding_boxes"][..., :4], (0, 0, 0.2, 1))
    (tmp_path / "labels" / "a.txt").write_text("")
    mask = pixels(load(tmp_path))["b"]
    assert mask.shape == (20, 10) and mask[:4].all() and not mask[4:].any()


def test_polygons_cover_the_pixels_whose_centers_are_inside():
    one = lambda points, size=(6, 8): yolo_labels.filled([(1, np.array(points, float))], size)  # noqa: E731
    half = one([(0, 0), (8, 0), (0, 6)]) + one([(8, 0), (8, 6), (0, 6)])
    assert (half == 1).all()  # neighbors leave no gap, and share no pixel
    assert one([(1.4, 1.4), (2.4, 1.4), (2.4, 2.4), (1.4, 2.4)]).nonzero()[0].tolist() == [1]
    outside = [(-9, -9), (3, -9), (3, 99), (-9, 99)]
    np.testing.assert_array_equal(one(outside)[0], [1, 1, 1, 0, 0, 0, 0, 0])
    assert not one([(9, 9), (12, 9), (12, 12)]).any() and not one([(-5, 1), (-2, 1), (-2, 5)]).any()
    ring = [(0, 0), (6, 0), (6, 6), (0, 6), (0, 0), (2, 2), (2, 4), (4, 4), (4, 2), (2, 2)]  # over a bridge and back
    found = one(ring, (6, 6))
    assert found.sum() == 32 and not found[2:4, 2:4].any()


def test_masks_are_those_of_matplotlib():
    from matplotlib.path import Path

    rng, centers = np.random.default_rng(0), np.argwhere(np.ones((64, 64)))[:, ::-1] + 0.5
    for _ in range(5):
        angles = np.sort(rng.uniform(0, 2 * np.pi, 9))
        points = 32 + np.stack([np.cos(angles), np.sin(angles)], 1) * rng.uniform(8, 40, (9, 1))
        expected = Path(points).contains_points(centers).reshape(64, 64)
        np.testing.assert_array_equal(yolo_labels.filled([(1, points)], (64, 64)), expected)


def objects(folder, **settings):
    source = load(folder, ("instance_masks",), **settings)
    held = source.targets["instance_masks"]
    return source, {pathlib.Path(path).stem: instance_maps.pixels(item) for path, item in zip(source.images, held)}


def test_polygons_are_objects_one_a_row(tmp_path):
    rows = f"0 {SQUARE}\n1 0.3 0.3 0.4 0.3 0.4 0.4 0.3 0.4\n1 0 0 1 0 1 1 0 1\n0 0.9 0 1 0 1 0.5 0.9 0.5"
    dataset(tmp_path, {"a": rows, "b": ""})
    source, maps = objects(tmp_path)
    assert source.class_names == ("cat", "dog") and source.stuff == () and (maps["b"] == -1).all()
    expected = np.full((10, 20), 1002)  # the largest is below, the smallest on top
    expected[1:5, 2:10], expected[3:4, 6:8], expected[:5, 18:] = 1, 1001, 2
    np.testing.assert_array_equal(maps["a"], expected)
    before = inspection.contents(train=source), source.fingerprint()
    dataset(tmp_path, {"b": f"1 {SQUARE}"})
    after = objects(tmp_path)[0]
    assert inspection.contents(train=after) != before[0] and after.fingerprint() != before[1]


def test_what_objects_cannot_be_made_of(tmp_path):
    dataset(tmp_path, {"a": f"0 {SQUARE}", "b": "1 0.5 0.5 0.1 0.1"})
    with pytest.raises(ValueError, match=r"b.txt: a mask must be of polygons. Received: a box, 1 0.5 0.5 0.1 0.1"):
        objects(tmp_path)
    dataset(tmp_path, {"b": "\n".join(f"0 {SQUARE} {i / 2000} 0.5" for i in range(1000))})
    with pytest.raises(ValueError, match=r"b.txt: An image must have at most 999 objects of one class. Received: 1000"):
        objects(tmp_path)
    dataset(tmp_path, {"b": f"1 {SQUARE}\n0 0.5 0.51 0.52 0.51 0.52 0.54"})  # between the centers of pixels
    with pytest.raises(
        ValueError, match=r"(?s)1 objects have no area.*b.txt: no pixel is inside. Received: 0 0.5 0.51"
    ):
        objects(tmp_path)
    with pytest.warns(LeftOut, match="Left out 1 objects, which have no area in their image"):
        assert {*np.unique(objects(tmp_path, bad_images="skip")[1]["b"])} == {-1, 1001}
    with pytest.raises(
        ValueError, match="has no labels. It has: images, bounding boxes, segmentation masks, instance m"
    ):
        load(tmp_path / "data.yaml", ("labels",))

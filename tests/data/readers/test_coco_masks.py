import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")
mask = pytest.importorskip("pycocotools.mask")

from keras_vit.config import Data  # noqa: E402
from keras_vit.data import inspection, sources  # noqa: E402
from keras_vit.data.readers import coco_masks  # noqa: E402
from keras_vit.models.outputs import ignored  # noqa: E402
from keras_vit.utils import extras, instance_maps  # noqa: E402
from keras_vit.utils.warned import LeftOut  # noqa: E402
from tests import exiffiles  # noqa: E402
from tests.data.test_mask_frames import write_image  # noqa: E402

RNG = np.random.default_rng(0)
SIZE = (30, 40)  # height, width
SQUARE = [[4, 3, 20, 3, 20, 27, 4, 27]]  # rows 3 to 26, columns 4 to 19
SMALL = [[10, 10, 14, 10, 14, 14, 10, 14], [2, 2, 6, 2, 6, 6]]  # of two parts
BLOB = RNG.random(SIZE) < 0.3


def runs(values):
    """Returns a mask as an RLE whose counts are a list."""
    flat = np.concatenate([[0], np.asarray(values).T.reshape(-1), [2]])
    ends = np.flatnonzero(np.diff(flat))
    counts = np.diff(np.concatenate([[0], ends]))
    return {"size": list(np.shape(values)), "counts": counts.tolist()}


def text(values):
    found = mask.encode(np.asfortranarray(values.astype("uint8")))
    return {**found, "counts": found["counts"].decode()}


def annotation(segmentation, kind="dog", image=0, **more):
    found = {"id": 7, "image_id": image, "category_id": {"cat": 3, "dog": 90}[kind], "iscrowd": 0}
    return found | ({} if segmentation is ... else {"segmentation": segmentation}) | more


def write(folder, annotations, names=("a.png",), **size):
    """Writes images of 40 x 30 pixels, and a JSON file with gaps between the ids of its categories."""
    for name in names:
        write_image(folder / "images" / name, 1, SIZE[::-1])
    sides = {"width": SIZE[1], "height": SIZE[0], **size}
    content = {
        "categories": [{"id": 90, "name": "dog"}, {"id": 3, "name": "cat"}],
        "images": [{"id": i, "file_name": name, **sides} for i, name in enumerate(names)],
        "annotations": annotations,
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def load(folder, **settings):
    return sources.load(Data(source=f"folder:{folder}", **settings), "all", ("instance_masks",))


def maps(source):
    return {path[-5]: instance_maps.pixels(item) for path, item in zip(source.images, source.targets["instance_masks"])}


def test_polygons_and_both_kinds_of_run_lengths_are_masks_of_pycocotools(tmp_path):
    """In the order of area, whatever the order in the file; cat is class 0, since its id is the lower one."""
    crowd = np.zeros(SIZE, bool)
    crowd[20:] = True
    segmentations = [SMALL, runs(crowd), text(BLOB), SQUARE]
    annotations = [
        annotation(SMALL, "cat"),
        annotation(runs(crowd), "cat", iscrowd=1),
        annotation(text(BLOB), image=1),
        annotation(SQUARE),
        annotation([[30, 1, 39, 1, 39, 9, 30, 9]], "cat"),
    ]
    source = load(write(tmp_path, annotations, ("a.png", "b.png", "c.png")))
    assert source.class_names == ("cat", "dog") and source.stuff == () and len(source) == 3

    def decoded(segmentation):
        found = mask.frPyObjects(segmentation, *SIZE)
        found = mask.merge(found) if isinstance(segmentation, list) else found
        return mask.decode(found) > 0

    expected = np.full(SIZE, -1)
    for index, value in ((3, 1001), (1, ignored(0)), (0, 1)):  # 384, 400 and 24 pixels
        expected[decoded(segmentations[index])] = value
    expected[decoded(SQUARE) & ~decoded(SMALL)] = 1001  # smaller than the crowd
    expected[decoded([[30, 1, 39, 1, 39, 9, 30, 9]])] = 2
    found = maps(source)
    np.testing.assert_array_equal(found["a"], expected)
    np.testing.assert_array_equal(found["b"], np.where(BLOB, 1001, -1))
    assert (found["c"] == -1).all()
    classes = [0, ignored(0), 1, 0]
    stacked = [decoded(SMALL), crowd, decoded(SQUARE), decoded([[30, 1, 39, 1, 39, 9, 30, 9]])]
    np.testing.assert_array_equal(found["a"], instance_maps.joined(stacked, classes))


def test_texts_of_run_lengths_are_numbers():
    """Long, short and none, so that numbers of several characters and differences below zero are among them."""
    for share in (0, 0.001, 0.3, 0.999, 1):
        values = RNG.random((700, 300)) < share
        counts = coco_masks._runs(text(values)["counts"])
        assert counts.tolist() == [*runs(values)["counts"]]
        assert counts.sum() == values.size and counts[1::2].sum() == values.sum()
    for wrong in ("", "\u00e9", "0b0\x7f", "P", "PPPPPPPP0", None, 3, b"08"):
        assert coco_masks._runs(wrong) is None


@pytest.mark.parametrize(
    "segmentation, said",
    [
        (..., "it has no segmentation"),
        (None, "it has no segmentation"),
        ([], "it has no segmentation"),
        ([[]], "a polygon must be x, y, x, y, ... of three points or more: 0 numbers"),
        ([[4, 3, 20, 27]], "three points or more: 4 numbers"),  # which pycocotools takes for a box
        ([*SQUARE, [1, 2, 3, 4, 5, 6, 7]], "three points or more: 7 numbers"),
        (SQUARE[0], "three points or more: 1 numbers"),
        ([["4", "3", "20", "3", "20", "27"]], "three points or more: 6 numbers"),
        ([[4, 3, None, 3, 20, 27]], "three points or more"),
        ([[[4, 3], [20, 3], [20, 27]]], "three points or more"),
        ("4 3 20 3 20 27", "it has no segmentation"),
        ([[4, 3, 4, 9, 4, 27]], "it has no area: no pixel of the image is inside"),
        ([[50, 3, 60, 3, 60, 9]], "it has no area"),
        ([[4, 3, 1e9, 3, 20, 27]], "a point of its polygon is far outside the image of 40 x 30 pixels"),
        ([[4, 3, float("nan"), 3, 20, 27]], "a point of its polygon is far outside"),
        (runs(BLOB.T), r"its RLE must have the size \[height, width\] of the image, \[30, 40\]: \[40, 30\]"),
        ({"counts": [1200]}, "must have the size .*: None"),
        ({"size": [30, 40], "counts": [1, 2]}, "its RLE must count all 1200 pixels of the image"),
        ({"size": [30, 40], "counts": [1300, -100]}, "must count all"),
        ({"size": [30, 40], "counts": "08"}, "must count all"),
        ({"size": [30, 40], "counts": []}, "must count all"),
        ({"size": [30, 40]}, "must count all"),
        ({"size": [30, 40], "counts": [1200]}, "it has no area"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_or_left_out(segmentation, said, tmp_path):
    write(tmp_path, [annotation(segmentation), annotation(SMALL, "cat")])
    with pytest.raises(ValueError, match=rf"(?s)1 objects are wrong.*skip:\n  .*a.png, dog, annotation 7: .*{said}"):
        load(tmp_path)
    with pytest.warns(LeftOut, match="(?s)Left out 1 objects, which are wrong:\n  .*a.png, dog"):
        found = maps(load(tmp_path, bad_images="skip"))["a"]
    assert {*np.unique(found)} == {-1, 1}


def test_a_file_without_annotations_has_images_without_objects(tmp_path):
    source = load(write(tmp_path, [], ("a.png", "b.png")))
    assert all((found == -1).all() for found in maps(source).values()) and source.class_names == ("cat", "dog")


@pytest.mark.parametrize(
    "change, said",
    [
        ({"category_id": 4}, "is no JSON of COCO: it has no 4 where one must be"),
        ({"image_id": 4}, "it has no 4 where one must be"),
        ({"iscrowd": 2}, "iscrowd of annotation 7 must be 0 or 1: 2"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(change, said, tmp_path):
    with pytest.raises(ValueError, match=f"annotations.json' .*{said}"):
        load(write(tmp_path, [annotation(SQUARE) | change]))


def test_an_image_is_named_once(tmp_path):
    with pytest.raises(ValueError, match="must name each image once. Received: 2 images, 1 names"):
        load(write(tmp_path, [], ("a.png", "./a.png")))


def test_a_file_without_images_is_refused(tmp_path):
    write_image(tmp_path / "images" / "b.png", 1)
    with pytest.raises(ValueError, match="must contain images that annotations.json names. Received: none"):
        load(write(tmp_path, [], ()))


def test_objects_of_an_image_of_another_size_are_a_fault_of_the_image(tmp_path):
    write(tmp_path, [annotation(SQUARE)], ("a.png", "b.png"))
    write_image(tmp_path / "images" / "a.png", 1, SIZE)
    with pytest.raises(ValueError, match="a.png .its mask: it is of 40 x 30 pixels, and the image has 30 x 40"):
        load(tmp_path)
    with pytest.warns(LeftOut, match="1 of 2 images"):
        assert len(load(tmp_path, bad_images="skip")) == 1


def test_an_image_that_cannot_be_read_is_named_as_one(tmp_path):
    write(tmp_path, [annotation(SQUARE)], ("a.png", "b.png"))
    (tmp_path / "images" / "a.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="a.png .is not a PNG"):
        load(tmp_path)


def test_a_thousand_objects_of_a_class_are_a_sentence(tmp_path):
    point = [[0, 0, 9, 0, 9, 9]]
    write(tmp_path, [annotation(point)] * 1000)
    with pytest.raises(ValueError, match="a.png .its mask: An image must have at most 999 objects of one class"):
        load(tmp_path)
    kinds = [annotation(point, ("cat", "dog")[i % 2]) for i in range(1000)]
    assert maps(load(write(tmp_path, kinds)))["a"].max() == 1500


@pytest.mark.parametrize("number", range(5, 9))
@pytest.mark.parametrize("stored", [True, False])
def test_objects_are_turned_with_their_image(number, stored, tmp_path):
    values = np.zeros(SIZE, bool)
    values[3:9, 4:20] = True
    seen = exiffiles.upright(number, values)
    held = values if stored else seen
    write(tmp_path, [annotation(text(held))], width=held.shape[1], height=held.shape[0])
    write_image(tmp_path / "images" / "a.png", number, SIZE[::-1])
    np.testing.assert_array_equal(maps(load(tmp_path))["a"], np.where(seen, 1001, -1))


def test_what_nothing_decides_is_an_error(tmp_path):
    write(tmp_path, [annotation(SQUARE)], ("a.png", "b.png"), width=None)
    assert len(load(tmp_path)) == 2  # upright images need no size
    write_image(tmp_path / "images" / "b.png", 6, SIZE[::-1])
    assert maps(load(tmp_path))["b"].shape == SIZE[::-1]  # without objects
    write_image(tmp_path / "images" / "a.png", 6, SIZE[::-1])
    with pytest.raises(ValueError, match="a.png .its mask: the image has EXIF orientation 6, and nothing says"):
        load(tmp_path)


def test_contents_are_of_images_and_objects(tmp_path):
    before = inspection.identity(*[load(write(tmp_path, [annotation(SQUARE)]))] * 2)
    for changed in (
        [annotation(SQUARE, "cat")],
        [annotation(SQUARE), annotation(SQUARE, iscrowd=1, id=8)],
        [annotation([[*SQUARE[0][:-1], 28]])],
    ):
        after = inspection.identity(*[load(write(tmp_path, changed))] * 2)
        assert after["train_contents"] != before["train_contents"] and after["train"] != before["train"]
    assert inspection.identity(*[load(write(tmp_path, [annotation(SQUARE)]))] * 2) == before


def test_pycocotools_is_needed(tmp_path, monkeypatch):
    def missing(*_):
        raise ImportError("Drawing the masks of COCO needs pycocotools")

    write(tmp_path, [])
    monkeypatch.setattr(extras, "need", missing)
    with pytest.raises(ImportError, match="needs pycocotools"):
        load(tmp_path)

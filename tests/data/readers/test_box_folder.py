import json

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Data  # noqa: E402
from keras_vit.data import sources  # noqa: E402
from keras_vit.utils.warned import LeftOut  # noqa: E402
from tests.data.readers.test_box_files import coco, xml  # noqa: E402

OBJECTS = {"a": [("dog", 4, 3, 20, 27)], "b": [], "c": [("cat", 0, 0, 40, 30), ("dog", 30, 6, 44, 15)]}
SHARES = {
    "a": [(0.1, 0.1, 0.9, 0.5, 1)],
    "b": [],
    "c": [(0, 0, 1, 1, 0), (0.2, 0.75, 0.5, 1, 1)],
}


def image(path, size=(40, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


@pytest.fixture(params=["voc", "coco", "roboflow"])
def folder(request, tmp_path):
    for split in ("train", "val"):
        for name in OBJECTS:
            image(tmp_path / split / ("" if request.param == "roboflow" else "images") / f"{name}.jpg")
            if request.param == "voc":
                xml(tmp_path / split / "annotations" / f"{name}.xml", OBJECTS[name] if split == "train" else [])
    if request.param != "voc":
        files = {f"{n}.jpg": [(k, x, y, r - x, b - y) for k, x, y, r, b in o] for n, o in OBJECTS.items()}
        name = {"coco": "annotations.json", "roboflow": "_annotations.coco.json"}[request.param]
        coco(tmp_path / "train" / name, files)
        coco(tmp_path / "val" / name, {key: [] for key in files})
    return tmp_path


def load(folder, split="train", **settings):
    return sources.load(Data(source=f"folder:{folder}", **settings), split, ("bounding_boxes",))


def test_boxes_are_shares_of_their_image_by_class(folder):
    source = load(folder)
    assert source.class_names == ("cat", "dog") and len(source) == 3
    held = source.targets["bounding_boxes"]
    assert held.shape == (3, 2, 5) and held.dtype == np.float32
    for path, rows in zip(source.images, held):
        expected = SHARES[path[-5]]
        np.testing.assert_allclose(rows[: len(expected)], np.reshape(expected, (-1, 5)), atol=1e-6)
        assert (rows[len(expected) :, 4] == -1).all()
    empty = load(folder, "val")
    assert empty.class_names == source.class_names and empty.targets["bounding_boxes"].shape == (3, 1, 5)
    assert len({source.fingerprint(), load(folder, "train[:70%]").fingerprint(), empty.fingerprint()}) == 3


@pytest.mark.parametrize("folder", ["voc", "coco"], indirect=True)
def test_wrong_boxes_are_an_error_or_left_out(folder):
    if (folder / "train" / "annotations").is_dir():
        xml(folder / "train" / "annotations" / "a.xml", [("dog", 20, 3, 4, 27)])
    else:
        coco(folder / "train" / "annotations.json", {"a.jpg": [("dog", 20, 3, -16, 24)], "b.jpg": [], "c.jpg": []})
    with pytest.raises(ValueError, match=r"1 boxes are wrong.*skip:\n  .*a.jpg.*, dog: it has no area, or .* right 4"):
        load(folder)
    with pytest.warns(LeftOut, match="Left out 1 boxes, which are wrong:\n  .*a.jpg, dog: it has no area"):
        assert (load(folder, bad_images="skip").targets["bounding_boxes"][..., 4] != 1).any()


@pytest.mark.parametrize("folder", ["voc", "coco"], indirect=True)
def test_boxes_that_are_shares_are_no_pixels(folder):
    if (folder / "train" / "annotations").is_dir():
        xml(folder / "train" / "annotations" / "a.xml", [("dog", 0.1, 0.1, 0.5, 0.9)])
        xml(folder / "train" / "annotations" / "c.xml", [("cat", 0.2, 0.1, 0.5, 0.75)])
    else:
        files = {"a.jpg": [("dog", 0.1, 0.1, 0.4, 0.8)], "b.jpg": [], "c.jpg": []}
        coco(folder / "train" / "annotations.json", files)
    with pytest.raises(ValueError, match=r"must be in pixels. Received: numbers up to 0.9 for .*look like shares"):
        load(folder, bad_images="skip")


@pytest.mark.parametrize("folder", ["voc"], indirect=True)
def test_images_and_xml_files_that_do_not_belong_together(folder):
    inside = folder / "train" / "annotations"
    (inside / "a.xml").write_text("<annotation>")
    with pytest.raises(ValueError, match="(?s)1 of 3 images cannot be used.*a.jpg .its boxes: no XML of Pascal VOC"):
        load(folder)
    assert len(load(folder, bad_images="skip")) == 2
    (inside / "a.xml").unlink()
    with pytest.raises(
        ValueError, match="a.jpg .its boxes: there is no annotations/a.xml: if .* <annotation></annotation>"
    ):
        load(folder)
    xml(inside / "lone.xml", [])
    with pytest.raises(ValueError, match="Every file of boxes must have an image. Received: '.*lone.xml'"):
        load(folder)


@pytest.mark.parametrize("folder", ["voc"], indirect=True)
def test_hidden_files_are_left_out(folder):
    for hidden in (".copies/a", "._a"):
        image(folder / "train" / "images" / f"{hidden}.jpg")
        xml(folder / "train" / "annotations" / f"{hidden}.xml", [("bird", 4, 3, 20, 27)])
    source = load(folder)
    assert len(source) == 3 and source.class_names == ("cat", "dog")


@pytest.mark.parametrize("folder", ["coco"], indirect=True)
def test_images_and_a_json_file_that_do_not_belong_together(folder):
    image(folder / "train" / "images" / "d.jpg")
    with pytest.warns(LeftOut, match="Left out 1 images that annotations.json does not name"):
        assert len(load(folder)) == 3
    (folder / "train" / "images" / "a.jpg").unlink()
    with pytest.raises(ValueError, match="must name images that exist. Received: '.*a.jpg'"):
        load(folder)
    content = json.loads((folder / "val" / "annotations.json").read_text())
    content["images"][0]["file_name"] = "../../train/images/b.jpg"
    (folder / "val" / "annotations.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="must name images that exist"):
        load(folder, "val")


@pytest.mark.parametrize("folder", ["voc", "coco"], indirect=True)
def test_boxes_of_an_image_of_another_size_are_an_error(folder):
    image(folder / "train" / "images" / "c.jpg", (30, 40))
    with pytest.raises(ValueError, match="c.jpg: its boxes are in 40 x 30 pixels, and the image has 30 x 40"):
        load(folder)


def test_a_folder_without_boxes_says_what_it_needs(tmp_path):
    image(tmp_path / "train" / "images" / "a.jpg")
    with pytest.raises(ValueError, match="must contain 'annotations.json' .COCO.* Received: images"):
        load(tmp_path)


@pytest.mark.parametrize("folder", ["voc", "coco"], indirect=True)
def test_an_image_of_another_size_is_left_out_if_asked(folder):
    image(folder / "train" / "images" / "c.jpg", (30, 40))
    with pytest.warns(LeftOut, match="Left out 1 boxes, which are wrong:"):
        assert len(load(folder, bad_images="skip")) == 3


@pytest.mark.parametrize("folder", ["voc"], indirect=True)
def test_endings_in_capitals(folder):
    before = load(folder).targets["bounding_boxes"]
    (folder / "train" / "annotations" / "a.xml").rename(folder / "train" / "annotations" / "a.XML")
    np.testing.assert_array_equal(load(folder).targets["bounding_boxes"], before)


def test_a_category_that_is_named_twice_is_one(tmp_path):
    """As some programs write a category above all others."""
    image(tmp_path / "images" / "a.jpg")
    coco(tmp_path / "annotations.json", {"a.jpg": [("cell", 1, 2, 10, 20)]}, categories=("cell", "cell"))
    assert load(tmp_path, "all").class_names == ("cell",)


def test_two_writings_of_one_name_are_refused(tmp_path):
    image(tmp_path / "train" / "images" / "a.jpg")
    for name in ("a.xml", "a.XML"):
        xml(tmp_path / "train" / "annotations" / name, OBJECTS["a"])
    if len(list((tmp_path / "train" / "annotations").iterdir())) < 2:
        pytest.skip("a disk that knows no capitals")
    with pytest.raises(ValueError, match="one file of boxes. Received: 'a.xml'"):
        load(tmp_path)

import pathlib
import warnings

import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.readers import yolo_dataset
from keras_vit.utils.warned import LeftOut

BOX, NAMES = "0 0.5 0.5 0.25 0.5\n", "names: [cat, dog]\n"
SPLITS = "train: images/train\nval: images/val\n"


def write(folder, files):
    """Writes text files, and images of 40 x 30 pixels, by their paths."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith((".jpg", ".png")):
            Image.new("RGB", (40, 30)).save(folder / path)
        else:
            (folder / path).write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path):
    """`images/train` of two images, and `images/val` of one, with labels."""
    names = ("train/a", "train/b", "val/c")
    files = {f"labels/{name}.txt": BOX for name in names} | {f"images/{name}.jpg": "" for name in names}
    return write(tmp_path / "set", files)


def stems(folder, split="train"):
    dataset = yolo_dataset.read(yolo_dataset.find(folder))
    return "".join(pathlib.Path(path).stem for path in yolo_dataset.images(dataset, split))


def load(folder, split="train", targets=("bounding_boxes",), **settings):
    return sources.load(Data(source=f"folder:{folder}", **settings), split, targets)


@pytest.mark.parametrize(
    "text, train",
    [
        (SPLITS, "ab"),
        ("path: .\n" + SPLITS, "ab"),
        ("path: /another/machine\n" + SPLITS, "ab"),
        ("path: datasets/set  # as this folder is called elsewhere\n" + SPLITS, "ab"),
        ("path: ../set\n" + SPLITS, "ab"),
        ("path:\ntrain: images/train/\nval: ./images/val\ntest:  # optional\n", "ab"),
        ("train: ../images/train\nval: ../images/val\n", "ab"),
        ("train: set/images/train\nval: set/images/val\n", "ab"),
        ("train: [images/train, images/val]\n", "abc"),
        ("train:\n- images/val\n- images/train\n", "cab"),
        ("train: images\n", "abc"),
        ("train: lists/a.txt\n", "ab"),
        ("train: lists/b.txt\n", "ba"),
        ("train: lists/absolute.txt\n", "a"),
        ("nc: 2\n" + SPLITS, "ab"),
    ],
)
def test_splits(folder, text, train):
    lists = {"a": "./../images/train/a.jpg\n./../images/train/b.jpg\n\n", "b": "images/train/b.jpg\nimages/train/a.jpg"}
    write(folder, {f"lists/{name}.txt": lines for name, lines in lists.items()} | {"data.yaml": text + NAMES})
    write(folder, {"lists/absolute.txt": f"{folder}/images/train/a.jpg"})
    assert stems(folder) == train
    assert stems(folder / "data.yaml") == train
    assert len(load(folder)) == len(train)


@pytest.mark.parametrize(
    "names, wanted",
    [
        ("[cat, dog]", ("cat", "dog")),
        ("\n  0: cat\n  1: dog", ("cat", "dog")),
        ("{1: dog, 0: cat}", ("cat", "dog")),
        ("[no, 1]", ("no", "1")),
        ("[off, 1.0, null]", ("off", "1.0", "null")),
        ("\n- 'traffic light'\n- ö", ("traffic light", "ö")),
    ],
)
def test_names_are_texts(folder, names, wanted):
    write(folder, {"data.yaml": f"{SPLITS}names: {names}\n"})
    assert load(folder).class_names == load(folder, "val").class_names == wanted


@pytest.mark.parametrize(
    "text, said",
    [
        (SPLITS + "names: {0: cat, 2: dog}", "from 0 to 1. Received: 0, 2, without 1"),
        (SPLITS + "names: {1: cat, 2: dog}", "Received: 1, 2, without 0"),
        (SPLITS + "names: {0: cat, 0: dog}", "the key '0' is there twice"),
        (SPLITS + "names: [cat, cat]", "must have different names. Received: 'cat' twice"),
        (SPLITS + "names: cat", "must have names, a list or a mapping from 0 on. Received: names='cat'"),
        (SPLITS + "names: [[cat]]", "must have names"),
        (SPLITS + "nc: 3", "must have names.* Received: names=None"),
        (SPLITS + NAMES + "nc: 3", "as many classes as nc. Received: nc='3', 2 names"),
        (SPLITS + NAMES + "kpt_shape: [17, 3]", "is of poses, whose keypoints are not read"),
        (NAMES, "must have splits, such as train and val.*Received: .'names'"),
        (SPLITS + NAMES + "path: [a, b]", r"must name one folder as path. Received: path=\['a', 'b'\]"),
        (NAMES + "train:\n", "must have splits"),
        (NAMES + "train: {a: b}", "must have splits"),
        (NAMES + "train: images/other", "train: 'images/other', and there is no '.*set/images/other'"),
        (NAMES + "train: ../other", "there is no '.*other' or '.*set/other'"),
        (NAMES + "train: data.yaml", "must name folders, or text files of paths. Received: '.*data.yaml'"),
        (NAMES + "train: labels", "must contain images .*Received: none"),
        (NAMES + "train: empty.txt", "must name images, one a line. Received: an empty file"),
        (NAMES + "val: images/val", "no split 'train', but val. Name them, such as data.train=val.:90%"),
        ("names: [cat", "must be a YAML file. Received: while parsing"),
        ("names: \x01", "must be a YAML file"),
        (
            "a: &a [x, x]\nb: &b [*a, *a]\n" + "names: [" + "*b, " * 99 + "*b]",
            r"Received: names=\[\[\['x', 'x'\], .*\.\.\.",
        ),
        ("- a", r"must be a YAML file with names and splits. Received: \['a'\]"),
    ],
)
def test_wrong_yaml_files_are_named(folder, text, said):
    write(folder, {"data.yaml": text, "empty.txt": "\n"})
    with pytest.raises(ValueError, match=f"(?s){said}"), warnings.catch_warnings(action="ignore"):
        load(folder)


def test_which_file_describes_a_folder(folder, tmp_path):
    with pytest.raises(ValueError, match=r"or '.*set' 'data.yaml' .YOLO."):
        load(folder, "all")
    write(folder, {"notes.yaml": "a: 1", "broken.yaml": "[", "blood.yml": SPLITS + NAMES})
    assert yolo_dataset.find(folder).name == "blood.yml"
    write(folder, {"other.yaml": SPLITS + NAMES})
    with pytest.raises(ValueError, match="or data.source=folder:PATH must name it. Received: blood.yml, other.yaml"):
        load(folder)
    assert len(load(folder / "other.yaml")) == 2
    write(folder, {"dataset.yaml": SPLITS + NAMES})
    assert yolo_dataset.find(folder).name == "dataset.yaml"
    with pytest.raises(FileNotFoundError, match="no folder '.*none.yaml'"):
        load(folder / "none.yaml")
    for name in ("labels", "numbers"):
        with pytest.raises(ValueError, match=f"has no {name}. It has: images, bounding boxes, segmentation masks"):
            load(folder / "dataset.yaml", targets=(name,))
    assert load(folder / "dataset.yaml", targets=()).targets == {}


def test_boxes_in_another_layout_come_first(folder):
    write(folder, {"data.yaml": SPLITS + NAMES, "train/images/z.jpg": "", "train/annotations/z.xml": "<annotation/>"})
    assert load(folder).class_names == () and load(folder / "data.yaml").class_names == ("cat", "dog")


def test_splits_of_all_are_refused_where_there_are_others(folder):
    write(folder, {"data.yaml": SPLITS + NAMES})
    with pytest.raises(ValueError, match="no split 'all', but train, val. .* data.train=train data.validation=val"):
        load(folder, "all[:80%]")
    assert len(load(folder, "train[:50%]")) == 1
    assert load(folder, "train[:50%]").fingerprint() != load(folder, "train[50%:]").fingerprint()


@pytest.mark.parametrize("place", yolo_dataset.CLASSES)
def test_a_list_of_classes_without_a_yaml_file(folder, place):
    """As Label Studio and LabelImg write it."""
    write(folder, {place: "cat\ndog\n"})
    assert stems(folder, "all") == "abc" and stems(folder) == "ab"
    assert load(folder, "all[:67%]").class_names == ("cat", "dog")


@pytest.mark.parametrize(
    "data, said",
    [
        (b"cat\n\ndog\n", "must have a class in each line, .* Received: nothing in line 2 of 3"),
        (b"\ncat\ndog", "Received: nothing in line 1 of 3"),
        (b"caf\xe9\ndog\n", r"classes.txt' must be UTF-8: save it as that. Received: the byte b'\\xe9'"),
        (b"caf\xc3\xa9\ncafe\xcc\x81\n", "must have different names. Received: 'caf\u00e9' twice"),
        (b"\n \n", "must have names"),
    ],
)
def test_wrong_lists_of_classes_are_named(folder, data, said):
    (folder / "classes.txt").write_bytes(data)
    with pytest.raises(ValueError, match=said):
        load(folder, "all")
    (folder / "classes.txt").write_bytes(b"caf\xc3\xa9\r\ndog\r\n\r\n\n")
    assert load(folder, "all").class_names == ("caf\u00e9", "dog")


def test_labels_are_next_to_images_too(tmp_path):
    """Each image is looked for in both places: in `labels`, and next to it even in a folder called `images`."""
    files = {"images/images/a.jpg": "", "images/labels/a.txt": BOX, "images/other/images/b.jpg": ""}
    files |= {"images/other/images/b.txt": BOX * 2, "images/c.v2.jpg": "", "images/c.v2.txt": BOX}
    write(tmp_path, files | {"data.yaml": "train: images\n" + NAMES})
    with pytest.warns(LeftOut, match="1 objects that their files of labels repeat"):
        assert (load(tmp_path).targets["bounding_boxes"][..., 4] == 0).sum() == 3


def test_images_without_labels_have_no_objects_unless_all_lack_them(folder):
    write(folder, {"data.yaml": SPLITS + NAMES, "labels/train/b.txt": " \n"})
    (folder / "labels" / "train" / "a.txt").unlink()
    with pytest.warns(UserWarning, match="1 of 2 images have no file of labels: they are read as images without"):
        source = load(folder)
    assert source.targets["bounding_boxes"].shape == (2, 1, 5) and len(source.digests) == 2
    (folder / "labels" / "train" / "b.txt").unlink()
    with pytest.raises(ValueError, match="Received: 2 images, .* no '.*set/labels/train/a.txt' or '.*images/train/a.t"):
        load(folder)


def test_other_files_and_repeated_images_are_left_out(folder):
    write(folder, {"data.yaml": "train: [images/train, images]\n" + NAMES, "images/train/d.ico": ""})
    with pytest.warns(LeftOut) as said:
        assert len(load(folder)) == 3
    said = sorted(str(one.message) for one in said)
    assert "Left out 2 images that the split 'train' names again" in said
    assert "Left out 1 files without an image extension, such as" in said[0]


def test_a_listed_image_that_does_not_exist_is_named(folder):
    write(folder, {"data.yaml": "train: train.txt\n" + NAMES, "train.txt": "images/train/a.jpg\nimages/train/z.jpg"})
    with pytest.raises(ValueError, match="1 of 2 images cannot be read.*\n.*z.jpg .No such file"):
        load(folder)
    assert len(load(folder, bad_images="skip")) == 1

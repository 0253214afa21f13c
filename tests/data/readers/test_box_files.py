import json
import os

import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers import box_files

OBJECT = "<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"


def xml(path, objects, size=(40, 30)):
    """Writes an XML file of Pascal VOC; objects are (name, xmin, ymin, xmax, ymax)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sides = f"<size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>"
    path.write_text(f"<annotation>{sides}{''.join(OBJECT.format(*one) for one in objects)}</annotation>")
    return path


def coco(path, files, categories=("cat", "dog"), size=(40, 30)):
    """Writes a JSON file of COCO; `files` maps names of images to objects, (class, left, top, width, height)."""
    content = {"categories": [{"id": 10 * i + 1, "name": name} for i, name in enumerate(categories)]}
    content["images"] = [
        {"id": i, "file_name": name, "width": size[0], "height": size[1]} for i, name in enumerate(files)
    ]
    content["annotations"] = [
        {"id": 0, "image_id": i, "category_id": 10 * categories.index(kind) + 1, "bbox": bbox, "iscrowd": 0}
        for i, objects in enumerate(files.values())
        for kind, *bbox in objects
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return content


def test_an_xml_file_is_read(tmp_path):
    path = xml(tmp_path / "a.xml", [("cat", 1, 2, 11, 22), ("dog", 0.5, 0, 3, 4)])
    found = box_files.voc(path)
    assert found[:4] == (None, ("cat", "dog"), ((2, 1, 22, 11), (0, 0.5, 4, 3)), (40, 30)) and len(found.digest) == 16
    assert box_files.voc(xml(tmp_path / "b.xml", [], (0, 0)))[:4] == (None, (), (), None)


@pytest.mark.parametrize(
    "text, said",
    [
        ("<annotation><object><name>cat</name>", "no XML of Pascal VOC: no element found"),
        ("", "no XML of Pascal VOC"),
        ("<annotation><object><name>cat</name></object></annotation>", "no XML of Pascal VOC"),
        (f"<annotation>{OBJECT.format('cat', 1, 'two', 3, 4)}</annotation>", "'two'"),
        (f"<annotation>{OBJECT.format('', 1, 2, 3, 4)}</annotation>", "an object has no name"),
        ("<annotations><image id='0'><box label='cat' xtl='1'/></image></annotations>", "begins with <annotations>"),
        ("<html><body>404</body></html>", "it begins with <html>, not with <annotation>"),
    ],
)
def test_a_wrong_xml_file_has_a_fault(text, said, tmp_path):
    (tmp_path / "a.xml").write_text(text)
    assert said in box_files.voc(tmp_path / "a.xml").fault


def test_a_missing_file_has_a_fault(tmp_path):
    fault = box_files.voc(tmp_path / "a.xml").fault
    assert fault.startswith("there is no ") and "if the image has no objects, write <annotation></annotation>" in fault


def test_difficult_objects_are_to_be_ignored(tmp_path):
    text = xml(tmp_path / "a.xml", [("cat", 1, 2, 11, 22), ("dog", 0, 0, 3, 4), ("cat", 0, 0, 5, 5)]).read_text()
    first, second, third = text.split("<name>")[1:]
    marked = [f"<difficult>{i}</difficult><name>{part}" for i, part in ((0, first), (1, second))]
    (tmp_path / "a.xml").write_text("".join([text.split("<name>")[0], *marked, "<name>", third]))
    found = box_files.voc(tmp_path / "a.xml")
    assert found.fault is None and found.names == ("cat", "dog", "cat") and found.ignored == (False, True, False)


def test_a_json_file_is_read_with_its_crowds(tmp_path):
    objects = [("dog", 1, 2, 10, 20), ("cat", 0, 0, 5, 5), ("cat", 3, 4, 5, 6)]
    content = coco(tmp_path / "a.json", {"b.jpg": objects, "a.jpg": []})
    content["annotations"][1] |= {"iscrowd": 1, "bbox": []}  # nowhere
    content["annotations"][2]["iscrowd"] = 1
    (tmp_path / "a.json").write_text(json.dumps(content))
    names, files = box_files.coco(tmp_path / "a.json")
    assert list(names.values()) == ["cat", "dog"] and list(files) == ["b.jpg", "a.jpg"]
    assert files["b.jpg"][:4] == (None, ("dog", "cat"), ((2, 1, 22, 11), (4, 3, 10, 8)), (40, 30))
    assert files["b.jpg"].ignored == (False, True) and files["a.jpg"].edges == ()


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda c: c.pop("categories"), "it has no 'categories'"),
        (lambda c: c["annotations"][0].pop("bbox"), "it has no 'bbox'"),
        (lambda c: c["annotations"][0].update(category_id=99), "it has no 99"),
        (lambda c: c["annotations"][0].update(image_id=99), "it has no 99"),
        (lambda c: c["annotations"][0].update(bbox=[1, 2, 3]), "annotation .* has no box of four numbers"),
        (lambda c: c["images"][1].update(id=0), "two of its images have the id 0, as of two files put together"),
        (lambda c: c["categories"][1].update(id=1), "two of its categories have the id 1"),
        (lambda c: c["images"][1].update(file_name="b.jpg"), "must name each image once.* 2 images, 1 names"),
    ],
)
def test_a_wrong_json_file_is_named(change, said, tmp_path):
    content = coco(tmp_path / "a.json", {"b.jpg": [("dog", 1, 2, 10, 20)], "a.jpg": []})
    change(content)
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"a.json.*{said}"):
        box_files.coco(tmp_path / "a.json")


@pytest.mark.parametrize("text", ['{"images": [', "[]", "1", ""])
def test_a_cut_json_file_is_named(text, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match="a.json' is no JSON of COCO"):
        box_files.coco(tmp_path / "a.json")


@pytest.mark.parametrize(
    "edges, said",
    [
        ((1, 2, 1, 5), "no area"),
        ((5, 2, 1, 5), "another order: top 5, left 2, bottom 1, right 5"),
        ((0, 40, 5, 45), "outside the image of 40 x 30"),
        ((-9, 2, 0, 5), "outside"),
        ((float("nan"), 0, 1, 1), "no numbers"),
        ((-1, -1, 31, 41), None),
    ],
)
def test_faults_of_edges(edges, said):
    found = box_files.fault_of(edges, (40, 30))
    assert found is None if said is None else said in found


def test_what_programs_write_otherwise(tmp_path):
    path = xml(tmp_path / "a.xml", [(" dog ", 1, 2, 11, 22)], size=(40.0, 30.0))
    assert box_files.voc(path)[:4] == (None, ("dog",), ((2, 1, 22, 11),), (40, 30))


@pytest.mark.parametrize("width", ["inf", "1e400", "9" * 400])
@pytest.mark.parametrize("encoding", ["utf-8", "ANSI"])
def test_numbers_and_encodings_that_none_can_read_are_faults(width, encoding, tmp_path):
    text = xml(tmp_path / "a.xml", [], (width, 30)).read_text()
    (tmp_path / "a.xml").write_text(f'<?xml version="1.0" encoding="{encoding}"?>{text}')
    assert "no XML of Pascal VOC" in box_files.voc(tmp_path / "a.xml").fault


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a")
    assert "must be a regular file" in box_files.voc(tmp_path / "a").fault
    with pytest.raises(ValueError, match="must be a regular file"):
        box_files.coco(tmp_path / "a")


def test_json_that_is_ambiguous_or_too_much_is_refused(tmp_path):
    path = tmp_path / "a.json"
    cases = {
        "must be 0 or 1: '0'": lambda content: content["annotations"][0].update(iscrowd="0"),
        "must be positive numbers: .'40', '30'": lambda content: content["images"][0].update(width="40", height="30"),
        "must name each image once": lambda content: content["images"][0].update(file_name="./b.jpg"),
        "too large": lambda content: content["annotations"][0].update(bbox=[1, 1, 10**400, 5]),
        "must be texts": lambda content: content["images"][0].update(file_name=3),
        "files must be texts": lambda content: content["categories"][0].update(name=["a"]),
    }
    for said, change in cases.items():
        content = coco(path, {"a.jpg": [("cat", 1, 2, 3, 4)], "b.jpg": []})
        change(content)
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=f"a.json' .*{said}"):
            box_files.coco(path)
    path.write_text("[" * 200_000)
    with pytest.raises(ValueError, match="a.json' is no JSON of COCO: its brackets are too deep"):
        box_files.coco(path)

import json
import pathlib
import types

import numpy as np
import pytest
from PIL import Image

from keras_vit.runs import output_files as written

BOX = {"category": "cell", "bbox": [2.0, 1.0, 4.0, 2.0], "score": 0.5}


def task(**more):
    return types.SimpleNamespace(classes=("ground", "cell"), **more)


def test_rows_of_answers(tmp_path):
    path, answer = tmp_path / "a.png", [("cat", 0.9), ("dog", 0.1)]
    rows = written.pairs(task(), None, path, answer, None)
    assert rows == [{"image_id": str(path), "name": name, "value": value} for name, value in answer]
    least = task(thresholds_by_name=lambda: {"cat": 0.3, "dog": 0.6})
    assert [row["threshold"] for row in written.labels(least, None, path, answer, None)] == [0.3, 0.6]
    found = written.objects(task(result=lambda output, size: [BOX]), None, path, answer, (8, 8))
    assert found == [{"image_id": "a.png", **BOX}]


def test_boxes_are_shares_of_the_image_and_end_at_its_edge(tmp_path):
    beyond = {**BOX, "bbox": [6.0, -2.0, 4.0, 4.0]}
    written.boxes_file(task(result=lambda output, size: [BOX, beyond]), None, (4, 8), tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text().splitlines() == [
        "1 0.500000 0.500000 0.500000 0.500000 0.500000",
        "1 0.875000 0.250000 0.250000 0.500000 0.500000",
    ]


def test_a_mask_is_written_as_it_is(tmp_path):
    mask = np.arange(6, dtype="uint8").reshape(2, 3)
    written.mask_file(task(result=lambda output, size: mask), None, (2, 3), tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), mask)


def test_depth_says_what_its_values_mean(tmp_path):
    values = np.float32([[0.5, 2.0], [60.0, 64.9]])
    for largest, steps in ((65, 1000), (100, 256)):
        meters = task(result=lambda output, size: values, largest=largest)
        written.depth_file(meters, None, (2, 2), tmp_path / "a.png")
        with Image.open(tmp_path / "a.png") as image:
            assert image.text["depth"] == f"meters = value / {steps}"
            np.testing.assert_allclose(np.asarray(image) / steps, values, atol=0.5 / steps + 1e-6)
    inverse = task(result=lambda output, size: values, largest=None)
    written.depth_file(inverse, None, (2, 2), tmp_path / "b.png")
    with Image.open(tmp_path / "b.png") as image:
        low, scale = (float(word) for word in image.text["depth"].split("= ")[1].split(" + value * "))
        np.testing.assert_allclose(low + np.asarray(image) * scale, values, atol=2e-3)
    written.colors_file(inverse, None, (2, 2), tmp_path / "c.png")
    assert np.asarray(Image.open(tmp_path / "c.png")).shape == (2, 2, 3)


@pytest.mark.parametrize("largest, steps", [(1.0, 1000), (65.5, 1000), (80, 256), (255.9, 256), (1000.0, 65.535)])
def test_no_depth_is_too_far_for_sixteen_bits(largest, steps, tmp_path):
    """Reports depthmap-script 10, values beyond the range, and sd-zoe-depth 2, almost all black."""
    values = np.float32([[0.0, largest / 3], [largest / 2, largest]])
    written.depth_file(task(result=lambda output, size: values, largest=largest), None, (2, 2), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert float(image.text["depth"].removeprefix("meters = value / ")) == pytest.approx(steps)
        np.testing.assert_allclose(np.asarray(image) / steps, values, atol=0.51 / steps)


def test_near_is_bright_for_meters_and_for_inverse_depth(tmp_path):
    """Report Depth-Anything-V2 248: the same scene of both kinds of models, in the same colors."""
    meters = np.float32([[1.0, 2.0], [4.0, 10.0]])
    for name, values, largest in (("a", meters, 10.0), ("b", 1 / meters, None)):
        one = task(result=lambda output, size, values=values: values, largest=largest)
        written.colors_file(one, None, (2, 2), tmp_path / f"{name}.png")
    found = [np.asarray(Image.open(tmp_path / f"{name}.png")).astype(int) for name in "ab"]
    np.testing.assert_allclose(*found, atol=1)
    assert (np.diff(found[0].sum(-1).ravel()) < 0).all()


IDS = np.array([[0, 0, 1, -1], [-1, 0, 3, 3]], "int32")
SEGMENTS = [
    {"id": i, "class": i % 2, "category": ("ground", "cell")[i % 2], "score": 0.98765 - i / 10} for i in range(4)
]


def segmenting(ids=IDS, segments=SEGMENTS):
    return task(gives="segments", result=lambda output, size: (ids, segments))


def test_rows_of_segments_are_those_with_a_pixel():
    coco = pytest.importorskip("pycocotools.mask")
    rows = written.KINDS["segments"].entries(segmenting(), None, pathlib.Path("in/a.png"), None, (2, 4))
    assert written.KINDS["instances"] is written.KINDS["segments"]
    runs = [row.pop("segmentation") for row in json.loads(json.dumps(rows))]
    assert [{name: value for name, value in row.items() if name != "segmentation"} for row in rows] == [
        {"image_id": "a.png", "id": i + 1, "category": category, "score": score, "bbox": box, "area": area}
        for i, category, score, box, area in (
            (0, "ground", 0.9877, [0, 0, 2, 2], 3),
            (1, "cell", 0.8877, [2, 0, 1, 1], 1),
            (3, "cell", 0.6877, [2, 1, 2, 1], 2),  # the third is covered
        )
    ]
    for mask, number in zip(runs, (0, 1, 3), strict=True):
        assert mask["size"] == [2, 4] and isinstance(mask["counts"], str)
        np.testing.assert_array_equal(coco.decode(mask), np.equal(IDS, number))
    nothing = segmenting(np.full((2, 4), -1, "int32"), [])
    assert written.segments(nothing, None, pathlib.Path("a.png"), None, (2, 4)) == []


def test_a_map_of_segments_is_written_as_coco_s_panoptic_files(tmp_path):
    many = np.arange(-1, 70_000, dtype="int32")[None]
    for ids in (IDS, many):
        written.KINDS["segments"].save(segmenting(ids), None, ids.shape, tmp_path / "a.png")
        with Image.open(tmp_path / "a.png") as image:
            assert image.mode == "RGB" and image.format == "PNG"
            colors = np.asarray(image, "int64")
        np.testing.assert_array_equal(colors @ [1, 256, 256**2], ids + 1)  # panopticapi's `rgb2id`


def test_boxes_of_a_padded_image_become_shares_of_the_photograph():
    output = np.array([[0.1, 0.2, 0.3, 0.4, 0.9]], "float32")
    assert written.in_photo(output, (50, 100), {"resize": "direct"}) is output
    found = written.in_photo(output, (50, 100), {"resize": "pad"})
    np.testing.assert_allclose(found, [[0.2, 0.2, 0.6, 0.4, 0.9]], rtol=1e-6)

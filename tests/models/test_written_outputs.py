import types

import numpy as np
from PIL import Image

from keras_vit.models import written_outputs as written

BOX = {"category": "cell", "bbox": [2.0, 1.0, 4.0, 2.0], "score": 0.5}


def task(**more):
    return types.SimpleNamespace(classes=("ground", "cell"), **more)


def test_rows_of_answers(tmp_path):
    path, answer = tmp_path / "a.png", [("cat", 0.9), ("dog", 0.1)]
    rows = written.pairs(task(), None, path, answer, None)
    assert rows == [{"image_id": str(path), "name": name, "value": value} for name, value in answer]
    least = task(thresholds_by_name=lambda: {"cat": 0.3, "dog": 0.6})
    assert [row["threshold"] for row in written.labels(least, None, path, answer, None)] == [0.3, 0.6]
    found = written.objects(task(objects=lambda output, size: [BOX]), None, path, answer, (8, 8))
    assert found == [{"image_id": "a.png", **BOX}]


def test_boxes_are_shares_of_the_image_and_end_at_its_edge(tmp_path):
    beyond = {**BOX, "bbox": [6.0, -2.0, 4.0, 4.0]}
    written.boxes_file(task(objects=lambda output, size: [BOX, beyond]), None, (4, 8), tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text().splitlines() == [
        "1 0.500000 0.500000 0.500000 0.500000 0.500000",
        "1 0.875000 0.250000 0.250000 0.500000 0.500000",
    ]


def test_a_mask_is_written_as_it_is(tmp_path):
    mask = np.arange(6, dtype="uint8").reshape(2, 3)
    written.mask_file(task(mask=lambda output, size: mask), None, (2, 3), tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), mask)


def test_depth_says_what_its_values_mean(tmp_path):
    values = np.float32([[0.5, 2.0], [60.0, 64.9]])
    for largest, steps in ((65, 1000), (100, 256)):
        meters = task(depth=lambda output, size: values, largest=largest)
        written.depth_file(meters, None, (2, 2), tmp_path / "a.png")
        with Image.open(tmp_path / "a.png") as image:
            assert image.text["depth"] == f"meters = value / {steps}"
            np.testing.assert_allclose(np.asarray(image) / steps, values, atol=0.5 / steps + 1e-6)
    inverse = task(depth=lambda output, size: values, largest=None)
    written.depth_file(inverse, None, (2, 2), tmp_path / "b.png")
    with Image.open(tmp_path / "b.png") as image:
        low, scale = (float(word) for word in image.text["depth"].split("= ")[1].split(" + value * "))
        np.testing.assert_allclose(low + np.asarray(image) * scale, values, atol=2e-3)
    written.colors_file(inverse, None, (2, 2), tmp_path / "c.png")
    assert np.asarray(Image.open(tmp_path / "c.png")).shape == (2, 2, 3)

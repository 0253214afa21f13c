import importlib.util

import numpy as np
import pytest

from keras_vit.tasks.detect.box_tally import BoxTally, f1

pytest.importorskip("pycocotools")

NAMES = ("a", "b", "c")
SIZE = (60, 80)


def batch(boxes):
    most = max(map(len, boxes))
    rows = np.full((len(boxes), most, 5), [0, 0, 0, 0, -1], "float32")
    for row, some in zip(rows, boxes):
        row[: len(some)] = np.reshape(some, (-1, 5))
    return {"images": np.zeros((len(boxes), *SIZE, 3), "float32"), "bounding_boxes": rows}


def output(rows, most=12):
    """Returns a detector's output from rows of edges, class and score."""
    found = np.zeros((most, 4 + len(NAMES)), "float32")
    for i, (*edges, label, score) in enumerate(rows):
        found[i, :4], found[i, 4 + int(label)] = edges, score
    return found


def some(rng, images=30):
    """Returns random boxes, and detections of most of them, moved, mistaken and doubled."""
    truth, outputs = [], []
    for _ in range(images):
        low = rng.uniform(0, 0.6, (rng.integers(0, 5), 2))
        high = low + rng.uniform(0.05, 0.4, low.shape)
        labels = rng.integers(0, 2, len(low))  # the third class is nowhere
        truth.append([(*a, *b, c) for a, b, c in zip(low, high, labels)])
        found = [
            (*(np.array(row[:4]) + rng.normal(0, 0.02, 4)), row[4] if rng.random() < 0.8 else 2, rng.random())
            for row in truth[-1] * 2
            if rng.random() < 0.8
        ]
        outputs.append(output(found))
    return batch(truth), np.stack(outputs)


def test_what_is_found_exactly_is_perfect():
    boxes = [[(0.1, 0.2, 0.5, 0.6, 0), (0.3, 0.3, 0.9, 0.9, 1)], [], [(0, 0, 1, 1, 1)]]
    tally = BoxTally(NAMES)
    scores = tally.add(batch(boxes), np.stack([output([(*row, 0.9) for row in rows]) for rows in boxes]))
    assert scores.tolist() == [1, 1, 1]
    assert tally.result() == pytest.approx({"map": 1, "map50": 1, "ap50 a": 1, "ap50 b": 1})
    assert list(tally.figures()) == ["Precision over recall of each class, at an intersection over union of 0.5."]


def test_equals_a_second_implementation():
    coco = pytest.importorskip("faster_coco_eval")
    examples, outputs = some(np.random.default_rng(0))
    tally = BoxTally(NAMES)
    for first in range(0, 30, 7):  # in batches
        part = {name: values[first : first + 7] for name, values in examples.items()}
        tally.add(part, outputs[first : first + 7])
    found = tally.result()
    truth, given = [], []
    for i, (rows, output) in enumerate(zip(examples["bounding_boxes"], outputs)):
        sides = lambda e: [e[1] * 80, e[0] * 60, (e[3] - e[1]) * 80, (e[2] - e[0]) * 60]  # noqa: E731
        for row in rows[rows[:, 4] >= 0].astype(float):
            box = [float(side) for side in sides(row)]
            entry = {"image_id": i, "category_id": int(row[4]), "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            truth.append({**entry, "id": len(truth) + 1})
        for row in output.astype(float):
            if row[4:].max() > 0:
                box = [float(side) for side in sides(row)]
                label = int(row[4:].argmax())
                given.append({"image_id": i, "category_id": label, "bbox": box, "score": float(row[4:].max())})
    dataset = {"images": [{"id": i, "height": 60, "width": 80} for i in range(30)], "annotations": truth}
    other = coco.COCO({**dataset, "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)]})
    evaluation = coco.COCOeval_faster(other, other.loadRes(given), "bbox", print_function=lambda *_: None)
    evaluation.run()
    assert found["map"] == pytest.approx(evaluation.stats[0], abs=1e-6) and 0.05 < found["map"] < 0.95
    assert found["map50"] == pytest.approx(evaluation.stats[1], abs=1e-6)
    assert found.keys() == {"map", "map50", "ap50 a", "ap50 b"}
    assert np.mean([found["ap50 a"], found["ap50 b"]]) == pytest.approx(found["map50"])


def test_crowds_count_as_in_pycocotools():
    import contextlib
    import io

    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    rng = np.random.default_rng(1)
    examples, outputs = some(rng)
    boxes = examples["bounding_boxes"]
    crowd = (rng.random(boxes.shape[:2]) < 0.3) & (boxes[..., 4] >= 0)
    boxes[..., 4] = np.where(crowd, -2 - boxes[..., 4], boxes[..., 4])
    tally = BoxTally(NAMES)
    tally.add(examples, outputs)
    truth, given = [], []
    for i, (rows, found) in enumerate(zip(boxes.astype(float), outputs.astype(float))):
        rows[:, :4], found[:, :4] = rows[:, :4] * (60, 80, 60, 80), found[:, :4] * (60, 80, 60, 80)
        for top, left, bottom, right, kind in rows[rows[:, 4] != -1].tolist():
            sides = [left, top, right - left, bottom - top]
            one = {"category_id": int(kind if kind >= 0 else -2 - kind), "iscrowd": int(kind < 0), "bbox": sides}
            truth.append({**one, "id": len(truth) + 1, "image_id": i, "area": sides[2] * sides[3]})
        for (top, left, bottom, right), scores in zip(found[:, :4].tolist(), found[:, 4:]):
            one = {"image_id": i, "category_id": int(scores.argmax()), "score": scores.max()}
            given += [{**one, "bbox": [left, top, right - left, bottom - top]}] if scores.max() else []

    def score(annotations):
        with contextlib.redirect_stdout(io.StringIO()):
            coco = COCO()
            categories = [{"id": i, "name": name} for i, name in enumerate(NAMES)]
            coco.dataset = {"images": [{"id": i} for i in range(30)], "categories": categories}
            coco.dataset["annotations"] = annotations
            coco.createIndex()
            evaluation = COCOeval(coco, coco.loadRes([dict(one) for one in given]), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return evaluation.stats[:2]

    found = tally.result()
    np.testing.assert_allclose([found["map"], found["map50"]], score(truth), atol=1e-6)
    assert score([one for one in truth if not one["iscrowd"]])[1] < found["map50"] - 0.05  # boxes there: false alarms


def test_nothing_true_or_nothing_found():
    tally = BoxTally(NAMES)
    assert tally.result() == {"map": 0.0, "map50": 0.0} and tally.figures() == {}
    assert tally.add(batch([[(0.1, 0.1, 0.5, 0.5, 0)]]), output([])[None]).tolist() == [0]
    assert tally.result() == {"map": 0.0, "map50": 0.0, "ap50 a": 0.0}
    tally = BoxTally(NAMES)
    tally.add(
        {**batch([[(0, 0, 1, 1, 0)]]), "bounding_boxes": np.full((1, 1, 5), -1.0)}, output([(0, 0, 1, 1, 0, 1)])[None]
    )
    assert tally.result()["map"] == 0.0


def test_the_score_of_an_image_is_f1_by_class():
    edges = np.array([[0, 0, 10, 10], [20, 20, 40, 40], [20, 20, 40, 40]], "float64")
    labels = np.array([0, 1, 2])
    assert f1((edges, labels), (edges, labels), np.ones(3)) == 1
    assert f1((edges, labels), (edges, labels[[0, 2, 1]]), np.ones(3)) == 1  # the last two are at one place
    assert f1((edges, labels), (edges, np.zeros(3, int)), np.ones(3)) == pytest.approx(1 / 3)
    assert f1((edges[:1], labels[:1]), (edges[[0, 0]], labels[[0, 0]]), np.ones(2)) == pytest.approx(2 / 3)
    assert f1((edges[:0], labels[:0]), (edges[:1], labels[:1]), np.ones(1)) == 0
    ignore = np.array([True, False, False])  # a part of the first, twice, is no false alarm, and of class 1 is one
    parts = np.concatenate([edges[1:], np.array([[1.0, 1, 4, 4], [2, 2, 8, 8], [3, 3, 5, 5]])])
    assert f1((edges, labels), (parts[:4], np.array([1, 2, 0, 0])), np.ones(4), ignore) == 1
    assert f1((edges, labels), (parts, np.array([1, 2, 0, 0, 1])), np.ones(5), ignore) == pytest.approx(4 / 5)
    assert f1((edges[:1], labels[:1]), (edges[:0], labels[:0]), np.ones(0), ignore[:1]) == 1


def test_says_what_must_be_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="needs pycocotools. Install it: pip install .*detection"):
        BoxTally(NAMES)

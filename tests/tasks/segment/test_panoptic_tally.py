from types import SimpleNamespace

import numpy as np
import pytest

from keras_vit.models.segment_outputs import Frame, panoptic_map
from keras_vit.tasks.segment.panoptic_tally import PanopticTally, counted, qualities
from keras_vit.tasks.segment.true_segments import true_segments
from keras_vit.utils import instance_maps

NAMES = ("cup", "dog", "sky", "grass", "nowhere")
STUFF = (2, 3)
GRID = (8, 12)
VOID, OFFSET = 0, 256**3  # of panopticapi


def true_map(rng, size=(24, 36)):
    """Returns a map with void, regions, objects that cover others, and crowds."""
    values = np.full(size, -1, "int32")
    values[: rng.integers(0, 14)] = 2000
    values[rng.integers(14, 24) :] = 3000
    for number in range(1, 1 + rng.integers(0, 9)):
        top, left = rng.integers(0, 20), rng.integers(0, 30)
        place = slice(top, top + rng.integers(4, 16)), slice(left, left + rng.integers(4, 20))
        label = rng.integers(0, 2)
        values[place] = -2 - label if rng.random() < 0.25 else 1000 * label + number
    return values


def guess(rng, values):
    """Returns a predicted map that is somewhat like a true one: ids from 0, and the class of each."""
    ids, labels = np.full(values.shape, -1, "int32"), []
    for value in rng.permutation(np.unique(values)):
        if rng.random() < 0.15 or (value == -1 and rng.random() < 0.5):
            continue
        mask = np.roll(values == value, rng.integers(-2, 3, 2), (0, 1)) | (rng.random(values.shape) < 0.03)
        halves = rng.random() < 0.2
        for part in (mask & (np.arange(36) < 18), mask & (np.arange(36) >= 18)) if halves else (mask,):
            label = value // 1000 if value >= 0 else max(-2 - value, 0)
            labels.append(int(rng.integers(0, 4) if rng.random() < 0.15 else label))
            ids[part] = len(labels) - 1
    seen = np.unique(ids[ids >= 0])
    renumbered = np.full(len(labels) + 1, -1, "int32")
    renumbered[seen] = np.arange(len(seen))
    return renumbered[ids], [labels[i] for i in seen]


class Statistics(dict):
    def of(self, category):
        return self.setdefault(category, SimpleNamespace(tp=0, fp=0, fn=0, iou=0.0))


def panopticapi(statistics, values, ids, labels):
    """Adds an image as panopticapi's `pq_compute_single_core` does: segments by id, intersections by pairs of ids."""
    pan_gt, gt_segms = np.zeros(values.shape, "uint64"), {}
    for number, value in enumerate([each for each in np.unique(values) if each != -1], 1):
        pan_gt[values == value] = number
        category = value // 1000 if value >= 0 else -2 - value
        gt_segms[number] = {"category_id": category, "iscrowd": value < 0, "area": int((values == value).sum())}
    pan_pred = (ids + 1).astype("uint64")
    pred_segms = {i + 1: {"category_id": each, "area": int((ids == i).sum())} for i, each in enumerate(labels)}
    gt_pred_map = {}
    for label, intersection in zip(*np.unique(pan_gt * OFFSET + pan_pred, return_counts=True)):
        gt_pred_map[(int(label) // OFFSET, int(label) % OFFSET)] = int(intersection)
    gt_matched, pred_matched = set(), set()
    for (gt_label, pred_label), intersection in gt_pred_map.items():
        if gt_label not in gt_segms or pred_label not in pred_segms:
            continue
        if gt_segms[gt_label]["iscrowd"]:
            continue
        category = gt_segms[gt_label]["category_id"]
        if category != pred_segms[pred_label]["category_id"]:
            continue
        union = pred_segms[pred_label]["area"] + gt_segms[gt_label]["area"] - intersection
        union -= gt_pred_map.get((VOID, pred_label), 0)
        iou = intersection / union
        if iou > 0.5:
            statistics.of(category).tp += 1
            statistics.of(category).iou += iou
            gt_matched.add(gt_label)
            pred_matched.add(pred_label)
    crowd_labels = {}
    for gt_label, info in gt_segms.items():
        if gt_label in gt_matched:
            continue
        if info["iscrowd"]:
            crowd_labels[info["category_id"]] = gt_label
            continue
        statistics.of(info["category_id"]).fn += 1
    for pred_label, info in pred_segms.items():
        if pred_label in pred_matched:
            continue
        intersection = gt_pred_map.get((VOID, pred_label), 0)
        if info["category_id"] in crowd_labels:
            intersection += gt_pred_map.get((crowd_labels[info["category_id"]], pred_label), 0)
        if intersection / info["area"] > 0.5:
            continue
        statistics.of(info["category_id"]).fp += 1


def pq_average(statistics, categories):
    """Returns pq, sq and rq of some classes as panopticapi's `pq_average` does."""
    pq = sq = rq = n = 0
    for category in categories:
        one = statistics.of(category)
        if one.tp + one.fp + one.fn == 0:
            continue
        n += 1
        pq += one.iou / (one.tp + 0.5 * one.fp + 0.5 * one.fn)
        sq += one.iou / one.tp if one.tp else 0
        rq += one.tp / (one.tp + 0.5 * one.fp + 0.5 * one.fn)
    return [pq / n, sq / n, rq / n]


def table(statistics):
    rows = [statistics.of(i) for i in range(len(NAMES))]
    return [[getattr(one, name) for one in rows] for name in ("iou", "tp", "fp", "fn")]


def test_counts_equal_panopticapi():
    rng, statistics, counts = np.random.default_rng(0), Statistics(), 0
    for _ in range(60):
        values = true_map(rng)
        ids, labels = guess(rng, values)
        panopticapi(statistics, values, ids, labels)
        counts = counts + counted(true_segments(values, len(NAMES)), ids, labels, len(NAMES))
    wanted = table(statistics)
    np.testing.assert_allclose(counts, wanted, rtol=1e-9)
    assert np.min(np.array(wanted)[1:, :4]) > 5  # each class has matches and both kinds of errors
    assert (counts[:, 4] == 0).all()
    np.testing.assert_allclose(np.nanmean(qualities(counts), 1), pq_average(statistics, range(5)), rtol=1e-9)


def outputs_of(rng, values, queries=12):
    """Returns a model's output, of which `panoptic_map` makes a map somewhat like the true one."""
    logits, masks = rng.normal(size=(queries, len(NAMES) + 1)), rng.normal(size=(queries, *GRID)) - 4
    logits[:, -1] += 9
    small = values[1::3, 1::3]
    for i, value in enumerate(each for each in np.unique(small) if each >= 0):
        masks[i] = np.where(small == value, 4, -4) + rng.normal(scale=1.5, size=GRID)
        logits[i, -1] = 0
        logits[i, value // 1000 if rng.random() < 0.9 else 1] += 8
    return np.concatenate([logits, masks.reshape(queries, -1)], axis=1).astype("float32")


def test_the_tally_equals_panopticapi():
    rng, statistics = np.random.default_rng(1), Statistics()
    maps = [true_map(rng) for _ in range(12)]
    outputs = np.stack([outputs_of(rng, values) for values in maps])
    tally = PanopticTally(NAMES, GRID, ("sky", "grass"), threshold=0.7, overlap_threshold=0.6)
    scores = []
    for first in range(0, 12, 5):  # in batches, as PNG files
        some = [*map(instance_maps.png, maps[first : first + 5])]
        scores += tally.add({"instance_masks": some}, outputs[first : first + 5]).tolist()
    for values, output, score in zip(maps, outputs, scores, strict=True):
        masks = output[:, 6:].reshape(-1, *GRID).transpose(1, 2, 0)
        frame = Frame(GRID, GRID, values.shape)
        ids, segments = panoptic_map(output[:, :6], masks, frame, STUFF, threshold=0.7, overlap_threshold=0.6)
        labels = [each["class"] for each in segments]
        panopticapi(statistics, values, ids, labels)
        alone = Statistics()
        panopticapi(alone, values, ids, labels)
        assert score == pytest.approx(pq_average(alone, range(5))[0] if alone else 1.0)
    found, wanted = tally.result(), pq_average(statistics, range(5))
    np.testing.assert_allclose([found[name] for name in ("pq", "sq", "rq")], wanted, rtol=1e-9)
    assert found["pq things"] == pytest.approx(pq_average(statistics, (0, 1))[0])
    assert found["pq stuff"] == pytest.approx(pq_average(statistics, STUFF)[0])
    each = {f"pq {NAMES[i]}": pytest.approx(pq_average(statistics, [i])[0]) for i in range(4)}
    assert {name: value for name, value in found.items() if name in each} == each
    assert len(found) == 5 + 4 and 0.2 < found["pq"] < 0.8
    assert [*tally.figures()] == ["Panoptic quality of each class, lowest first."]


def one(values, ids, labels):
    """Returns IoUs, matches, false positives and false negatives of one class."""
    return counted(true_segments(np.array([values]), 1), np.array([ids]), labels, 1)[:, 0].tolist()


def test_matches_void_and_crowds_by_hand():
    assert one([1, 1, 2, 2], [0, 0, 1, 1], [0, 0]) == [2, 2, 0, 0]
    assert one([1, 1, 2, 2], [0, 0, 0, -1], [0]) == [2 / 3, 1, 0, 1]
    assert one([1, 1, -1, -1], [0, 0, 0, 0], [0]) == [1, 1, 0, 0]  # the union leaves out void
    assert one([1, 1, 2, 2], [0, -1, -1, 1], [0, 0]) == [0, 0, 2, 2]  # one half is no match
    assert one([1, -1, -1], [-1, 0, 0], [0]) == [0, 0, 0, 1]  # nothing is wrong in void
    assert one([1, 1, -1, -1], [-1, 0, 0, -1], [0]) == [0, 0, 1, 1]  # half of it is
    assert one([-2, -2, -1, 1, 1], [0, 0, 0, -1, -1], [0]) == [0, 0, 0, 1]  # nor in a crowd, which is not missed
    assert one([-2, -2, -2], [-1, -1, -1], []) == [0, 0, 0, 0]


def test_a_crowd_of_another_class_excuses_nothing():
    truth = true_segments(np.array([[-3, -3]]), 2)
    assert counted(truth, np.array([[0, 0]]), [0], 2).tolist() == [[0, 0], [0, 0], [1, 0], [0, 0]]
    assert not counted(truth, np.array([[0, 0]]), [1], 2).any()


def outputs(*labels):
    """Returns the output of a model that gives each pixel of a row to a query of a class, 2 is none."""
    logits = 20.0 * np.eye(3)[list(labels)]
    return np.concatenate([logits, 40.0 * np.eye(len(labels)) - 20], axis=1)[None].astype("float32")


def test_the_least_and_the_best_scores():
    tally = PanopticTally(("a", "b"), (1, 2))
    assert tally.result() == {"pq": 0, "sq": 0, "rq": 0} and tally.figures() == {}
    assert tally.add({"instance_masks": np.full((1, 1, 2, 1), -1)}, outputs(0, 2)).tolist() == [1]  # void alone
    assert tally.result() == {"pq": 0, "sq": 0, "rq": 0}
    assert tally.add({"instance_masks": np.array([[[[1]], [[2]]]]).reshape(1, 1, 2, 1)}, outputs(0, 0)).tolist() == [1]
    assert tally.result() == {"pq": 1, "sq": 1, "rq": 1, "pq a": 1}
    assert tally.add({"instance_masks": np.array([1, 1000]).reshape(1, 1, 2, 1)}, outputs(0, 2)).tolist() == [0.5]
    assert tally.result() == {"pq": 0.5, "sq": 0.5, "rq": 0.5, "pq a": 1, "pq b": 0}  # no stuff: no groups


def test_regions_of_stuff_are_one_segment_and_classes_may_be_called_as_the_groups():
    tally = PanopticTally(("stuff", "b"), (1, 3), ("stuff",))
    truth = np.array([0, 1001, 0]).reshape(1, 1, 3, 1)
    assert tally.add({"instance_masks": truth}, outputs(0, 2, 0)).tolist() == [0.5]
    assert tally.result()["pq stuff"] == tally.result()["pq stuff (0)"] == 1 and tally.result()["pq things"] == 0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: PanopticTally(NAMES, (0, 4)), "`mask_size` must be"),
        (
            lambda: PanopticTally(NAMES, GRID, ("skies",)),
            "`stuff` must be names of classes. Known: cup, dog, .*Received: 'skies'",
        ),
        (lambda: PanopticTally(NAMES, GRID, overlap_threshold=1), "`overlap_threshold` must be at least 0 and below 1"),
        (
            lambda: PanopticTally(("a",), (1, 2)).add({"instance_masks": [np.array([[1000, 0]])]}, np.zeros((1, 2, 4))),
            "of 1 classes must have values from -2 to 999. Received: 0 to 1000",
        ),
        (
            lambda: PanopticTally(("a",), (1, 3)).add({"instance_masks": [np.array([[1]])]}, np.zeros((1, 2, 4))),
            "aspect ratio 1 to 3",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

import contextlib
import importlib.util
import io

import numpy as np
import pytest
from scipy.special import expit, softmax

from keras_vit.models.segment_outputs import resized
from keras_vit.tasks.segment.instance_tally import InstanceTally, best_pairs
from keras_vit.utils import instance_maps
from keras_vit.utils.resampling import resize_matrix

mask_utils = pytest.importorskip("pycocotools.mask")

NAMES = ("a", "b", "c", "nowhere")
GRID = (8, 12)  # of predicted masks
QUERIES = 30


def true_map(rng, size):
    """Returns a map of overlapping rectangles, a fifth of them crowds; of every fourth image nothing."""
    values = np.full(size, -1, "int32")
    for number in range(1, 1 + rng.integers(0, 8) * (rng.random() < 0.75)):
        top, left = rng.integers(0, size[0] - 4), rng.integers(0, size[1] - 4)
        rows, columns = slice(top, top + rng.integers(4, 20)), slice(left, left + rng.integers(4, 30))
        label = rng.integers(0, 3)
        values[rows, columns] = -2 - label if rng.random() < 0.2 else 1000 * label + number * (label > 0)
    return values


def output(rng, values):
    """Returns a model's output: twice a noisy mask of each object, and queries of nothing, some of them alike."""
    logits = rng.normal(size=(QUERIES, len(NAMES) + 1))
    masks = rng.normal(size=(QUERIES, *GRID)) - 1
    matrices = [resize_matrix(have, want, "bilinear-antialias") for have, want in zip(values.shape, GRID)]
    for i, value in enumerate([each for each in np.unique(values) for _ in range(2) if each != -1]):
        masks[i] = np.einsum("tr,rc,uc->tu", matrices[0], values == value, matrices[1]) * 6 - 3
        masks[i] += rng.normal(scale=0.7, size=GRID)
        logits[i, value // 1000 if value >= 0 else -2 - value] += 4
    logits[-6:], masks[-6:] = logits[-12:-6], masks[-12:-6]  # ties
    return np.concatenate([logits, masks.reshape(QUERIES, -1)], axis=1).astype("float32")


def some(images=32):
    rng = np.random.default_rng(3)
    maps = [true_map(rng, ((24, 36), (33, 25))[i % 2]) for i in range(images)]
    return maps, np.stack([output(rng, values) for values in maps])


def by_hand(values, output, image):
    """Returns an image's annotations and results, as COCO's files have them."""
    logits, masks = output[:, : len(NAMES) + 1], output[:, len(NAMES) + 1 :].reshape(-1, *GRID)
    rows, columns = (resize_matrix(have, want, "bilinear") for have, want in zip(GRID, values.shape))
    masks = np.einsum("tr,qrc,uc->qtu", rows, masks.astype("float64"), columns)
    inside = masks > 0
    means = (expit(masks) * inside).sum((1, 2)) / np.maximum(inside.sum((1, 2)), 1)
    scores = softmax(logits.astype("float64"), -1)[:, :-1] * means[:, None]
    encode = lambda mask: mask_utils.encode(np.asfortranarray(mask.astype("uint8")))  # noqa: E731
    given = [
        {"image_id": image, "category_id": int(i % len(NAMES)), "score": scores.ravel()[i]}
        | {"segmentation": encode(inside[i // len(NAMES)])}
        for i in np.argsort(-scores.ravel(), kind="stable")[:100]
        if inside[i // len(NAMES)].any()
    ]
    truth = [
        {"image_id": image, "category_id": int(-2 - value if value < 0 else value // 1000), "iscrowd": int(value < 0)}
        | {"segmentation": encode(values == value), "area": int((values == value).sum())}
        for value in np.unique(values)
        if value != -1
    ]
    return truth, given


def measured(truth, given, sizes):
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        images = [{"id": i, "height": rows, "width": columns} for i, (rows, columns) in enumerate(sizes)]
        coco.dataset = {"images": images, "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)]}
        coco.dataset["annotations"] = [{**each, "id": i + 1} for i, each in enumerate(truth)]
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes([dict(each) for each in given]), "segm")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][0, :, :, 0, 2]  # (recalls, classes)
    return evaluation.stats, precision


def test_equals_pycocotools():
    maps, outputs = some()
    tally = InstanceTally(NAMES, GRID)
    for first in range(0, len(maps), 5):  # in batches, as PNG files
        tally.add({"instance_masks": [*map(instance_maps.png, maps[first : first + 5])]}, outputs[first : first + 5])
    truth, given = [], []
    for image, pair in enumerate(zip(maps, outputs)):
        for rows, more in zip((truth, given), by_hand(*pair, image)):
            rows += more
    found, (stats, precision) = tally.result(), measured(truth, given, [values.shape for values in maps])
    assert found["mask_ap"] == pytest.approx(stats[0], abs=1e-6) and 0.1 < stats[0] < 0.9
    assert found["mask_ap50"] == pytest.approx(stats[1], abs=1e-6) and stats[1] > stats[0] + 0.1
    assert [*found] == ["mask_ap", "mask_ap50", "ap50 a", "ap50 b", "ap50 c"]
    for i, name in enumerate(NAMES[:3]):
        assert found[f"ap50 {name}"] == pytest.approx(precision[:, i].mean(), abs=1e-6)
    assert sum(each["iscrowd"] for each in truth) > 5 and any((values == -1).all() for values in maps)
    without = measured([each for each in truth if not each["iscrowd"]], given, [values.shape for values in maps])[0]
    assert without[1] < found["mask_ap50"] - 0.01  # masks in crowds would be false alarms
    assert tally.result() == found and len(tally.figures()) == 1  # again


def test_of_a_detector_it_equals_pycocotools():
    maps, outputs = some(16)
    scores = expit(outputs[..., : len(NAMES)] - 2)
    boxed = np.concatenate([np.zeros((16, QUERIES, 4)), scores, outputs[..., len(NAMES) + 1 :]], -1)
    tally = InstanceTally(NAMES, GRID, boxed=True)
    tally.add({"instance_masks": [*map(instance_maps.png, maps)]}, boxed)
    truth, given = [], []
    for image, (values, one) in enumerate(zip(maps, boxed)):
        rows, columns = (resize_matrix(have, want, "bilinear") for have, want in zip(GRID, values.shape))
        masks = np.einsum("tr,qrc,uc->qtu", rows, one[:, 4 + len(NAMES) :].reshape(-1, *GRID), columns) > 0
        truth += by_hand(values, outputs[image], image)[0]
        kept = np.where(masks.any((1, 2))[:, None], one[:, 4 : 4 + len(NAMES)], -1).ravel()
        for i in np.argsort(-kept, kind="stable")[:QUERIES]:  # as many pairs as boxes
            mask = mask_utils.encode(np.asfortranarray(masks[i // len(NAMES)].astype("uint8")))
            row = {"image_id": image, "category_id": int(i % len(NAMES)), "score": kept[i], "segmentation": mask}
            given += [row] if kept[i] >= 0 else []
    found, (stats, _) = tally.result(), measured(truth, given, [values.shape for values in maps])
    assert found["mask_ap"] == pytest.approx(stats[0], abs=1e-6) and 0.1 < stats[0] < 0.9
    assert found["mask_ap50"] == pytest.approx(stats[1], abs=1e-6)
    with pytest.raises(ValueError, match=r"most, 4 . 4 . 8 . 12.. Received: shape=.16, 30, 103"):
        tally.add({"instance_masks": []}, boxed[..., :-1])


def drawn(*rows):
    """Returns logits of masks, `(rows, columns, queries)`, from texts with the number of each query where it is."""
    picture = [row.split() for row in rows]
    names = sorted({name for row in picture for cell in row for name in cell} - {"."})
    return np.where([[[name in cell for name in names] for cell in row] for row in picture], 9.0, -9.0)


def packed(labels, masks, sure=9.0):
    """Returns outputs of one image from the classes of queries, four for none, and masks as of `drawn`."""
    logits = sure * np.eye(len(NAMES) + 1)[labels]
    return np.concatenate([logits, masks.transpose(2, 0, 1).reshape(len(labels), -1)], axis=1)[None].astype("float32")


def test_what_is_found_exactly_is_perfect_also_where_masks_touch_and_overlap():
    truth = np.array([[[1, 1, 2, 2], [-1, 1001, 2000, -5]]])[..., None]  # two of one class, a region, and a crowd
    outputs = packed([0, 0, 1, 2, 3], drawn("0 0 1 1", ". 2 3 4"))
    tally = InstanceTally(NAMES, (2, 4))
    assert tally.add({"instance_masks": truth}, outputs).tolist() == [1]
    assert tally.result() == pytest.approx({"mask_ap": 1, "mask_ap50": 1, "ap50 a": 1, "ap50 b": 1, "ap50 c": 1})
    wide = packed([0, 0, 1, 2, 3], drawn("0 0 01 1", ". 2 3 4"))  # one also has a pixel of another: two of three
    tally = InstanceTally(NAMES, (2, 4))
    assert tally.add({"instance_masks": truth}, wide).tolist() == [1]
    assert tally.result()["ap50 a"] == pytest.approx(1) and tally.result()["mask_ap"] < 1


def test_the_score_of_an_image_is_f1_of_the_sure_masks():
    truth = np.array([[[1, 1, 2, 2]]])[..., None]
    tally = InstanceTally(NAMES, (1, 4), score=0.6)
    (score,) = tally.add({"instance_masks": truth}, packed([0, 1], drawn("0 0 1 1")))
    assert score == 0.5  # the second has another class
    (score,) = tally.add({"instance_masks": truth}, packed([0, 4], drawn("0 0 1 1")))
    assert score == pytest.approx(2 / 3)
    (score,) = tally.add({"instance_masks": truth}, packed([0, 1], drawn("0 0 1 1"), sure=1.0))  # not sure enough
    assert score == 0
    (score,) = tally.add({"instance_masks": truth * 0 - 1}, packed([4, 4], drawn("0 0 1 1")))
    assert score == 1


def test_nothing_true_or_nothing_found():
    tally = InstanceTally(NAMES, (1, 4))
    assert tally.result() == {"mask_ap": 0, "mask_ap50": 0} and tally.figures() == {}
    nowhere = packed([0, 1], np.full((1, 4, 2), -1.0))
    assert tally.add({"instance_masks": np.full((1, 3, 4, 1), 2000)}, nowhere).tolist() == [0]
    assert tally.result() == {"mask_ap": 0, "mask_ap50": 0, "ap50 c": 0} and tally.found == []


def test_the_best_hundred_pairs_are_those_of_all_queries():
    rng = np.random.default_rng(0)
    logits, masks = 8 * rng.normal(size=(200, 5)), rng.normal(size=(4, 6, 200)) * rng.uniform(0.1, 9, 200)
    logits[:, -1] += 8  # the hundredth score is near the best class of many queries
    shares = softmax(logits, -1)[:, :-1]
    labels, scores, found = best_pairs(shares, masks, (9, 11))
    large = np.stack([resized(masks[..., i], (9, 11)) for i in range(200)])
    means = np.array([expit(mask[mask > 0]).mean() for mask in large])
    order = np.argsort(-(shares * means[:, None]).ravel(), kind="stable")[:100]
    np.testing.assert_array_equal(labels, order % 4)
    np.testing.assert_allclose(scores, (shares * means[:, None]).ravel()[order], rtol=1e-6)
    np.testing.assert_array_equal([mask_utils.decode(mask) for mask in found], large[order // 4] > 0)


def test_masks_are_kept_as_run_lengths():
    tally = InstanceTally(NAMES, (2, 4))
    truth = np.repeat([[[1, 1, 2, 2]]], 1000, axis=1).repeat(250, axis=2)  # a million pixels
    (score,) = tally.add({"instance_masks": truth[..., None]}, packed([0, 0], drawn("0 0 1 1", "0 0 1 1")))
    kept = [row[2] for row in tally.truth + tally.found]
    assert score == 1 and len(kept) == 2 + 2 * len(NAMES) and max(len(mask["counts"]) for mask in kept) < 10


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: InstanceTally(NAMES, (0, 4)), "`mask_size` must be a positive integer or .*Received: mask_size=.0, 4"),
        (
            lambda: InstanceTally(NAMES, (1, 4)).add({"instance_masks": [np.array([[4000]])]}, np.zeros((1, 2, 9))),
            "of 4 classes must have values from -5 to 3999. Received: 4000 to 4000",
        ),
        (
            lambda: InstanceTally(NAMES, (2, 3)).add({"instance_masks": [np.zeros((2, 3))]}, np.zeros((1, 2, 9))),
            r"aspect ratio 2 to 3. Received: shape=\(1, 2, 9\)",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_says_what_must_be_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="needs pycocotools. Install it: pip install .*detection"):
        InstanceTally(NAMES, GRID)

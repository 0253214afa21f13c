import json

import keras
import numpy as np
import pytest
from scipy.special import expit

import keras_vit
from keras_vit.inference.open_detection import found
from tests import owls
from tests.checkpoints.helpers import unexpected
from tests.marks import slow, slow_on_jax
from tests.towers import WORDS

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, shape).astype("uint8") for shape in ((12, 20, 3), (30, 9, 3), (16, 16, 3))]
CLASSES = ["cat", "red car"]
KINDS = [pytest.param(False, id="owlvit"), pytest.param(True, id="owlv2")]


def by_hand(model, image):
    """Returns boxes in pixels, left first, and scores of an image, in the order of the patches."""
    tokens = keras_vit.tokenizer(WORDS, model.get_layer("text").input_shape[1])(CLASSES)
    pixels = keras_vit.preprocess(model.get_layer("image"), image)
    output = model({"images": pixels, "texts": tokens}, training=False)
    top, left, bottom, right = np.asarray(output["boxes"])[0].T
    height, width = [max(image.shape[:2])] * 2 if "objectness" in output else image.shape[:2]
    boxes = np.stack([left * width, top * height, right * width, bottom * height], -1)
    return boxes, expit(np.asarray(output["logits"])[0])


@pytest.mark.parametrize("two", KINDS)
def test_boxes_are_in_pixels_of_each_photograph(two):
    model = owls.shared(two)
    results = keras_vit.detect(model, IMAGES, CLASSES, WORDS, threshold=0.0, batch_size=2)
    assert len(results) == 3
    for result, image in zip(results, IMAGES):
        boxes, scores = by_hand(model, image)
        order = np.argsort(-scores.max(-1), kind="stable")
        np.testing.assert_array_equal(result.patches, order)
        np.testing.assert_allclose(result.boxes, boxes[order], atol=1e-3)
        np.testing.assert_allclose(result.scores, scores.max(-1)[order], atol=1e-5)
        assert result.classes == [CLASSES[i] for i in scores.argmax(-1)[order]]


def test_thresholds_and_suppression_by_class():
    boxes = np.array([[0, 0, 4, 4], [0, 0, 4, 5], [0, 0, 4, 4], [6, 6, 8, 8]], "float32")
    logits = np.array([[2, -9], [3, -9], [-9, 1], [0, -9]], "float32")
    sides = np.array([10, 100, 10, 100], "float32")
    result = found(boxes, logits, CLASSES, sides, 0.1)
    assert result.patches.tolist() == [1, 0, 2, 3] and result.boxes[0].tolist() == [0, 0, 500, 40]
    assert result.classes == ["cat", "cat", "red car", "cat"]
    assert found(boxes, logits, CLASSES, sides, 0.1, 0.5).patches.tolist() == [1, 2, 3]
    assert found(boxes, logits, CLASSES, sides, 0.1, 0.8).patches.tolist() == [1, 0, 2, 3]  # they share 0.8
    assert found(boxes, logits, CLASSES, sides, 0.5).patches.tolist() == [1, 0, 2]  # a half is not above
    nothing = found(boxes, logits, CLASSES, sides, 0.99, 0.5)
    assert nothing.boxes.shape == (0, 4) and nothing.classes == []


def test_like_an_example():
    model = owls.shared(True)
    queries = keras_vit.example_queries(model, {"valve": (IMAGES[0], 1)})
    [result] = keras_vit.detect(model, IMAGES[0], queries, threshold=0)
    assert set(result.classes) == {"valve"} and len(result.scores) == 4


@slow_on_jax
@pytest.mark.parametrize("two", KINDS)
def test_the_detector_has_the_same_boxes(two, tmp_path):
    model = owls.shared(two)
    built = keras_vit.zero_shot_detector(model, CLASSES, WORDS, most=3, threshold=0.2)
    assert keras_vit.class_names(built) == tuple(CLASSES) and built.output_shape == (None, 3, 6)
    output = np.asarray(built(keras_vit.preprocess(built, IMAGES)))
    for row, image in zip(output, IMAGES):
        boxes, scores = by_hand(model, image)
        order = np.argsort(-scores.max(-1), kind="stable")[:3]
        height, width = [max(image.shape[:2])] * 2 if two else image.shape[:2]
        wanted = np.clip(boxes[order] / [width, height, width, height], 0, 1)
        np.testing.assert_allclose(row[:, [1, 0, 3, 2]], wanted, atol=1e-4)
        np.testing.assert_allclose(row[:, 4:], scores[order], atol=1e-5)
    before = [np.asarray(weight) for weight in model.get_weights()]
    built.set_weights([weight * 0 for weight in built.get_weights()])
    assert all(np.array_equal(*pair) for pair in zip(before, model.get_weights()))  # they are copies


@pytest.mark.parametrize("two", KINDS)
def test_predict_finds_the_same_in_files(two, tmp_path):
    pytest.importorskip("tensorflow")
    model = owls.shared(two)
    keras.utils.save_img(tmp_path / "a.png", IMAGES[0], scale=False)
    [every] = keras_vit.detect(model, tmp_path / "a.png", CLASSES, WORDS, threshold=0)
    threshold = float(every.scores[1:3].mean())  # two boxes have more
    keras_vit.zero_shot_detector(model, CLASSES, WORDS, threshold=threshold).save(tmp_path / "owl.keras")
    keras_vit.predict(tmp_path / "owl.keras", tmp_path / "a.png", json=tmp_path / "a.json", to=tmp_path / "boxes")
    [result] = keras_vit.detect(model, tmp_path / "a.png", CLASSES, WORDS, threshold=threshold)
    rows = json.loads((tmp_path / "a.json").read_text())
    assert [row["category"] for row in rows] == result.classes and len(rows) == 2
    high, wide = IMAGES[0].shape[:2]
    limits = [max(high, wide)] * 2 if two else [wide, high]  # what the model sees
    edges = np.clip(result.boxes, 0, [*limits, *limits])
    np.testing.assert_allclose([row["score"] for row in rows], result.scores, atol=1e-3)
    boxes = np.array([row["bbox"] for row in rows])
    np.testing.assert_allclose(boxes[:, :2] + boxes[:, 2:], edges[:, 2:], atol=0.03)
    np.testing.assert_allclose(boxes[:, :2], edges[:, :2], atol=0.03)
    shares = np.loadtxt(tmp_path / "boxes" / "a.txt", ndmin=2)
    assert len(shares) == len(rows) and (shares[:, 1:5] <= 1).all()


@slow
@pytest.mark.parametrize("two", KINDS)
@pytest.mark.parametrize("name, file", [("tflite", "m.tflite"), ("onnx", "m.onnx"), ("openvino", "m.xml"),
                                        ("saved_model", "m")])  # fmt: skip
def test_the_detector_is_exported(two, name, file, tmp_path):
    pytest.importorskip("tensorflow")
    built = keras_vit.zero_shot_detector(owls.shared(two), CLASSES, WORDS, most=3)
    pixels = keras_vit.preprocess(built, IMAGES)
    report = getattr(keras_vit, f"export_{name}")(built, tmp_path / file, images=pixels)
    assert report.max_abs_diff < 1e-3


@slow_on_jax
def test_in_16_bits():
    model, exact = owls.small(True, dtype="mixed_bfloat16"), owls.small(True)
    for each in (model, exact):
        each.set_weights([weight * 0.4 for weight in each.get_weights()])
    queries = keras_vit.example_queries(exact, {"valve": (IMAGES[0], 1)})
    pairs = (keras_vit.detect(each, IMAGES, queries, threshold=0) for each in (model, exact))
    for one, other in zip(*pairs):
        places = np.argsort(one.patches), np.argsort(other.patches)
        np.testing.assert_allclose(one.boxes[places[0]], other.boxes[places[1]], atol=0.3)


def test_bad_input():
    model, call = owls.shared(), keras_vit.detect
    calls = [
        (lambda: call(model, IMAGES, []), "two names or more|must be .*Received"),
        (lambda: call(model, IMAGES, "cat", WORDS), "`classes` must be a list or tuple. Received: classes='cat'"),
        (lambda: call(model, IMAGES, ["cat", "cat"], WORDS), "given once. Received: 'cat' twice"),
        (lambda: call(model, IMAGES, CLASSES), "no table of words: pass `tokens`"),
        (lambda: call(model, IMAGES, CLASSES, WORDS, threshold=1.5), "Received: threshold=1.5"),
        (lambda: call(model, IMAGES, CLASSES, WORDS, suppression=-1), "Received: suppression=-1"),
        (lambda: call(model, [], CLASSES, WORDS), "`images` must contain an image. Received: an empty list"),
        (lambda: call(model, IMAGES, CLASSES, WORDS, prompts="a photo"), "must have {} instead of the name"),
        (lambda: keras_vit.zero_shot_detector(model, CLASSES, WORDS, most=0), "Received: most=0"),
    ]
    assert not unexpected(calls)

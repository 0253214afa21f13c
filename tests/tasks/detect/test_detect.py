import dataclasses
import types
import warnings

import keras
import numpy as np
import pytest

from keras_vit import save_checkpoint, vit
from keras_vit.config import Augment, Data, Optim, Recipe
from keras_vit.tasks import Detect, Segment
from tests.marks import EAGERLY, few, once, slow, slow_on_jax

pytestmark = pytest.mark.backend

CLASSES = ("cat", "dog")
TASK = Detect(classes=CLASSES, most=6, head={"kind": "points", "width": 8})
SMALL = dict(variant="mu/8", image_size=(32, 48))
HYBRID = dict(SMALL, stem=((8, 2), (8, 1)), depth=2)
IMAGES = np.random.default_rng(0).integers(0, 256, (2, 32, 48, 3)).astype("float32")
BOXES = np.array([[[0.1, 0.2, 0.6, 0.5, 1], [0, 0, 0, 0, -1]], [[0, 0, 1, 1, 0], [0.5, 0.5, 0.7, 0.9, 0]]], "float32")


@slow
@few(1)
@slow_on_jax
@pytest.mark.parametrize(
    "head, more",
    [
        ("tokens", dict(SMALL, tokens={"class_token": True})),
        ("decoder", HYBRID),
        ("deformable", SMALL),
        pytest.param("tokens", HYBRID, marks=slow),
        pytest.param("decoder", dict(SMALL, tokens={"class_token": True}), marks=slow),
    ],
)
def test_sets_learn_on_any_encoder(head, more, tmp_path):
    pytest.importorskip("pycocotools")
    options = {"decoder": {"depth": 2}, "deformable": {"depth": 1, "width": 32, "groups": 2}}.get(head, {})
    task = dataclasses.replace(TASK, head={"kind": head, **options})
    model = task.model(**more)
    assert model.output_shape == (None, 6, 6) and model.output.dtype == "float32" and task.fits(model)
    learner = task.learner(model)
    shapes = {"decoder": (None, 2, 6, 7), "tokens": (None, 1, 6, 7), "deformable": (None, 2, 6, 6)}
    assert learner.output_shape == shapes[head]
    learner.compile(keras.optimizers.Adam(3e-3), **task.compiled(None), run_eagerly=EAGERLY)
    x, y = task.batch({"images": IMAGES, "bounding_boxes": BOXES}, None, (0, 0))
    losses = [learner.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(4)]
    assert min(losses[1:]) < losses[0]  # not of every step: another assignment may have a larger one
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(IMAGES)), np.asarray(model(IMAGES)))
    started = task.model(**more, weights=tmp_path / "model.keras")
    np.testing.assert_array_equal(started.get_layer("block_0").weights[0], model.get_layer("block_0").weights[0])


@once
@pytest.mark.parametrize(
    "form, more", [("google", {}), ("timm", {}), ("timm", {"registers": 4, "class_position": False})]
)
def test_a_plain_vit_is_a_start_for_the_tokens_of_boxes(form, more, tmp_path):
    """Its positions are resampled, those of the boxes' tokens are 0, and these tokens are new."""
    tokens = {"class_token": True, **more}
    theirs = vit("mu/8", image_size=16, num_classes=3, depth=2, tokens=tokens, block={"gelu": "exact"})
    for variable in theirs.trainable_variables:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    path = tmp_path / ("a.npz" if form == "google" else "a.safetensors")
    with warnings.catch_warnings(action="ignore"):  # of what a format does not record
        save_checkpoint(theirs, path, format=form)
    model = dataclasses.replace(TASK, head="tokens").model(variant=None, weights=path, image_size=(32, 24))
    ours, theirs = ({v.path: np.asarray(v) for v in m.weights} for m in (model, theirs))
    assert np.abs(ours["encoder/register_tokens"]).max() < 0.2 and ours["encoder/register_tokens"].shape == (1, 6, 32)
    for name in ("block_1/mlp/fc1/kernel", "encoder/class_token"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    positions = ours["encoder/position_embedding"]
    assert positions.shape == (1, 12 if more else 1 + 6 + 12, 32)
    if not more:
        np.testing.assert_array_equal(positions[0, 0], theirs["encoder/position_embedding"][0, 0])
        assert not positions[0, 1:7].any() and positions[0, 7:].all()


def test_the_tokens_of_boxes_are_registers():
    model = dataclasses.replace(TASK, head="tokens").model(**SMALL, tokens={"class_token": True})
    encoder = keras.Model(model.input, [model.get_layer("norm").output, model.get_layer("box_sets").output])
    tokens, rows = encoder(IMAGES)
    np.testing.assert_array_equal(rows[:, 0], tokens[:, 1:7])
    with pytest.raises(ValueError, match="The registers are the task's boxes. Received: registers=2"):
        dataclasses.replace(TASK, head="tokens").model(**SMALL, tokens={"registers": 2})


@slow
@slow_on_jax
@few(1)
@pytest.mark.parametrize(
    "more", [dict(SMALL, tokens={"class_token": True, "registers": 2}), pytest.param(HYBRID, marks=once)]
)
def test_learns_on_any_encoder(more, tmp_path):
    pytest.importorskip("pycocotools")
    model = TASK.model(**more)
    assert model.output_shape == (None, 6, 6) and model.output.dtype == "float32" and TASK.fits(model)
    assert not dataclasses.replace(TASK, classes=(*CLASSES, "bird")).fits(model)
    encoder = vit(**more, num_classes=0, pooling="none")
    own = {v.path for v in model.weights} - {v.path for v in encoder.weights}
    assert own and all(path.startswith("head/") for path in own)
    np.testing.assert_allclose(np.asarray(model(IMAGES))[..., 4:], 0.1, atol=1e-6)  # before training
    learner = TASK.learner(model)
    assert {v.path for v in learner.variables} == {v.path for v in model.variables}
    learner.compile(keras.optimizers.Adam(1e-2), **TASK.compiled(None), run_eagerly=EAGERLY)
    x, y = TASK.batch({"images": IMAGES, "bounding_boxes": BOXES}, None, (0, 0))
    losses = [learner.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(2)]
    assert losses[1] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(IMAGES)), np.asarray(model(IMAGES)))


def test_the_map_is_finer_than_the_tokens():
    assert TASK.learner(TASK.model(**SMALL)).output_shape == (None, 16, 24, 6)
    assert TASK.learner(TASK.model(**HYBRID)).output_shape == (None, 32, 48, 6)


@slow
def test_weights_of_a_detector_keep_its_head(tmp_path):
    first = TASK.model(**SMALL)
    for variable in first.weights:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    first.save(tmp_path / "model.keras")
    (tmp_path / "model.labels.txt").write_text("\n".join(CLASSES))

    def same(task, **more):
        model = task.model(**{**SMALL, "weights": tmp_path / "model.keras", **more})
        theirs = {v.path: np.asarray(v) for v in first.weights}
        heads = [np.array_equal(v, theirs[v.path]) for v in model.weights if v.path.endswith("classifier/kernel")]
        blocks = [np.array_equal(v, theirs[v.path]) for v in model.weights if "block_0" in v.path]
        return all(blocks), all(heads)

    assert same(TASK) == (True, True) and same(TASK, image_size=(48, 48)) == (True, True)
    assert same(dataclasses.replace(TASK, classes=("cat", "cow"))) == (True, False)
    assert same(TASK, head="new") == (True, False)
    with pytest.raises(ValueError, match="`weights` must be a detector with this head and these classes"):
        dataclasses.replace(TASK, classes=("cat", "cow")).model(
            **SMALL, weights=tmp_path / "model.keras", head="require"
        )


def output(*rows):
    found = np.zeros((6, 6), "float32")
    for i, (label, score, *edges) in enumerate(rows):
        found[i, :4], found[i, 4 + label] = edges, score
    return found


def test_answers_count_and_objects_are_in_pixels_of_the_file():
    found = output(
        (1, 0.9, 0.1, 0.2, 0.5, 0.6), (0, 0.8, 0, 0, 1, 1), (1, 0.4, 0.5, 0.5, 0.7, 0.75), (1, 0.2, 0, 0, 1, 1)
    )
    assert TASK.answer(found) == pytest.approx({"2 dog": 0.9, "1 cat": 0.8})
    assert TASK.answer(output()) == {"nothing": 1.0} and TASK.answer(output((1, 0.25, 0, 0, 1, 1))) == {"nothing": 0.75}
    assert TASK.result(found, (100, 200)) == [
        {"category": "dog", "bbox": [40.0, 10.0, 80.0, 40.0], "score": 0.9},
        {"category": "cat", "bbox": [0.0, 0.0, 200.0, 100.0], "score": 0.8},
        {"category": "dog", "bbox": [100.0, 50.0, 50.0, 20.0], "score": 0.4},
    ]
    assert len(dataclasses.replace(TASK, score=0.0).result(found, (10, 10))) == 4
    picture = TASK.picture(IMAGES[0], found)
    both = TASK.picture(IMAGES[0], found, {"bounding_boxes": BOXES[0]})
    assert picture.shape == (256, 384, 3)
    np.testing.assert_array_equal(both[:, :384], picture)
    assert both.shape == (256, 384 + 7 + 384, 3) and not np.array_equal(both[:, 391:], picture)


def source(classes=CLASSES, boxes=BOXES):
    return types.SimpleNamespace(class_names=classes, targets={"bounding_boxes": boxes})


def test_data_must_have_the_classes_and_no_more_objects_than_boxes():
    pytest.importorskip("pycocotools")
    assert TASK.on(source(), SMALL) == TASK and TASK.on(source(())) == TASK
    with pytest.raises(ValueError, match=r"\('cat', 'dog'\), in this order. Received: \('dog', 'cat'\)"):
        TASK.on(source(("dog", "cat")))
    with pytest.raises(ValueError, match="Received: most=1, and an image of 2 objects"):
        dataclasses.replace(TASK, most=1).on(source(), SMALL)


@pytest.mark.parametrize(
    "options, parts, message",
    [
        (dict(classes=("a", "a")), {}, "different names"),
        ({}, dict(augment=Augment(cutmix=0.2)), "do not change boxes. Received: augment.cutmix=0.2"),
        ({}, dict(data=Data(resize=256)), "Boxes are scored whole: .* data.resize=256"),
    ],
)
def test_settings_that_contradict_each_other(options, parts, message):
    task = dataclasses.replace(TASK, **options)
    with pytest.raises(ValueError, match=message):
        task.check(Recipe("name", SMALL, task, **parts))


@pytest.mark.parametrize("optim", [Optim(freeze="all"), Optim(freeze=1), Optim(lora=2)])
def test_frozen_tokens_of_boxes_are_warned_of(optim):
    with pytest.warns(UserWarning, match="freeze the tokens of the boxes too"):
        dataclasses.replace(TASK, head="tokens").check(Recipe("name", SMALL, TASK, optim=optim))


def test_the_models_head_is_the_tasks():
    with pytest.raises(ValueError, match="A detector's head is the task's: it has no pooling. Received: pooling='gap'"):
        TASK.model(**SMALL, pooling="gap")
    with pytest.raises(ValueError, match="with 100 positions or more"):
        Detect(classes=CLASSES).model(variant="mu/8", image_size=8)


def test_heads_of_segmenters_are_new(tmp_path):
    Segment(classes=CLASSES, head={"kind": "dpt", "width": 8}).model(**SMALL).save(tmp_path / "model.keras")
    model = TASK.model(**SMALL, weights=tmp_path / "model.keras")
    assert model.output_shape == (None, 6, 6)


def test_the_data_may_name_the_classes():
    targets = {"bounding_boxes": np.zeros((2, 1, 5), "float32")}
    assert Detect().on(types.SimpleNamespace(class_names=("a", "b"), targets=targets)).classes == ("a", "b")
    with pytest.raises(ValueError, match=r"must name the classes of the objects. Received: classes=\(\)"):
        Detect().on(types.SimpleNamespace(class_names=(), targets=targets))

"""Boxes in clips, taken through everything that is done with a task."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit.config import Augment, Data, DetectClips, Optim, Recipe, check_recipe
from keras_vit.runs import predictions
from tests.boxed import FRAMES, NAMES, SIDE, arrays, clips_with_boxes
from tests.checkpoints.helpers import unexpected
from tests.marks import QUICKLY, fuller
from tests.tasks.harness import run_task_test

MODEL = dict(variant=None, image_size=SIDE, stem=[[8, 2], [8, 2]], patch_size=2, width=16, depth=2, num_heads=2)
TASK = DetectClips(frames=4, classes=NAMES, most=4, head={"kind": "points", "width": 8})


def recipe(folder="clips", task=TASK, model=None, augment=None, data=None):
    """Returns a recipe of a task on such clips; the others are changes of its parts."""
    return Recipe(
        name="boxed",
        task=task,
        model={**MODEL, **(model or {})},
        data=Data(
            **{
                **dict(source=f"folder:{folder}", train="all[:67%]", validation="all[67%:]", test="all[67%:]"),
                **dict(batch_size=4),
                **(data or {}),
            }
        ),
        augment=Augment(**(augment or {})),
        optim=Optim(ema=0.9, learning_rate=3e-3),
    )


@fuller
def test_all_that_is_done_with_a_task(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow")
    files = clips_with_boxes(tmp_path / "clips")
    task = DetectClips(frames=4, classes=NAMES, most=4, head=TASK.head, mirrored={"left": "right"}, score=0.0)
    made = recipe(tmp_path / "clips", task, {"dropout": 0.1}, dict(crop="inception", crop_area=0.5, jitter=0.2))
    run = run_task_test(made, tmp_path, monkeypatch, files[:2])
    assert run.task.classes == NAMES and run.model.output_shape == (None, 4, 4 + 2) and run.task.gives == "boxes"
    keras_vit.predict(run, files[:3], to=tmp_path / "found", json=tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text())
    assert {row["image_id"] for row in rows} == {path.name for path in files[:3]}
    assert all(row["category"] in NAMES and 0 <= min(row["bbox"]) <= max(row["bbox"]) <= SIDE for row in rows)
    assert {path.name for path in (tmp_path / "found").iterdir()} == {f"{path.stem}.txt" for path in files[:3]}
    alone = shutil.copy(run.run / "best.keras", tmp_path / "alone.keras")  # it knows which frames it sees
    again = keras_vit.load_run(alone)
    assert type(again.task) is DetectClips and again.task.clips == run.task.clips and again.task.classes == NAMES
    pixels = keras_vit.preprocess(run.model, files[:2])
    np.testing.assert_allclose(pixels, [run.viewer and again.about.preparation(file)[0] for file in files[:2]])
    seen = keras_vit.runs.looking.explain(run, files[:2], tmp_path / "seen")
    assert {path.name for path in seen} >= {"attention.png", "attention.gif", "pictures.png"}
    if not QUICKLY:
        found = keras_vit.evaluate(run)[run.file]
        assert found.keys() >= {"map", "map50"}


def test_clips_that_were_learned_are_found(tmp_path):
    """On arrays: the direction is in the frames around the middle one alone."""
    pytest.importorskip("tensorflow")
    clips, boxes = arrays(8)
    made = recipe("none", TASK, data={"batch_size": 8})
    made = keras_vit.config.override(made, {"optim.epochs": 2, "optim.warmup_epochs": 0, "optim.xla": False})
    model, history = keras_vit.fit(made, train=(clips, boxes), validation=(clips, boxes))
    assert history["loss"][1] < history["loss"][0] and {"val_map", "val_map50"} <= {*history}
    assert model.output_shape == (None, 4, 6)


@pytest.mark.parametrize("head", [TASK.head, "decoder"], ids=["points", "decoder"])
def test_each_head_sees_all_frames(head):
    pytest.importorskip("tensorflow")  # samples frames
    model = DetectClips(frames=4, classes=NAMES, most=4, head=head).model(**MODEL)
    learner = DetectClips(frames=4, classes=NAMES, most=4, head=head).learner(model)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if variable.name == "kernel":  # those of new heads are zeros
            variable.assign(rng.normal(size=variable.shape) * 0.3)
    clip = rng.integers(0, 256, (1, 4, SIDE, SIDE, 3)).astype("float32")
    first = np.asarray(learner(clip))
    for frame in range(4):
        other = clip.copy()
        other[:, frame] = 255 - other[:, frame]
        assert np.abs(np.asarray(learner(other)) - first).max() > 1e-3, frame


def test_the_map_is_that_of_the_middle_frame():
    pytest.importorskip("tensorflow")
    model = TASK.model(**MODEL)
    crop = model.get_layer("middle_frame")
    assert crop.input.shape[1] == 4 * crop.output.shape[1] and crop.cropping == ((2 * 6, 1 * 6), (0, 0))
    step = model.get_layer("patch_tokens_3")
    assert step.input.shape[1] == 2 * 9 and step.output.shape[1] == 9 and step.cropping == (9, 0)
    whole = DetectClips(frames=5, classes=NAMES, most=4).model(**{**MODEL, "tubelet": 1})
    assert whole.get_layer("patch_tokens_3").cropping == (2 * 9, 2 * 9)
    token = DetectClips(frames=6, classes=NAMES, most=4).model(**{**MODEL, "tokens": {"class_token": True}})
    assert token.get_layer("patch_tokens_3").cropping == (1 + 9, 9)  # the prefix, and a step of frames 2 and 3


def test_where_queries_look_is_in_the_middle_frame():
    model = DetectClips(frames=4, classes=NAMES, most=3, head="decoder").model(**MODEL)
    maps = keras_vit.explain.attention_of_boxes(model, np.random.default_rng(0).uniform(0, 255, (2, 4, SIDE, SIDE, 3)))
    assert maps.shape == (2, 3, 3, 3)
    np.testing.assert_allclose(maps.sum((2, 3)), 1, atol=1e-3)


def test_a_flip_turns_classes():
    tf = pytest.importorskip("tensorflow")
    task = DetectClips(frames=2, classes=("left", "right", "up"), mirrored={"left": "right"})
    clips = np.arange(64 * 2 * 4 * 4).reshape(64, 2, 4, 4, 1) % 256
    row = [[0.0, 0.25, 0.5, 0.5]]
    kinds = [0, 1, 2, -1, -2, -4]
    boxes = np.array([[*row[0], kind] if kind != -1 else [0, 0, 0, 0, -1] for kind in kinds], "float32")
    examples = {"images": tf.constant(clips, "float32"), "bounding_boxes": tf.constant(np.tile(boxes, (64, 1, 1)))}
    seed = tf.constant([0, 7], "int64")
    x, y = (part.numpy() for part in task.batch(examples, Augment(), seed))
    turned = (x != clips).any((1, 2, 3, 4))
    assert 16 < turned.sum() < 48
    np.testing.assert_array_equal(x[turned], clips[turned][..., ::-1, :])
    np.testing.assert_array_equal(y[~turned], np.tile(boxes, ((~turned).sum(), 1, 1)))
    np.testing.assert_array_equal(y[turned][0, :, 4], [1, 0, 2, -1, -3, -4])
    np.testing.assert_allclose(y[turned][0, 0, :4], [0.0, 0.5, 0.5, 0.75])
    same, _ = task.batch(examples, None, seed)  # in evaluation nothing is
    np.testing.assert_array_equal(same, clips)


def test_the_picture_is_the_middle_frame():
    clip = np.zeros((4, SIDE, SIDE, 3), "float32")
    clip[2] = 200
    output = np.zeros((4, 6), "float32")
    drawn = TASK.picture(clip, output)
    assert (drawn == 200).all() and TASK.shows(output) == "the middle one of 4 frames"
    assert TASK.picture(clip, output, {"bounding_boxes": np.array([[0, 0, 1, 1, 0]])}).shape[1] > 2 * drawn.shape[1]


def test_what_is_refused():
    calls = [
        (lambda: DetectClips(sampling="segments"), "must be 'dense': .* Received: sampling='segments'"),
        (
            lambda: DetectClips(head="tokens"),
            "`DetectClips.head` must be one of 'points', 'decoder'. Received: .*'tokens'",
        ),
        (lambda: DetectClips(head={"kind": "open"}), "must have a kind among points, decoder. Received: .*open"),
        (lambda: DetectClips(mirrored={"a": "b", "c": "b"}), "one that it becomes in a mirror, .*Received: {'a'"),
        (lambda: DetectClips(mirrored={"a": "b", "b": "c"}), "one that it becomes in a mirror, .*Received: {'a'"),
        (lambda: DetectClips(classes=NAMES, mirrored={"left": "up"}).check(), "must name classes, .* Received: 'up'"),
        (lambda: DetectClips().check(), "DetectClips.classes must name the classes .* Received: classes="),
        (lambda: DetectClips.from_checkpoint("hf://hustvl/yolos-tiny"), "of a detector of clips .*Received: 'hf://"),
    ]
    of_recipes = [
        (dict(augment={"flip": True}), "A flip turns left into right: .*task.mirrored.* Received: augment.flip=True"),
        (dict(augment={"mixup": 0.2}), "do not change boxes. Received: augment.mixup=0.2"),
        (dict(augment={"randaugment": 2}), "Received: augment.randaugment=2"),
        (dict(model={"time_depth": 1}), "no temporal encoder. Received: model.time_depth=1"),
        (dict(model={"frames": 8}), "The frames are task.frames. Received: model.frames=8"),
        (dict(data={"resize": 32}), "Boxes are scored whole: .*Received: data.resize=32"),
        (
            dict(task=DetectClips(mirrored={}), data={"resize": "pad"}),
            "padded are not flipped. Received: data.resize='pad'",
        ),
    ]
    calls += [(lambda changes=changes: check_recipe(recipe(**changes)), text) for changes, text in of_recipes]
    assert not unexpected(calls)
    with pytest.raises(TypeError, match="mirrored must be .* Received: .*a"):
        DetectClips(mirrored=["a"])
    assert check_recipe(recipe()) is not None and keras_vit.DetectClips is DetectClips


def test_clips_of_other_numbers_of_frames():
    """A clip that is longer or shorter than the model's: the frame of the boxes is its middle one."""
    pytest.importorskip("tensorflow")
    from keras_vit.data import pipeline, sources

    for frames in (1, 3, 4, FRAMES, 12):
        clips, boxes = arrays(4, frames)
        clips[:] = np.arange(frames).reshape(1, -1, 1, 1, 1)
        made = recipe(data={"batch_size": 2})
        source = sources.of_caller((clips, boxes), made.data, TASK, TASK.data_shape((SIDE, SIDE, 3)))
        for batches in (
            pipeline.evaluation_batches(source, made, (4, SIDE, SIDE, 3)),
            pipeline.training_batches(source, made, (4, SIDE, SIDE, 3), first_epoch=0).take(2),
        ):
            for x, _ in batches:
                np.testing.assert_array_equal(np.asarray(x)[:, 2, 0, 0, 0], frames // 2)


@fuller
def test_a_gray_frame_is_drawn(tmp_path):
    pytest.importorskip("tensorflow")
    [file] = clips_with_boxes(tmp_path / "clips", 12, ".apng")[:1]
    model = TASK.model(**{**MODEL, "channels": 1})
    model.save(tmp_path / "gray.keras")
    trained = keras_vit.load_run(tmp_path / "gray.keras")
    assert predictions.predict(trained, [file])[0]
    with Image.open(file) as image:
        assert image.n_frames == FRAMES

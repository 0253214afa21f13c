"""Self-distillation as a way of `Pretrain`: its options, its crops, and a run of it."""

import dataclasses
import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit import config
from keras_vit.config import plain
from keras_vit.runs import looking
from keras_vit.tasks import Pretrain, PretrainClips
from keras_vit.tasks.pretrain import collapse, student_teacher
from keras_vit.training import devices, history, rundir
from tests.checkpoints.helpers import unexpected
from tests.marks import few, slow
from tests.tasks.harness import run_task_test

TASK = Pretrain(
    method="dino", prototypes=32, head_width=16, local_crops=2, temperature_epochs=1.0, teacher_momentum=0.9
)
MASKED = Pretrain(decoder_width=8, decoder_depth=1, decoder_heads=2)
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1)).astype("float32")
MODEL = dict(variant="mu/2", image_size=8, channels=1)


def recipe(task=TASK, model=None, **more):
    made = config.Recipe(name="x", model={**MODEL, **(model or {})}, task=task)
    return config.override(made, more)


def digits(**more):
    data = config.Data(source="digits", batch_size=16, limit=48)
    return dataclasses.replace(recipe(model={"pooling": "gap", "depth": 2, "stochastic_depth": 0.2}, **more), data=data)


def test_a_step():
    task = TASK.on(None, {**MODEL, "patch_size": 2})
    learner = task.learner(task.model(**MODEL))
    assert task.local_size == (4, 4) and task.compares and not Pretrain().compares
    learner.compile("adam", **task.compiled(None), run_eagerly=True)
    examples, seed = {"images": tf.constant(IMAGES), "labels": tf.zeros(6, "int64")}, tf.constant([0, 1], "int64")
    x, y = task.batch(examples, config.Augment(), seed)
    assert {name: each.shape for name, each in x.items()} == {
        "global_crops": (6, 2, 8, 8, 1),
        "local_crops": (6, 2, 4, 4, 1),
    }
    assert np.isfinite(learner.train_on_batch(x, y)).all() and y.shape == (6, 1)
    mirrored = task.batch(examples, config.Augment(flip=True), seed)[0]
    assert (mirrored["global_crops"].numpy() != x["global_crops"].numpy()).any()
    alone = dataclasses.replace(task, local_crops=0).batch(examples, None, seed)[0]
    np.testing.assert_array_equal(alone["global_crops"], x["global_crops"])
    assert list(alone) == ["global_crops"] and task.viewer(learner) is None


def test_the_size_of_local_crops():
    def size(**more):
        task = more.pop("task", TASK)
        return task.on(None, {**keras_vit.models.vit.DEFAULTS, **more}).local_size

    assert size(variant="B/16", image_size=224) == (96, 96)  # the paper's
    assert size(variant=None, patch_size=4, image_size=32) == (12, 12)
    assert size(variant="S/14", image_size=(224, 448)) == (98, 196)
    assert size(variant="mu/4", image_size=(8, 12)) == (8, 12)  # 2 x 3 patches have no smaller grid
    own = dataclasses.replace(TASK, local_size=64)
    assert size(task=own, variant="B/16", image_size=224) == (64, 64)
    assert size(task=own, variant="B/16", image_size=224, weights="runs/x") == (64, 64)
    assert size(variant="mu/2", image_size=8, weights="runs/x") == (4, 4)
    assert size(task=dataclasses.replace(TASK, local_crops=0), variant="B/16", weights="runs/x") is None


def test_settings_that_contradict():
    TASK.check(recipe())
    TASK.check(recipe(model={"num_classes": 0, "pooling": "map", "final_norm": "after", "dtype": "mixed_bfloat16"}))
    calls = [
        (recipe(model={"num_classes": 10}), "leave out model.num_classes. Received: model.num_classes=10"),
        (recipe(model={"stem": "conv"}), "no stem.* Received: stem='conv'"),
        (recipe(model={"variant": "R50+B/16"}), "no stem.*'R50.B/16'"),
        (recipe(model={"rotary": "dinov3"}), "no rotary positions"),
        (recipe(model={"position": "relative"}), "no relative positions"),
        (recipe(model={"patch_dropout": 0.5}), "no patch dropout.* Received: patch_dropout=0.5"),
        (recipe(model={"tokens": {"windows": 2}}), "no windows"),
        (recipe(model={"pooling": "none"}), "one vector"),
        (recipe(model={"dtype": "bfloat16"}), "must be float32, mixed_bfloat16 or .* Received: bfloat16"),
        (recipe(model={"channels": 4}), "set task.colors=False. Received: model.channels=4"),
        (
            recipe(model={"weights": "runs/a", "variant": None}),
            "set model.patch_size. Received: model.weights='runs/a'",
        ),
        (recipe(dataclasses.replace(TASK, local_size=5)), "multiple of the patch size. Received: 5 of 8 x 8 .* 2 x 2"),
        (recipe(dataclasses.replace(TASK, local_size=10)), "be no larger.* Received: 10 of 8 x 8"),
        (recipe(dataclasses.replace(TASK, local_size=(4, 2))), r"proportions .* Received: \(4, 2\) of 8 x 8"),
        (recipe(**{"augment.mixup": 0.2}), "augment.mixup is of whole images"),
        (recipe(**{"optim.accumulate": 2}), "optim.accumulate must be 1. Received: optim.accumulate=2"),
        (recipe(**{"optim.ema": 0.9}), "optim.ema must be None. Received: optim.ema=0.9"),
        (recipe(**{"optim.patience": 3}), "optim.patience must be None"),
        (recipe(**{"optim.lora": 4}), "optim.lora is for fine-tuning"),
    ]
    assert not unexpected([(lambda made=made: made.task.check(made), pattern) for made, pattern in calls])
    wrong = [
        (lambda: Pretrain(method="dino", mask_ratio=0.5), "mask_ratio needs method='mae'. Received: mask_ratio=0.5"),
        (lambda: Pretrain(method="dino", decoder_depth=1), "decoder_depth needs method='mae'"),
        (lambda: Pretrain(prototypes=8), "prototypes needs method='dino'. Received: prototypes=8"),
        (lambda: Pretrain(method="dino", teacher_temperature=0.3), "at least 0.001 and below 0.1. Received: 0.3"),
        (lambda: Pretrain(method="dino", teacher_momentum=1.0), "below 1. Received: 1.0"),
    ]
    assert not unexpected(wrong)
    with pytest.raises(TypeError, match="method must be one of 'mae', 'dino'. Received: 'ibot'"):
        Pretrain(method="ibot")
    with pytest.raises(TypeError, match="PretrainClips.method must be one of 'mae'. Received: 'dino'"):
        PretrainClips(method="dino")


@pytest.mark.parametrize(
    "of_weights, given, task, said",
    [
        ({"rotary": "dinov3"}, {}, TASK, "no rotary positions"),
        ({"position": "relative"}, {}, TASK, "no relative positions"),
        ({"tokens": {"windows": 2}}, {}, TASK, "no windows"),
        ({"stem": ((8, 2),), "patch_size": 1}, {"patch_size": 1}, TASK, "no stem"),
        (
            {},
            {"patch_size": None},
            dataclasses.replace(TASK, local_size=5),
            r"Received: \(5, 5\) of 8 x 8 pixels .* 2 x 2",
        ),
        ({"rotary": "dinov3"}, {}, MASKED, "no rotary positions"),
        ({"patch_size": 1}, {"patch_size": None}, MASKED, r"patches of 2 x 2 pixels. Received: \(1, 1\)"),
        ({}, {"patch_size": None}, dataclasses.replace(MASKED, mask_ratio=0.99), "at least one of 16 patches visible"),
    ],
)
def test_weights_that_contradict(tmp_path, of_weights, given, task, said):
    """As in a recipe, before the folder of a run is there."""
    options = dict(image_size=8, width=8, depth=1, num_heads=2, patch_size=2, num_classes=0, channels=1, pooling="gap")
    keras_vit.vit(None, **{**options, **of_weights}).save(tmp_path / "a.keras")
    model = {"weights": str(tmp_path / "a.keras"), "image_size": 8, "channels": 1, "patch_size": 2, **given}
    model = {name: value for name, value in model.items() if value is not None}
    made = config.Recipe(name="x", model=model, task=task, data=config.Data(source="digits", batch_size=6))
    images = IMAGES.astype("uint8")
    with pytest.raises(ValueError, match=said):
        keras_vit.fit(made, tmp_path / "run", train=images, validation=images, verbose=0)
    assert not (tmp_path / "run").exists()


def test_runs_of_masked_autoencoders_are_what_they_were():
    """Their files have no option of the other method, so their hashes are those of earlier versions."""
    old = ["kind", "classes", "mask_ratio", "decoder_width", "decoder_depth", "decoder_heads", "normalize"]
    made = recipe(Pretrain(decoder_width=16, decoder_depth=1, decoder_heads=2))
    values = json.loads(json.dumps(plain.to_dict(made)))
    assert list(values["task"]) == old and plain.from_dict(values) == made
    assert rundir.mark(made, {}) == "e55bc64231c708a15ee6d5012ce252b9"
    again = plain.to_dict(recipe())
    assert again["task"]["method"] == "dino" and "mask_ratio" not in again["task"]
    assert plain.from_dict(json.loads(json.dumps(again))).task == TASK
    assert Pretrain(method="mae") == Pretrain()


@slow
def test_all_that_is_done_with_a_task(tmp_path, monkeypatch):
    run = run_task_test(digits(**{"augment.rotation": 10.0}), tmp_path, monkeypatch, whole=True)
    rows = history.read(run.run)
    assert {"teacher_entropy", "mean_entropy", "val_teacher_entropy", "val_knn_accuracy"} <= set(rows)
    assert not (run.run / "learner.keras").exists() and len(run.model.trainable_variables) == 29
    assert "pictures.png" in [path.name for path in looking.explain(run.run, folder=tmp_path / "pictures")]


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))


def test_the_teacher_is_what_is_kept(tmp_path, monkeypatch, uncompiled):
    made, seen = digits(**{"optim.epochs": 1}), []
    own = Pretrain.learner
    monkeypatch.setattr(Pretrain, "learner", lambda *given: seen.append(own(*given)) or seen[-1])
    model, _ = keras_vit.fit(made, tmp_path, verbose=0)
    learner = seen[0]
    assert learner.model is model and np.asarray(learner.plan).tolist() == [3, 3, 3] and int(learner.step) == 3
    kept = keras_vit.load_run(tmp_path).model
    for one, other, student in zip(kept.weights, model.weights, learner.student.weights, strict=True):
        np.testing.assert_array_equal(one, other)
        assert "norm" in one.path or "bias" in one.path or np.abs(np.asarray(one) - np.asarray(student)).max() > 0
    assert len(kept.trainable_variables) == len(kept.weights)  # it is not frozen
    start = keras_vit.from_pretrained(tmp_path, num_classes=3)
    np.testing.assert_array_equal(start.get_layer("norm").gamma, model.get_layer("norm").gamma)


@slow
def test_gradient_checkpointing_changes_nothing(tmp_path, uncompiled):
    losses = [
        keras_vit.fit(
            digits(**{"optim.epochs": 2, "optim.remat": remat, "optim.warmup_epochs": 0}),
            tmp_path / str(remat),
            verbose=0,
        )[1]["loss"]
        for remat in (False, True)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-4)


@few(1)
@pytest.mark.parametrize("centering, temperature, words", [(1.0, 0.09, "same prototypes"), (0.9, 5.0, "same share")])
def test_a_collapse_is_said(tmp_path, monkeypatch, uncompiled, centering, temperature, words):
    """Without a center one prototype wins; without sharpening, none (section 5.3 of the paper)."""
    monkeypatch.setattr(student_teacher, "CENTERING", centering)
    monkeypatch.setattr(collapse, "LEAST", 0.05)
    own = Pretrain.learner

    def learner(*given):
        made = own(*given)
        made.temperature = temperature
        return made

    monkeypatch.setattr(Pretrain, "learner", learner)
    made = digits(**{"optim.epochs": 3, "optim.learning_rate": 0.01, "task.temperature_epochs": 0.0})
    with pytest.warns(UserWarning, match=f"The teacher has collapsed, .*: it gives .*{words}"):
        keras_vit.fit(made, tmp_path, verbose=0)

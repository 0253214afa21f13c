import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit.config import Augment, Data, Generate, Optim, Recipe
from keras_vit.runs import sampled
from keras_vit.tasks.generate.velocity_loss import VelocityLoss
from tests.dits import small
from tests.marks import fuller
from tests.tasks.harness import run_task_test

MODEL = dict(variant=None, image_size=8, channels=1, patch_size=4, width=16, depth=1, num_heads=2, num_classes=10)
LABELS = tf.constant([0, 2, 1, 0], "int64")
IMAGES = tf.constant(np.random.default_rng(0).uniform(0, 255, (4, 8, 8, 1)), "float32")


def recipe(**changes):
    given = dict(
        name="drawn",
        task=Generate(steps=2, samples=8, every=2),
        model=MODEL,
        data=Data(source="digits", batch_size=16, limit=32),
        optim=Optim(ema=0.9),
    )
    return Recipe(**{**given, **changes})


@fuller
def test_generate(tmp_path, monkeypatch):
    run = run_task_test(recipe(), tmp_path, monkeypatch, source=False)
    measured = keras_vit.evaluate(run)[run.file]
    assert set(measured) == {"thumbnail_frechet"}
    assert keras_vit.sample(run.model, "3", steps=2).shape == (1, 8, 8, 1)
    again = keras_vit.from_pretrained(run.run)
    one, other = (keras_vit.sample(model, [1, 9], steps=2) for model in (again, run.model))
    np.testing.assert_array_equal(one, other)
    start = keras_vit.from_recipe(recipe(model={**MODEL, "weights": str(run.run)}))
    for ours, theirs in zip(start.weights, run.model.weights):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(ValueError, match="takes none: keras_vit.sample.* Received: 1 images for Generate"):
        keras_vit.predict(run, [tmp_path / "a.png"])
    paths = [*sampled.draw(run, ["3", "7"], 2, tmp_path / "drawn", steps=2)]
    assert [path.name for path in paths] == ["3_000.png", "3_001.png", "7_000.png", "7_001.png"]


def prepared(task, seed=(1, 2), augment=None):
    examples = task.prepare({"images": IMAGES, "labels": LABELS}, tf.constant(seed))
    return examples, task.batch(examples, augment, tf.constant(seed))


@pytest.mark.parametrize("times", ["normal", "uniform"])
def test_what_is_learned_leads_from_noise_to_the_image(times):
    task = Generate(classes=("a", "b", "c"), times=times)
    examples, (x, velocity) = prepared(task)
    t = x["times"].numpy()[:, None, None, None]
    assert ((t > 0) & (t < 1)).all()
    np.testing.assert_allclose(x["images"] + (1 - t) * velocity, IMAGES / 127.5 - 1, atol=1e-5)
    np.testing.assert_allclose(x["images"] - t * velocity, examples["images"], atol=1e-5)
    assert x["labels"].dtype == "int32" and (x["labels"].numpy() == LABELS.numpy()).all()
    again = prepared(task)[1]
    np.testing.assert_array_equal(again[0]["images"], x["images"])
    assert (prepared(task, (1, 3))[1][0]["images"] != x["images"]).numpy().any()


def test_some_labels_are_left_out_in_training_alone():
    task = Generate(classes=("a", "b", "c"), label_drop=0.999999)
    assert (prepared(task, augment=Augment())[1][0]["labels"].numpy() == 3).all()
    assert (prepared(task)[1][0]["labels"].numpy() < 3).all()
    kept = Generate(classes=("a", "b", "c"), label_drop=0.0)
    assert (prepared(kept, augment=Augment())[1][0]["labels"].numpy() == LABELS.numpy()).all()


def test_loss_is_the_mean_square_of_each_image():
    rng = np.random.default_rng(0)
    true, found = rng.normal(size=(3, 4, 4, 1)), rng.normal(size=(3, 4, 4, 2))
    expected = np.square(found[..., :1] - true).mean((1, 2, 3))
    np.testing.assert_allclose(VelocityLoss().call(true, found), expected)
    np.testing.assert_allclose(VelocityLoss()(true, found, [1.0, 0.0, 2.0]), (expected * [1, 0, 2]).mean(), rtol=1e-5)


def test_files_are_followed_as_the_model():
    model, task = small(), Generate(classes=("cat", "dog", "7"), steps=2)
    noise = np.random.default_rng(0).normal(size=(3, 8, 12, 1)).astype("float32")
    given = {"images": noise, "times": np.zeros(3), "labels": np.array([0, 1, 2])}
    np.testing.assert_allclose(task.answering(model)(given), task.answering(lambda x: model(x))(given), atol=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {**MODEL, "pooling": "gap"}}, "`model` has no option 'pooling'|pooling"),
        ({"augment": Augment(mixup=0.2)}, "MixUp, CutMix and RandAugment do not change images to draw"),
        ({"augment": Augment(erase=0.2)}, "What erasing makes would be drawn too. Received: augment.erase=0.2"),
        ({"task": Generate(label_drop=0.0)}, "with label_drop=0, guidance must be 1. Received: guidance=2.0"),
        ({"model": {"channels": 1}}, "Generate needs model.image_size. Received"),
    ],
)
def test_options_that_do_not_fit(changes, message):
    given = recipe(**changes)
    with pytest.raises(ValueError, match=message):
        given.task.check(given)


def test_judges_are_named_before_the_run(tmp_path):
    with pytest.raises(ValueError, match="judge|no_such"):
        keras_vit.fit(recipe(task=Generate(judge="no_such")), tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()


def test_judges_of_another_size_are_named_before_images_are_drawn(monkeypatch):
    judge = keras_vit.vit("mu/4", image_size=12, channels=1, num_classes=3, depth=1)
    task = Generate(classes=("cat", "dog", "7"), steps=2, judge="larger")
    monkeypatch.setattr("keras_vit.checkpoints.pretrained.from_pretrained", lambda source: judge)
    monkeypatch.setattr("keras_vit.tasks.generate.generate.drawn", None)  # nothing is drawn
    given = {"images": np.zeros((3, 8, 12, 1), "float32"), "times": np.zeros(3), "labels": np.array([0, 1, 2])}
    with pytest.raises(ValueError, match=r"takes images of \(12, 12, 1\). Received: \(8, 12, 1\)"):
        task.answering(small())(given)


def test_judges_of_other_classes_or_sizes(tmp_path):
    model = keras_vit.vit("mu/4", image_size=8, channels=1, num_classes=10, depth=1)
    model.get_layer("rescale").metadata["labels"] = [*"1234567890"]
    model.save(tmp_path / "other.keras")
    keras_vit.vit("mu/4", image_size=12, channels=1, num_classes=10, depth=1).save(tmp_path / "larger.keras")
    keras_vit.vit("mu/4", image_size=8, channels=1, num_classes=5, depth=1).save(tmp_path / "fewer.keras")
    for name, message in (
        ("other", "must have the classes of the data, 0, 1, .* with 10 classes: 1, 2"),
        ("larger", r"takes images of \(12, 12, 1\). Received: \(8, 8, 1\)"),
        ("fewer", "with 5 classes"),
    ):
        with pytest.raises(ValueError, match=message):
            keras_vit.fit(recipe(task=Generate(judge=str(tmp_path / f"{name}.keras"))), tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()

import dataclasses

import numpy as np
import pytest

import keras_vit
from keras_vit import config
from keras_vit.runs import looking, trained
from keras_vit.tasks import Pretrain
from keras_vit.tasks.pretrain.masked import MaskedAutoencoder
from keras_vit.training import history, rundir
from tests.checkpoints.helpers import unexpected
from tests.marks import slow
from tests.tasks.harness import run_task_test

tf = pytest.importorskip("tensorflow")  # for the pipeline

TASK = Pretrain(decoder_width=16, decoder_depth=1, decoder_heads=2)
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1)).astype("float32")
MODEL = dict(variant="mu/2", image_size=8, channels=1)


def recipe(task=TASK, model=None, augment=None, optim=None):
    made = config.Recipe(name="x", model={**MODEL, **(model or {})}, task=task)
    return config.override(made, {f"augment.{k}": v for k, v in (augment or {}).items()} | (optim or {}))


def test_a_step():
    model = TASK.model(**MODEL)
    learner = TASK.learner(model)
    assert isinstance(learner, MaskedAutoencoder) and model.output_shape == (None, 32)
    assert learner.model is model and learner.mask_ratio == 0.75 and learner.normalize
    learner.compile("adam", **TASK.compiled(None), run_eagerly=True)
    seed = tf.constant([0, 1], "int64")
    examples = {"images": tf.constant(IMAGES), "labels": tf.zeros(6, "int64")}
    x, y = TASK.batch(examples, None, seed)
    assert set(x) == {"images", "noise"} and x["noise"].shape == (6, 16)
    np.testing.assert_array_equal(TASK.batch(examples, None, seed)[0]["noise"], x["noise"])
    assert y is examples["images"]
    assert np.isfinite(learner.train_on_batch(x, y))


@slow
def test_all_that_is_done_with_a_task(tmp_path, monkeypatch):
    data = config.Data(source="digits", batch_size=32, limit=96)
    made = dataclasses.replace(recipe(model={"pooling": "gap", "num_classes": 0}), data=data)
    made = dataclasses.replace(made, optim=config.Optim(ema=0.9))
    run = run_task_test(made, tmp_path, monkeypatch, whole=True).run
    learner = rundir.read_model(run / "learner.keras")
    weights = {v.path: np.asarray(v) for v in keras_vit.load_run(run).model.weights}
    for variable in learner.model.weights:  # the EMA weights, in both files
        np.testing.assert_array_equal(np.asarray(variable), weights[variable.path], err_msg=variable.path)
    column = history.read(run)["val_knn_accuracy"]
    assert len(column) == 2 and all(0 <= value <= 1 for value in column)
    assert "pictures.png" in [path.name for path in looking.explain(run, folder=tmp_path / "pictures")]
    found = trained.load_run(run)
    output = found.viewer()(IMAGES[:1])[0]
    assert np.ndim(trained.load_run(run / "best.keras").viewer()(IMAGES[:1])[0]) == 1  # the decoder is the last epoch's
    drawn = found.task.picture(IMAGES[0], output)
    assert drawn.shape == (8, 3 * 8 + 2, 3) and found.task.caption(output, {}) == "image, masked, reconstruction"
    assert (drawn[:, :8] == np.rint(IMAGES[0])).all() and (drawn[:, 9:17] != drawn[:, :8]).any()


def test_settings_that_contradict():
    TASK.check(recipe())
    TASK.check(recipe(model={"num_classes": 0, "pooling": "gap"}))
    calls = [
        (recipe(model={"num_classes": 10}), "leave out model.num_classes. Received: model.num_classes=10"),
        (recipe(model={"stem": "conv"}), "no stem"),
        (recipe(model={"variant": "R50+B/16"}), "no stem.*'R50.B/16'"),
        (recipe(model={"pooling": "map"}), "pooling='map'"),
        (recipe(model={"pooling": "none"}), "one vector"),
        (recipe(model={"patch_dropout": 0.5}), "no patch dropout.* Received: patch_dropout=0.5"),
        (recipe(model={"pooling": "gap", "final_norm": "after"}), "final_norm='after'"),
        (recipe(Pretrain(decoder_width=24, decoder_heads=5)), "decoder_width must be a multiple .* Received: 24 and 5"),
        (recipe(Pretrain(classes=("a", "b"))), "has no classes. Received: task.classes"),
        (recipe(Pretrain(mask_ratio=0.99)), "one of 16 patches visible"),
        (recipe(model={"patch_size": (1, 4)}), r"patches of 2 x 2 pixels. Received: \(1, 4\)"),
        (recipe(augment={"mixup": 0.2}), "augment.mixup changes the target"),
        (recipe(augment={"cutmix": 1.0}), "augment.cutmix changes the target"),
        (recipe(augment={"erase": 0.2}), "augment.erase changes the target"),
        (recipe(optim={"optim.layer_decay": 0.7}), "optim.layer_decay is for fine-tuning"),
        (recipe(optim={"optim.freeze": "all"}), "optim.freeze is for fine-tuning"),
        (recipe(optim={"optim.freeze": 0}), "optim.freeze is for fine-tuning.* Received: optim.freeze=0"),
    ]
    assert not unexpected([(lambda made=made: made.task.check(made), pattern) for made, pattern in calls])
    with pytest.raises(ValueError, match="Pretrain.mask_ratio must be at least 0.01 and below 1. Received: 1.0"):
        Pretrain(mask_ratio=1.0)


def test_picture():
    image = IMAGES[0]
    alone = TASK.picture(image, np.ones(32))
    assert alone.shape == (8, 8, 3) and alone.dtype == np.uint8
    learner = TASK.learner(TASK.model(**MODEL))
    masked, again = learner.reconstruct(IMAGES)
    three = TASK.picture(image, np.stack([masked[0], again[0]]))
    assert three.shape == (8, 3 * 8 + 2, 3)
    np.testing.assert_array_equal(three[:, :8], alone)
    np.testing.assert_array_equal(three[:, 9:17, 0], np.rint(masked[0, ..., 0]))

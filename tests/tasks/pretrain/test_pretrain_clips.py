import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit import config
from keras_vit.data import sources
from keras_vit.data.packing import folded
from keras_vit.runs import looking, trained
from keras_vit.tasks import ClassifyClips, PretrainClips
from tests.checkpoints.helpers import unexpected
from tests.clipfiles import animated, moving
from tests.marks import slow
from tests.tasks.harness import run_task_test

TASK = PretrainClips(frames=4, mask_ratio=0.5, decoder_width=16, decoder_depth=1, decoder_heads=2)
MODEL = dict(variant=None, image_size=8, patch_size=4, width=8, depth=1, num_heads=2, pooling="gap")
CLIPS = np.random.default_rng(0).integers(0, 256, (6, 4, 8, 8, 3)).astype("float32")


def recipe(task=TASK, model=None, augment=None, optim=None):
    made = config.Recipe(name="x", model={**MODEL, **(model or {})}, task=task)
    return config.override(made, {f"augment.{k}": v for k, v in (augment or {}).items()} | (optim or {}))


def files(folder, flat=False):
    for i in range(12):
        place = folder if flat else folder / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        animated(place / f"{i}.gif", moving(3 + i % 5, 12 + i % 3, 16, seed=i))
    return sorted(folder.rglob("*.gif"))


def test_a_step():
    model = TASK.model(**MODEL, position="sincos1d")
    learner = TASK.learner(model)
    assert model.output_shape == (None, 8) and learner.model is model
    assert learner.mask_ratio == 0.5 and learner.visible == 4 and PretrainClips().mask_ratio == 0.9
    learner.compile("adam", **TASK.compiled(None), run_eagerly=True)
    examples = TASK.prepare({"images": tf.constant(folded(CLIPS))}, None)
    x, y = TASK.batch(examples, None, tf.constant([0, 1], "int64"))
    assert x["noise"].shape == (6, 16)
    np.testing.assert_array_equal(y, CLIPS)
    assert np.isfinite(learner.train_on_batch(x, y))


@slow
def test_all_that_is_done_with_a_task(tmp_path, monkeypatch):
    found = files(tmp_path / "clips")
    source = f"folder:{tmp_path / 'clips'}"
    made = dataclasses.replace(
        recipe(model={"dropout": 0.1}, augment={"crop": "inception", "jitter": 0.2}),
        data=config.Data(source=source, train="all[:67%]", validation="all", test="all", batch_size=4),
        optim=config.Optim(ema=0.9),
    )
    run = run_task_test(made, tmp_path, monkeypatch, whole=True)
    assert "pictures.png" in [path.name for path in looking.explain(run.run, found[:2], folder=tmp_path / "pictures")]
    assert trained.load_run(run.run).viewer()(CLIPS[:1]).shape == (1, 2, 4, 8, 8, 3)
    start = ClassifyClips(frames=4).model(**MODEL, weights=str(run.run), num_classes=3)  # what it is for
    for one, other in zip(start.get_layer("block_0").weights, run.model.get_layer("block_0").weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_picture():
    alone = TASK.picture(CLIPS[0], np.ones(8))
    assert alone.shape == (8, 4 * 8 + 3, 3) and TASK.caption(np.ones(8), {}) == ""
    output = TASK.viewer(TASK.learner(TASK.model(**MODEL)))(CLIPS[:1])[0]
    drawn = TASK.picture(CLIPS[0], output)
    assert drawn.shape == (3 * 8 + 2, 4 * 8 + 3, 3) and TASK.caption(output, {}) == "clip, masked, reconstruction"
    np.testing.assert_array_equal(drawn[:8], alone)
    hidden = np.stack([(drawn[9:17] != alone)[:, left : left + 8] for left in (0, 9, 18, 27)], 1)  # without the gaps
    hidden = hidden.any(-1).reshape(2, 4, 4, 2, 4).any((1, 4))  # (rows, frames, columns)
    assert (hidden == hidden[:, :1]).all() and hidden[:, 0].sum() == 2  # the same places in each frame


def test_labels_are_not_needed(tmp_path):
    found = files(tmp_path, flat=True)
    (tmp_path / "notes.txt").write_text("x")
    data = config.Data(source=f"folder:{tmp_path}", train="all[:50%]", validation="all[50%:]")
    with pytest.warns(UserWarning, match="1 files that are no clips: .txt"):
        train, _ = sources.both(data, TASK.targets, TASK.extras, TASK.columns, TASK.clips)
    assert len(train) == 6 and not train.targets and set(train.images) <= set(map(str, found))
    arrays = sources.of_caller(CLIPS, data, TASK, TASK.data_shape((8, 8, 3)))
    assert len(arrays) == 6 and not arrays.targets
    with pytest.raises(ValueError, match="Arrays must be clips. Received: tuple of 2"):
        sources.of_caller((CLIPS, np.arange(6)), data, TASK, TASK.data_shape((8, 8, 3)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must contain clips .* Received: none"):
        sources.load(dataclasses.replace(data, source=f"folder:{tmp_path / 'empty'}"), "all", (), (), {}, TASK.clips)


def test_settings_that_contradict():
    TASK.check(recipe())
    TASK.check(recipe(model={"num_classes": 0, "tubelet": 4}))
    calls = [
        (recipe(model={"num_classes": 10}), "leave out model.num_classes. Received: model.num_classes=10"),
        (recipe(model={"time_depth": 1}), "no temporal encoder"),
        (recipe(model={"frames": 4}), "The frames are task.frames"),
        (recipe(model={"pooling": "none"}), "one vector"),
        (recipe(PretrainClips(mask_ratio=0.2)), "one of 4 patches visible"),
        (recipe(augment={"mixup": 0.2}), "augment.mixup changes the target"),
        (recipe(augment={"randaugment": 2}), "augment.randaugment is for images"),
        (recipe(optim={"optim.layer_decay": 0.7}), "optim.layer_decay is for fine-tuning"),
        (recipe(PretrainClips(sampling="segments", stride=2)), "stride must be 1"),
    ]
    assert not unexpected([(lambda made=made: made.task.check(made), pattern) for made, pattern in calls])
    assert keras_vit.PretrainClips is PretrainClips

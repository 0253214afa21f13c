import dataclasses

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.config import ClassifyClips, Data, Recipe
from keras_vit.data import pipeline, sources, views
from keras_vit.data.clip_source import Clips
from keras_vit.reporting.gather import gather
from keras_vit.runs import passage, predictions, results, trained
from keras_vit.training import evaluation
from keras_vit.utils.clip_files import read_clip
from tests.checkpoints.helpers import randomized
from tests.clipfiles import animated, rotated, video
from tests.marks import slow

LABELS = {"labels": np.arange(3, dtype="int32") % 2}
RANDOM = np.random.default_rng(0).integers(0, 256, (3, 20, 8, 20, 3)).astype("uint8")  # as high as the model's
MODEL = dict(variant=None, image_size=8, patch_size=4, width=8, depth=1, num_heads=2, num_classes=2)


def recipe(resize=8, batch=4, loss=None, **task):
    task = ClassifyClips(frames=4, stride=2, classes=("a", "b"), loss=loss, **task)
    data = Data(source="folder:x", batch_size=batch, resize=resize)
    return Recipe(name="c", task=task, model=MODEL, data=data)


def source(made, clips=RANDOM):
    return Clips(clips, LABELS, ("a", "b"), sampling=made.task.clips)


def seen(made, clips=RANDOM):
    batches = [*views.view_arrays(source(made, clips), made, (4, 8, 8, clips.shape[-1]))]
    np.testing.assert_array_equal(np.concatenate([batch["labels"] for batch in batches]), LABELS["labels"])
    return np.concatenate([batch["images"] for batch in batches])


def test_parts_of_the_time_and_crops_along_the_longer_side():
    starts, lefts = (0, 6, 13), (0, 6, 12)
    expected = [RANDOM[:, i : i + 7 : 2, :, x : x + 8] for i in starts for x in lefts]
    np.testing.assert_array_equal(seen(recipe(views=3, crops=3)), np.stack(expected, axis=1))
    high = RANDOM.swapaxes(2, 3)
    expected = [high[:, 6:13:2, x : x + 8] for x in lefts]  # the middle of 14 starts is 6
    np.testing.assert_array_equal(seen(recipe(crops=3), high), np.stack(expected, axis=1))


@pytest.mark.parametrize(
    "resize, dtype", [(10, "uint8"), ((10, 10), "uint8"), ("aspect", "float32"), ("window", "uint8"), (None, "float32")]
)
def test_the_view_in_the_middle_is_that_of_a_single_one(resize, dtype):
    clips = np.random.default_rng(1).integers(0, 256, (3, 9, 13, 17, 3)).astype(dtype)
    made = recipe(resize, views=3, crops=3 if resize else 1)
    single = pipeline.evaluation_arrays(source(made, clips), made, (4, 8, 8, 3))
    expected = np.concatenate([batch["images"] for batch in single])
    found = seen(made, clips)
    np.testing.assert_array_equal(found[:, made.task.clips.count // 2], expected)
    assert made.task.crops == 1 or np.abs(found[:, 3] - found[:, 5]).max() > 9


def test_a_clip_that_is_shorter_than_its_views():
    found = seen(recipe(views=5, crops=3), RANDOM[:, :3])
    np.testing.assert_array_equal(found, np.repeat(found[:, :3], 5, axis=0).reshape(found.shape))
    np.testing.assert_array_equal(found[:, 1], RANDOM[:, [0, 2, 2, 2], :, 6:14])


def test_the_longer_side_is_that_of_a_video_as_it_is_seen(tmp_path):
    """A phone's upright video is stored lying."""
    pytest.importorskip("av")
    made, marked = recipe(crops=3), np.full((4, 16, 48, 3), 200, "uint8")
    marked[:, :, :16] = 0  # below, once it is turned by 90 degrees counterclockwise
    path = rotated(video(tmp_path / "a.mp4", marked), 90)
    found = views.reader((4, 8, 8, 3), made.data, made.task.clips)(path)
    assert found.shape == (3, 4, 8, 8, 3)
    np.testing.assert_allclose(found.mean((1, 2, 3, 4)), [200, 200, 0], atol=8)


@pytest.mark.parametrize("loss", [None, "sigmoid"])
def test_probabilities_are_averaged(loss):
    clips, given = np.random.default_rng(2).normal(size=(2, 3, 4, 8, 8, 3)), []

    def logits(some):
        given.append(len(some))
        return some[:, 0, 0, :2, 0] * 3

    task = recipe(loss=loss, views=3).task
    found = views.averaged(logits, task, 4)(clips)
    each = clips[:, :, 0, 0, :2, 0] * 3
    shares = 1 / (1 + np.exp(-each)) if loss else np.exp(each) / np.exp(each).sum(-1, keepdims=True)
    np.testing.assert_allclose(task.probabilities(found), shares.mean(1), atol=1e-12)
    assert given == [4, 2] and np.abs(shares.mean(1) - task.probabilities(each.mean(1))).max() > 0.01
    np.testing.assert_array_equal(views.averaged(logits, task, 4)(clips[:, 0]), each[:, 0])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A trained model, as it were, of clips in files, which differ in length."""
    folder = tmp_path_factory.mktemp("views")
    for i in range(8):
        clip = np.random.default_rng(i).integers(0, 256, (5 + 3 * i, 12, 20, 3)).astype("uint8")
        path = folder / "clips" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        animated(path, clip)
    every = {f"data.{name}": "all" for name in ("train", "validation", "test")}
    made = config.override(recipe(), {"data.source": f"folder:{folder / 'clips'}", **every})
    model = randomized(made.task.model(**MODEL))
    return trained.Trained(model, made, ("a", "b"), str(folder / "model.keras"), folder)


def by_hand(found, paths):
    """Returns the mean probabilities of three views of three crops of each clip, which is read and cut here."""
    answers = []
    for path in paths:
        clip = read_clip(path, 3, np.arange)
        room = max(len(clip) - 7, 0)
        starts = [view * room // 2 for view in range(3)]
        frames = [clip[np.minimum(start + np.arange(4) * 2, len(clip) - 1), 2:10] for start in starts]
        cut = np.stack([each[:, :, left : left + 8] for each in frames for left in (0, 6, 12)]).astype("float32")
        each = keras.ops.convert_to_numpy(keras.ops.softmax(found.model(cut)))
        answers.append(each.mean(axis=0))
    return np.array(answers)


def test_answers_of_a_run_are_those_of_its_views(found):
    several = {"task.views": 3, "task.crops": 3, "data.resize": "window"}
    paths = sorted(found.home.glob("clips/*/*.png"))
    changed = dataclasses.replace(found, recipe=config.override(found.recipe, several))
    answers = [dict(each) for each in predictions.predict(changed, paths, top=2)]
    expected = by_hand(found, paths)
    np.testing.assert_allclose([[each["a"], each["b"]] for each in answers], expected, atol=1e-5)
    (scores,) = keras_vit.evaluate(found, changes={**several, "task.metrics": ("accuracy", "log_loss")}).values()
    labels = np.array(["ab".index(path.parent.name) for path in paths])
    assert scores["log_loss"] == pytest.approx(-np.log(expected[np.arange(8), labels]).mean(), abs=1e-5)
    assert scores["accuracy"] == pytest.approx((expected.argmax(1) == labels).mean())
    with pytest.raises(ValueError, match="Received: task.crops=3, data.resize=None"):
        keras_vit.evaluate(found, changes={"task.crops": 3, "data.resize": None})
    with pytest.raises(ValueError, match=r"Received: task.crops=3, data.resize=\(8, 8\)"):  # the model's own size
        keras_vit.evaluate(found, changes={"task.crops": 3, "data.resize": (8, 8)})
    best = gather(changed).examples["Best"][0]  # is said to be what it was scored for
    assert f"({expected[np.arange(8), labels].max():.0%})" in best.caption


def test_a_single_view_is_what_it_was(found):
    made = sources.load(found.recipe.data, "all", clips=found.task.clips)
    tally, _ = evaluation.tally_of(found.answering(), found.bound, made, found.size, keep=True)
    pixels = np.concatenate([each["images"] for each in pipeline.evaluation_arrays(made, found.bound, found.size)])
    expected = found.task.probabilities(found.answering()(pixels[:4]))
    np.testing.assert_array_equal(tally.arrays()[3][:4], expected)
    several = dataclasses.replace(found.bound, task=dataclasses.replace(found.task, views=3, crops=3))
    tally, _ = evaluation.tally_of(found.answering(), several, made, found.size)
    assert tally.counts.images == 8  # of videos, not of 72 views
    assert passage.reader(found, several=True)(made.images[0]).ndim == 4


@slow
def test_exported_files_are_evaluated_by_the_same_views(found):
    results.export(found)
    several = {"task.views": 3, "task.crops": 3, "task.metrics": ("log_loss",), "data.resize": "window"}
    losses = [each["log_loss"] for each in keras_vit.evaluate(found, changes=several).values()]
    assert len(losses) == 3 and np.ptp(losses) < 1e-4

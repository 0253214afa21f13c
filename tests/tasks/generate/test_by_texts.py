import dataclasses

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit import config
from keras_vit.config import Augment, Data, Generate, Optim, Recipe
from keras_vit.data.memory import Source
from keras_vit.data.readers.texts import together
from keras_vit.models.inputs import metadata_of
from keras_vit.runs import results, sampled
from tests.marks import QUICKLY, fuller
from tests.tasks.harness import run_task_test

COLORS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
MODEL = dict(variant=None, image_size=8, channels=3, patch_size=4, width=16, depth=1, num_heads=2, predicts="image")
TASK = Generate(text=True, length=6, steps=2, samples=8, every=2, tower=dict(width=16, depth=1, num_heads=2))
WORDS = ("<pad>", "<end>", "<unknown>", "a", "blue", "image", "red")
IMAGES = np.zeros((3, 8, 8, 3), "uint8")
TEXTS = ("a red image", "a blue image", "red")


def written(folder, count=24):
    """Writes images of one color each, and the table of their captions; returns the folder."""
    folder.mkdir()
    rng, lines = np.random.default_rng(0), ["file_name,caption"]
    for i in range(count):
        name = [*COLORS][i % 3]
        pixels = np.clip(np.array(COLORS[name]) + rng.integers(-20, 20, (8, 8, 3)), 0, 255)
        Image.fromarray(pixels.astype("uint8")).save(folder / f"{i}.png")
        lines.append(f"{i}.png,a {name} image")
    (folder / "metadata.csv").write_text("\n".join(lines))
    return folder


def recipe(folder="nowhere", **changes):
    splits = dict(train="all[:67%]", validation="all[67%:]", test="all[67%:]")
    given = dict(
        name="painted",
        task=TASK,
        model=MODEL,
        data=Data(source=f"folder:{folder}", **splits, batch_size=8),
        optim=Optim(ema=0.9),
    )
    return Recipe(**{**given, **changes})


def source(texts=TEXTS):
    return Source(IMAGES, {"texts": together([each if isinstance(each, tuple) else (each,) for each in texts])})


@fuller
def test_generate_from_texts(tmp_path, monkeypatch):
    run = run_task_test(recipe(written(tmp_path / "images")), tmp_path, monkeypatch, source=False)
    assert set(keras_vit.evaluate(run)[run.file]) == {"thumbnail_frechet"}
    images = keras_vit.sample(run.model, ["a red image", "a blue image"], steps=2)
    assert images.shape == (2, 8, 8, 3)
    again = keras_vit.from_pretrained(run.run)
    np.testing.assert_array_equal(keras_vit.sample(again, ["a red image", "a blue image"], steps=2), images)
    further = recipe(tmp_path / "images", model={**MODEL, "weights": str(run.run)}, task=run.task)
    start = keras_vit.from_recipe(further)
    for ours, theirs in zip(start.weights, run.model.weights):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    paths = [*sampled.draw(run, texts=["a red image", "blue"], count=2, folder=tmp_path / "drawn", steps=2)]
    assert [path.name for path in paths] == [f"{name}_00{i}.png" for name in ("a_red_image", "blue") for i in (0, 1)]
    if not QUICKLY:
        results.export(run, quantize=["float16", "dynamic"], onnx=True, openvino=True)
        measured = [*keras_vit.evaluate(run).values()]
        assert len(measured) == 7
        for found in measured:
            np.testing.assert_allclose([*found.values()], [*measured[0].values()], atol=0.02)


def test_words_are_learned_and_texts_read():
    task = dataclasses.replace(TASK, length=12).on(source(), MODEL)  # a rare word is in pieces
    assert {"a", "red", "image"} <= {*task.words} and task.inputs == ("images", "times", "texts")
    read = task.read(source())
    assert read.targets["texts"].shape == (3, 12) and task.text_of(read.targets["texts"][1]) == "a blue image"
    several = task.read(source((("a red image", "red"), "a blue image", "red")), training=True)
    assert several.targets["texts"].shape == (3, 2, 12)
    assert task.caption(np.zeros((8, 8, 3)), {"texts": read.targets["texts"][0]}) == "a red image"
    assert Generate().inputs == ("images", "times", "labels") and Generate().targets == ("labels",)


def prepared(task, texts, seed=(1, 2), augment=None):
    ids = tf.constant(task.ids_of()(list(texts)))
    examples = task.prepare({"images": tf.constant(IMAGES, "float32"), "texts": ids}, tf.constant(seed))
    return task.batch(examples, augment, tf.constant(seed))[0]["texts"].numpy()


def test_some_texts_are_left_out_in_training_alone():
    """Tokens and vector are of the same ids: what is left out is left out of both."""
    task = dataclasses.replace(TASK, words=WORDS, label_drop=0.999999)
    empty = task.ids_of()([""])[0]
    assert empty.tolist() == [1, 0, 0, 0, 0, 0]
    assert (prepared(task, TEXTS, augment=Augment()) == empty).all()
    np.testing.assert_array_equal(prepared(task, TEXTS), task.ids_of()(list(TEXTS)))
    half = dataclasses.replace(task, label_drop=0.5)
    rows = [prepared(half, TEXTS, (1, i), Augment()) for i in range(40)]
    dropped = np.array([(ids == empty).all(1) for ids in rows])
    assert 0.3 < dropped.mean() < 0.7 and dropped.any(0).all() and not dropped.all(0).any()
    kept = np.where(dropped[..., None], task.ids_of()(list(TEXTS)), rows)
    assert (kept == task.ids_of()(list(TEXTS))).all()  # no row is mixed


def test_a_text_and_a_time_are_drawn_independently():
    """Which of two texts is drawn says nothing of the time."""
    task = dataclasses.replace(TASK, words=WORDS, times="uniform")
    ids = tf.constant(np.tile(task.ids_of()(["a red image", "a blue image"])[None], (2000, 1, 1)))
    examples = task.prepare({"images": tf.zeros((2000, 1, 1, 1)), "texts": ids}, tf.constant((1, 2)))
    x, _ = task.batch(examples, None, tf.constant((1, 2)))
    red, times = x["texts"].numpy()[:, 1] == WORDS.index("red"), x["times"].numpy()
    assert 0.45 < red.mean() < 0.55 and abs(times[red].mean() - times[~red].mean()) < 0.05


def test_times_are_shifted():
    one, shifted = (dataclasses.replace(TASK, words=WORDS, shift=shift) for shift in (1.0, 5.0))
    given = {"images": tf.zeros((3, 8, 8, 3)), "texts": tf.constant(one.ids_of()(list(TEXTS)))}
    times = [task.batch(task.prepare(given, (1, 2)), None, (1, 2))[0]["times"].numpy() for task in (one, shifted)]
    np.testing.assert_allclose(times[1], times[0] / (times[0] + 5 * (1 - times[0])), rtol=1e-5)
    models = [task.model(**MODEL) for task in (one, shifted)]
    assert [model.get_layer("rescale").metadata.get("shift") for model in models] == [None, 5.0]


def test_the_model_has_its_words_and_the_empty_text():
    task = dataclasses.replace(TASK, words=WORDS)
    model = task.model(**MODEL)
    words = model.get_layer("text").get_layer("words")
    assert words.metadata == {"words": list(WORDS), "empty": [1, 0, 0, 0, 0, 0]}
    assert task.fits(model) and TASK.of_model(model).words == WORDS and TASK.fits(model)
    assert not dataclasses.replace(task, length=7).fits(model) and not Generate(classes=("a",)).fits(model)
    assert not dataclasses.replace(task, words=WORDS[:-1]).fits(model)
    alone = task.model(**MODEL, cross_attention=False)
    assert alone.count_params() < model.count_params()
    seen = dataclasses.replace(task, label_drop=0.0, guidance=1.0).model(**MODEL)
    with pytest.raises(ValueError, match="label_drop=0, has no guidance"):
        keras_vit.sample(seen, "red", steps=1)


def test_a_model_of_other_words_is_no_start(tmp_path):
    one = dataclasses.replace(TASK, words=WORDS)
    one.model(**MODEL).save(tmp_path / "one.keras")
    further = {**MODEL, "weights": str(tmp_path / "one.keras")}
    assert TASK.on(source(), further).words == WORDS  # not those of the new texts
    loaded = one.model(**further)
    assert keras_vit.sample(loaded, "red", steps=1).shape == (1, 8, 8, 3)
    with pytest.raises(ValueError, match="must compute what the one to fill does: block_0 with num_heads"):
        dataclasses.replace(one, tower=dict(width=16, depth=1, num_heads=4)).model(**further)
    with pytest.raises(ValueError, match="Words must be those of the model to start from, 7: leave"):
        dataclasses.replace(one, words=(*WORDS[:4], "red", "image", "blue")).model(**further)
    with pytest.raises(ValueError, match="must predict what the one to fill does: see `predicts`"):
        one.model(**{**further, "predicts": "output"})


def test_a_start_does_not_say_how_the_task_trains(tmp_path):
    """Weights of a run with other options: the model's file says those of this task."""
    one = dataclasses.replace(TASK, words=WORDS, shift=2.0)
    one.model(**MODEL).save(tmp_path / "one.keras")
    further = {**MODEL, "weights": str(tmp_path / "one.keras")}
    assert metadata_of(one.model(**further))["shift"] == 2.0
    other = dataclasses.replace(one, shift=8.0, label_drop=0.0, guidance=1.0).model(**further)
    assert metadata_of(other)["shift"] == 8.0 and metadata_of(other)["unguided"]
    plain = dataclasses.replace(one, shift=1.0).model(**further)
    assert not {"shift", "unguided", "autoencoder", "schedule"} & {*metadata_of(plain)}


def test_files_of_runs_of_labels_are_as_before():
    values = config.to_dict(Recipe(name="a", task=Generate(), model=MODEL))["task"]
    assert not {"text", "words", "length", "tower"} & {*values} - {"text"}
    described = Recipe(name="a", task=TASK, model=MODEL)
    assert config.from_dict(config.to_dict(described)).task == TASK


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(classes=("a",)), r"With text=True there are no classes. Received: classes=\('a',\)"),
        (dict(tower={"end": 1}), "The task sets the text tower's end. Received: task.tower={'end': 1}"),
        (dict(text=False), "needs text=True. Received: "),
        (dict(length=1), "Generate.length must be at least 2"),
        (dict(shift=0.0), "Generate.shift must be at least 0.01"),
        (dict(label_drop=1.0), "Generate.label_drop must be at least 0 and below 1"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TASK, **options)


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ({}, dict(augment=Augment(flip=True)), "as of left and right. Received: augment.flip=True"),
        ({}, dict(model={**MODEL, "num_classes": 3}), "leave model.num_classes out. Received: 3"),
        ({}, dict(augment=Augment(mixup=0.2)), "do not change images to draw"),
        ({}, dict(model={**MODEL, "text": 3}), "has no option 'text'|text"),
        (dict(label_drop=0.0), {}, "with label_drop=0, guidance must be 1"),
        (dict(words=("a",), tokens="b"), {}, "`words` and `tokens` exclude each other"),
    ],
)
def test_settings_that_contradict_each_other(task, changes, message):
    task = dataclasses.replace(TASK, **task)
    with pytest.raises(ValueError, match=message):
        task.check(recipe(task=task, **changes))


def test_a_text_must_have_an_end():
    with pytest.raises(ValueError, match="A text must have an end: the table needs '<end>'. Received: a tokenizer"):
        dataclasses.replace(TASK, words=("<pad>", "a", "red")).model(**MODEL)


def test_judges_are_captioners_that_know_the_words(tmp_path):
    keras_vit.vit("mu/4", image_size=8, num_classes=3, depth=1).save(tmp_path / "no.keras")
    with pytest.raises(ValueError, match="The judge of texts must be a captioner of images, 0 to 255. Received"):
        dataclasses.replace(TASK, judge=str(tmp_path / "no.keras")).on(source(), {**MODEL, "weights": None})
    judged = dataclasses.replace(TASK, judge="easy_vqa_captions")
    with pytest.raises(ValueError, match=r"takes images of \(64, 64, 3\). Received: \(8, 8, 3\)"):
        judged.on(source(("a red circle",) * 3), {**MODEL, "weights": None})
    assert judged.on(source(("a red circle",) * 3)).words
    with pytest.raises(ValueError, match="must know the words of the data, .*'easy_vqa_captions' without 7"):
        judged.on(source(("a red circle", "7 circles", "red")))

import dataclasses
import shutil

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.config import Augment, Caption, Data, Optim, Recipe
from keras_vit.tasks.caption import starting
from keras_vit.training import devices
from tests.marks import fuller, slow
from tests.tasks.harness import run_task_test

COLORS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
MODEL = dict(variant="mu/4", image_size=8, depth=1)


@pytest.fixture
def pictures(tmp_path):
    """A folder of pictures of one color each, and a text about each."""
    lines = ["file_name,caption"]
    (tmp_path / "pictures").mkdir()
    for i in range(36):
        name = [*COLORS][i % 3]
        noise = np.random.default_rng(i).integers(-20, 20, (8, 8, 3))
        pixels = np.uint8(np.clip(np.array(COLORS[name]) + noise, 0, 255))
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{i}.png")
        lines.append(f"{i}.png,a {name} picture")
    (tmp_path / "pictures" / "metadata.csv").write_text("\n".join(lines))
    return tmp_path / "pictures"


def recipe(folder, epochs=2):
    return Recipe(
        name="written",
        task=Caption(length=6, text=dict(width=16, depth=1, num_heads=2), every=max(epochs // 2, 1)),
        model={**MODEL, "num_classes": 0, "pooling": "none"},
        data=Data(
            source=f"folder:{folder}", train="all[:50%]", validation="all[50%:75%]", test="all[75%:]", batch_size=6
        ),
        optim=Optim(epochs=epochs, warmup_epochs=0.0, learning_rate=1e-2, weight_decay=0.0),
    )


@slow
@fuller
def test_caption(tmp_path, monkeypatch, pictures):
    trained = run_task_test(recipe(pictures), tmp_path, monkeypatch, [pictures / "0.png"], exported=False)
    assert trained.task.text_of(trained.task.ids_of()("a red picture")[0]) == "a red picture"
    with pytest.raises(ValueError, match="Caption takes images alone. Received: texts='x'"):
        keras_vit.predict(trained, [pictures / "0.png"], texts="x")


@slow
@fuller
def test_a_run_is_trained_further(tmp_path, monkeypatch, pictures):
    """It begins where the run ended, is killed, resumed and exported like any other, and needs the first no more."""
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    first, _ = keras_vit.fit(recipe(pictures), tmp_path / "first", verbose=0)
    task = dataclasses.replace(recipe(pictures).task, start=str(tmp_path / "first"), text={})
    further = dataclasses.replace(recipe(pictures), task=task, model={"image_size": 8})
    still = config.override(further, {"optim.learning_rate": 0.0, "optim.epochs": 1})
    same, _ = keras_vit.fit(still, tmp_path / "same", verbose=0)
    for found, wanted in zip(same.get_weights(), first.get_weights(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    trained = run_task_test(
        further, tmp_path / "whole", monkeypatch, [pictures / "0.png"], exported=False, source=False
    )
    assert trained.task.words == keras_vit.load_run(tmp_path / "first").task.words
    shutil.rmtree(tmp_path / "first")
    starting.marks_by.cache_clear()
    assert keras_vit.predict(trained.run, [pictures / "0.png"]) and keras_vit.evaluate(trained.run)


@slow
@pytest.mark.compiled
def test_texts_are_written_about_each_picture(tmp_path, monkeypatch, pictures):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    model, history = keras_vit.fit(recipe(pictures, epochs=20), tmp_path / "run", verbose=0)
    assert history["val_exact_match"][-1] == 1 and history["val_character_error_rate"][-1] == 0
    files = [pictures / f"{i}.png" for i in range(3)]
    texts = [f"a {name} picture" for name in COLORS]
    assert [name for ((name, _),) in keras_vit.predict(tmp_path / "run", files)] == texts
    found = keras_vit.generate_text(model, files, beams=2)
    assert found.texts == texts  # by the words in the model's own file
    share = keras_vit.predict(tmp_path / "run", files[:1])[0][0][1]
    np.testing.assert_allclose(share, np.exp(keras_vit.generate_text(model, files[:1]).scores[0]), rtol=1e-4)


def test_texts_with_a_start_are_written_after_it(pictures):
    """As by a published tokenizer: what is learned is what is written, and scores know marks and padding."""
    task = Caption(length=6, text=dict(width=16, depth=1, num_heads=2), words=("<pad>", "<start>", "<end>", "a", "red"))
    ids = task.ids_of()(["a red", "a"])
    inputs, _ = task.batch({"images": 0, "texts": ids}, None, None)
    assert inputs["texts"].numpy().tolist() == [[1, 3, 4, 2, 0], [1, 3, 2, 0, 0]]
    words = task.model(**MODEL).get_layer("text").get_layer("words")
    assert [words.metadata[mark] for mark in ("start", "end", "pad")] == [1, 2, 0]
    tally = task.tally()
    tally.add({"texts": ids}, np.float32([[3, 4, 2, 0, 0, 0.9], [3, 4, 2, 0, 0, 0.9]]))
    assert tally.result() == {"exact_match": 0.5, "character_error_rate": 4 / 6}


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (dict(text={"length": 3}), {}, "The task sets the decoder's length. Received: task.text={'length': 3}"),
        (dict(classes=("a",)), {}, "Caption has no classes. Received: task.classes="),
        (
            {},
            {"model": {**MODEL, "pooling": "gap"}},
            "leave out model.num_classes and model.pooling. Received: model.pooling",
        ),
        ({}, {"augment": Augment(flip=True)}, "A flip may change the text"),
        (dict(marks=(5, 6, 7)), {}, "read from task.start: leave them out. Received: task.marks="),
        (dict(start="runs/a", marks=(5,)), {"model": {"image_size": 8}}, "are three ids.* Received: task.marks="),
    ],
)
def test_options_that_do_not_fit(task, changes, message):
    task = Caption(**task)
    with pytest.raises(ValueError, match=message):
        task.check(Recipe(**{"name": "a", "task": task, "model": MODEL, **changes}))


def test_a_new_text_begins_with_the_start_of_the_model_to_start_from():
    """Not with the tokenizer's own: transformers' issues 22768 and 27142. What is learned never has the start."""
    own = dict(words=("<pad>", "<start>", "<end>", "a", "red"), length=6)
    for more, wanted in (({}, [1, 3, 4, 2, 0]), ({"start": "x", "marks": (2, 2, 0)}, [2, 3, 4, 2, 0])):
        task = Caption(**own, **more)
        inputs, words = task.batch({"images": 0, "texts": task.ids_of()(["a red"])}, None, None)
        assert inputs["texts"].numpy().tolist() == [wanted]
        assert words.numpy().tolist() == [[3, 4, 2, -1, -1]]


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (dict(start="x", text={"depth": 1}), {"model": {}}, "leave task.text out; .* Received: task.text={'depth': 1}"),
        (dict(start="x"), {}, "`model` may have image_size. Received: .*'variant': 'mu/4'"),
    ],
)
def test_a_model_to_start_from_has_its_own_sizes(task, changes, message):
    with pytest.raises(ValueError, match=message):
        Caption(**task).check(Recipe(**{"name": "a", "task": Caption(**task), "model": MODEL, **changes}))

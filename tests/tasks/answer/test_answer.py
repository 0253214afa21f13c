import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.checkpoints import own_models
from keras_vit.config import Answer, Augment, Data, Optim, Recipe
from keras_vit.data.memory import Source
from keras_vit.data.readers.texts import together
from keras_vit.runs import looking
from keras_vit.training import devices
from tests.marks import fuller, slow
from tests.tasks.harness import run_task_test

COLORS = {"red": (220, 20, 20), "blue": (20, 20, 220)}
MODEL = dict(variant="mu/4", image_size=8, depth=1, num_classes=4)


@pytest.fixture
def asked(tmp_path):
    """A folder of pictures of one color each, with three questions in three rows."""
    lines = ["file_name,question,answer"]
    (tmp_path / "asked").mkdir()
    for i in range(24):
        name = [*COLORS][i % 2]
        noise = np.random.default_rng(i).integers(-20, 20, (8, 8, 3))
        Image.fromarray(np.uint8(np.clip(np.array(COLORS[name]) + noise, 0, 255))).save(tmp_path / "asked" / f"{i}.png")
        lines += [f"{i}.png,what color is it?,{name}"]
        lines += [f"{i}.png,is it {color}?,{'yes' if color == name else 'no'}" for color in COLORS]
    (tmp_path / "asked" / "metadata.csv").write_text("\n".join(lines))
    return tmp_path / "asked"


def recipe(folder, epochs=2):
    return Recipe(
        name="asked",
        task=Answer(length=8),
        model=MODEL,
        data=Data(
            source=f"folder:{folder}", train="all[:50%]", validation="all[50%:75%]", test="all[75%:]", batch_size=12
        ),
        optim=Optim(epochs=epochs, warmup_epochs=0.0, learning_rate=5e-3, weight_decay=0.0),
    )


@fuller
def test_answer(tmp_path, monkeypatch, asked):
    trained = run_task_test(recipe(asked), tmp_path, monkeypatch, [asked / "0.png"], texts="is it red?", source=False)
    assert trained.class_names == ("blue", "no", "red", "yes")
    with pytest.raises(ValueError, match="Answer takes a text with each image: pass `texts`. Received: texts=None"):
        keras_vit.predict(trained, [asked / "0.png"])
    drawn = looking.explain(trained, [asked / "0.png"], tmp_path / "drawn", texts="is it red?")
    assert [path.name for path in drawn] == ["attention.png", "curves.png"]
    with pytest.raises(ValueError, match="at most 8 tokens: shorten it"):
        keras_vit.predict(trained, [asked / "0.png"], texts="is it " * 8)


@slow
@pytest.mark.compiled
def test_another_picture_and_another_question_change_the_answer(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    _, history = keras_vit.fit(recipe(asked, epochs=30), tmp_path / "run", verbose=0)
    assert history["val_accuracy"][-1] == 1
    files = [asked / "0.png", asked / "1.png"] * 3
    texts = [text for text in ("what color is it?", "is it red?", "is it blue?") for _ in range(2)]
    found = keras_vit.predict(tmp_path / "run", files, top=1, texts=texts)
    assert [name for ((name, _),) in found] == ["red", "blue", "yes", "no", "no", "yes"]


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (dict(teacher="x", distill="soft"), {}, "Answer has no teacher. Received: task.distill='soft'"),
        ({}, {"augment": Augment(flip=True)}, "A flip may change the answer"),
        ({}, {"model": {**MODEL, "pooling": "gap"}}, "pooling"),
    ],
)
def test_options_that_do_not_fit(task, changes, message):
    task = Answer(**task)
    with pytest.raises(ValueError, match=message):
        task.check(Recipe(**{"name": "a", "task": task, "model": MODEL, **changes}))


def test_answers_that_differ_in_capitals_alone_are_said():
    source = Source(np.zeros((2, 8, 8, 3), "uint8"), {"texts": together([("a",), ("b",)])}, ("Yes", "no", "yes"))
    with pytest.warns(UserWarning, match="capitals alone are different classes, such as 'Yes' and 'yes'"):
        Answer().on(source)


def test_a_model_to_start_from_has_its_own_words(tmp_path, monkeypatch):
    source = Source(np.zeros((2, 8, 8, 3), "uint8"), {"texts": together([("zebra",), ("quiet",)])}, ("no", "yes"))
    words = ("<pad>", "<end>", "<unknown>", "a", "b")
    Answer(words=words, length=8).model(**MODEL).save(tmp_path / "model.keras")
    weights = str(tmp_path / "model.keras")
    about = {"weights": weights, "num_classes": None}
    assert Answer(length=8).on(source, about).words == words
    started = Answer(words=words, length=8).model(weights=weights)
    assert Answer().of_model(started).words == words  # which its file keeps too
    with pytest.raises(ValueError, match="as in the model to start from, 8. Received: task.length=9"):
        Answer(words=words, length=9).model(weights=weights)
    with pytest.raises(ValueError, match="Words must be those of the model to start from, 5: .* Received: 6 others"):
        Answer(words=(*words, "c"), length=8).model(weights=weights)
    monkeypatch.setattr(own_models, "trained_in", lambda address: None)
    with pytest.raises(ValueError, match="needs the tokenizer .* Received: none with 'hf://x/y'"):
        Answer(length=8).on(source, {**about, "weights": "hf://x/y"})

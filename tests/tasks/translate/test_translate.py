import csv
import dataclasses
import json
import warnings

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.config import Augment, Caption, Data, Optim, Recipe, Translate
from keras_vit.data.memory import Source
from keras_vit.runs import looking
from keras_vit.training import devices
from tests.marks import fuller, slow
from tests.tasks.harness import run_task_test

WORDS = {"rot": "red", "blau": "blue", "alt": "old", "neu": "new", "Haus": "house", "Hund": "dog"}
SPLITS = dict(train="all[:67%]", validation="all[67%:]", test="all[67%:]")


@pytest.fixture
def table(tmp_path):
    """A table of phrases of two words, with their translations."""
    pairs = [(f"{a} {b}", f"{WORDS[a]} {WORDS[b]}") for a in WORDS for b in WORDS]
    with open(tmp_path / "phrases.csv", "w", newline="") as file:
        csv.writer(file).writerows([("german", "english"), *pairs])
    return tmp_path / "phrases.csv"


def recipe(table, epochs=2, **task):
    return Recipe(
        name="phrases",
        task=Translate(length=6, text=dict(width=16, depth=1, num_heads=2), every=max(epochs // 2, 1), **task),
        model=dict(width=16, depth=1, num_heads=2, dropout=0.1),
        data=Data(source=f"table:{table}", columns={"sources": "german", "texts": "english"}, batch_size=6, **SPLITS),
        optim=Optim(epochs=epochs, warmup_epochs=0.0, learning_rate=1e-2, weight_decay=0.0),
    )


@slow
@fuller
def test_translate(tmp_path, monkeypatch, table):
    texts = ["rot Haus", "neu Hund"]
    trained = run_task_test(
        recipe(table), tmp_path, monkeypatch, texts, whole=True, exported=False, source=False, shown=False
    )
    again = keras_vit.from_pretrained(trained.run, part="both")
    assert keras_vit.generate_text(again, texts).texts == [
        "" if name == "(nothing)" else name for ((name, _),) in keras_vit.predict(trained, texts)
    ]


@slow
@pytest.mark.compiled
def test_phrases_are_learned(tmp_path, monkeypatch, table):
    """Phrases that were not in the training data are translated, in every way to ask for it."""
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    asked = config.override(recipe(table, 60), {"model.dropout": 0.0})
    model, history = keras_vit.fit(asked, tmp_path / "run", verbose=0)
    (measured,) = keras_vit.evaluate(tmp_path / "run", "all[:67%]").values()
    assert measured["exact_match"] >= 0.9 and history["val_exact_match"][-1] >= 0.3
    texts = ["rot Hund"]
    found = keras_vit.predict(tmp_path / "run", texts, csv=tmp_path / "a.csv", json=tmp_path / "a.json")
    written = keras_vit.generate_text(model, texts[0])
    assert found[0][0][0] == written.texts[0]
    np.testing.assert_allclose(found[0][0][1], np.exp(written.scores[0]), rtol=1e-4)
    (row,) = json.loads((tmp_path / "a.json").read_text())
    assert row["text"] == "rot Hund" and row["name"] == written.texts[0]
    assert (tmp_path / "a.csv").read_text().startswith("text,name,value\nrot Hund,")
    ids = keras_vit.load_run(tmp_path / "run").task.ids_of()(texts)
    np.testing.assert_array_equal(keras_vit.generate_text(model, ids).ids, written.ids)
    assert looking.explain(tmp_path / "run", texts, tmp_path / "seen")[0].name == "attention.png"
    refused(tmp_path / "run", model)


def refused(run, model):
    wrong = [
        (lambda: keras_vit.predict(run, ["rot"], texts="x"), "Translate takes images alone. Received: texts='x'"),
        (lambda: keras_vit.predict(run, ["rot"], to=run / "to"), "`to` is for tasks that make files"),
        (lambda: keras_vit.predict(run, []), "Each text must have a word. Received: none"),
        (lambda: keras_vit.predict(run, [" "]), "Each text must have a word. Received: ' '"),
        (lambda: keras_vit.predict(run, ["rot " * 9]), "A text must have at most 6 tokens"),
        (lambda: keras_vit.generate_text(model), "must be texts, for a model that translates. Received: .*NoneType"),
        (lambda: keras_vit.generate_text(model, []), "must be texts with a word each, .* Received: none"),
        (lambda: keras_vit.generate_text(model, [3]), "must be texts with a word each, .* Received: 3"),
        (lambda: keras_vit.report(run), "A report needs a model of images. Received: Translate"),
        (lambda: keras_vit.export_tflite(model, run / "a.tflite"), "For a captioner, see export_writer"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()


@slow
def test_arrays_of_texts_and_of_ids(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    asked = recipe("x", 1)
    texts = ([*WORDS] * 2, [[word, "thing"] for word in WORDS.values()] * 2)
    model, _ = keras_vit.fit(asked, tmp_path / "texts", train=texts, validation=texts, verbose=0)
    assert {"rot", "red", "thing"} & set(model.get_layer("source").get_layer("words").metadata["words"])
    ids = np.tile(np.int32([[3, 4, 1, 0, 0, 0]]), (12, 1))
    asked = config.override(asked, {"task.vocabulary": 9})
    keras_vit.fit(asked, tmp_path / "ids", train=(ids, ids), validation=(ids, ids), verbose=0)
    with pytest.raises(ValueError, match=r"Arrays must be a pair \(sources, texts\)"):
        keras_vit.fit(asked, tmp_path / "a", train=[ids], validation=[ids], verbose=0)
    with pytest.raises(ValueError, match="Sources must be a list of strings. Received: 3"):
        keras_vit.fit(asked, tmp_path / "a", train=(3, ids), validation=(3, ids), verbose=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": Translate(classes=("a",))}, "Translate has no classes"),
        ({"task": Translate(text={"length": 3})}, "The task sets the decoder's length"),
        ({"augment": Augment(flip=True)}, "Texts are no images: leave augmentation out. Received: augment.flip=True"),
        ({"augment": Augment(mixup=0.2)}, "Texts are not blended"),
        ({"optim": Optim(lora=2)}, "trains all of its model: leave it out. Received: optim.lora=2"),
        ({"model": {"image_size": 8}}, "`model` of Translate is its encoder's: width.*Received: model.image_size=8"),
        ({"data": Data(fold=(1, 5))}, "Texts have no folds"),
    ],
)
def test_options_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        config.check_recipe(Recipe(**{"name": "a", "task": Translate(), "model": {}, **changes}))


def test_data_of_another_kind(table):
    texts = np.array([("a",), ("b",)], object)
    with pytest.raises(ValueError, match="Translate reads texts, .* Received: data with images"):
        Translate().on(Source(np.zeros((2, 8, 8, 3), "uint8"), {"texts": texts}))
    with pytest.raises(ValueError, match="'digits' has no texts"):
        keras_vit.fit(
            config.override(recipe(table), {"data.source": "digits", "data.columns": None}),
            table.parent / "a",
            verbose=0,
        )
    captions = Recipe(name="a", task=Caption(), model=dict(variant="mu/4", image_size=8), data=recipe(table).data)
    with pytest.raises(ValueError, match="is for Translate: other tasks need images"):
        keras_vit.fit(captions, table.parent / "a", verbose=0)


def test_other_words_with_the_same_ids_are_other_data(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    sources, texts = ["rot", "blau", "alt", "neu"] * 3, ["red", "blue", "old", "new"] * 3
    others = ["weit", "blau", "alt", "neu"] * 3
    asked = dataclasses.replace(recipe("none.csv", 1), data=Data(source="", batch_size=6))

    def fit(sources, asked=asked):
        with warnings.catch_warnings():  # both splits are the same
            warnings.simplefilter("ignore")
            keras_vit.fit(asked, tmp_path / "run", train=(sources, texts), validation=(sources, texts), verbose=0)

    fit(sources)
    with pytest.raises(ValueError, match="contains a run on other data.* Different: words: "):
        fit(others)
    with pytest.raises(ValueError, match="must both be strings, or both ids. Received: ids and strings"):
        fit(np.ones((12, 6), "int32"))
    with pytest.raises(ValueError, match="Texts are no images: data.resize must be None. Received: "):
        fit(sources, config.override(asked, {"data.resize": "pad"}))
    with pytest.raises(ValueError, match="Each text must have a word. Received: '  '"):
        looking.explain(tmp_path / "run", ["  "], tmp_path / "seen")
    assert not (tmp_path / "seen").exists()

import types

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Generate
from keras_vit.runs import trained as trained_runs
from keras_vit.runs.sampled import draw, draws_images
from tests.commands.helpers import run as command
from tests.dits import LENGTH, WORDS, of_texts, small
from tests.marks import slow

NAMES = ("cat", "dog", "7")


@pytest.fixture
def model():
    return small()


def trained(model):
    task = Generate(classes=NAMES, steps=2, guidance=1.5)
    return types.SimpleNamespace(model=model, class_names=NAMES, task=task)


def test_pictures_are_those_of_sample(model, tmp_path):
    assert draws_images(trained(model))
    paths = [*draw(trained(model), ["dog", "0"], 2, tmp_path / "a", seed=3)]
    assert [path.name for path in paths] == ["dog_000.png", "dog_001.png", "cat_000.png", "cat_001.png"]
    expected = keras_vit.sample(model, [1, 1, 0, 0], steps=2, guidance=1.5, seed=3)
    for path, image in zip(paths, expected):
        np.testing.assert_array_equal(np.asarray(Image.open(path)), image[..., 0])
    every = [path.name for path in draw(trained(model), (), 1, tmp_path / "b", steps=1)]
    assert every == ["cat_000.png", "dog_000.png", "7_000.png"]
    [none] = draw(trained(model), ["none"], 1, tmp_path / "c", steps=1)
    assert none.name == "none_000.png"
    alike = trained(model)
    alike.class_names = ("a/b", "a b", "+")
    model.get_layer("rescale").metadata["labels"] = list(alike.class_names)
    found = [path.name for path in draw(alike, (), 1, tmp_path / "d", steps=1)]
    assert found == ["0000_a_b_000.png", "0001_a_b_000.png", "0002___000.png"]


@pytest.mark.parametrize(
    ("classes", "count", "error", "message"),
    [
        (
            ["horse"],
            1,
            ValueError,
            "`labels` must be classes, 0 to 2, 'cat', .*; 3 or None.* Received: 'horse'",
        ),
        (["cat", "0"], 1, ValueError, r"Each class must be named once. Received: \['cat', '0'\]"),
        (["cat"], 0, ValueError, "`count` must be a positive integer. Received: count=0"),
        (["dog"], 1, FileExistsError, "dog_000.png' exists. Choose another folder."),
    ],
)
def test_bad_input_writes_nothing(classes, count, error, message, model, tmp_path):
    (tmp_path / "dog_000.png").write_bytes(b"mine")
    with pytest.raises(error, match=message):
        [*draw(trained(model), classes, count, tmp_path)]
    assert [path.name for path in tmp_path.iterdir()] == ["dog_000.png"]
    with pytest.raises(ValueError, match="`to` must be a folder. Received: to='.*dog_000.png'"):
        [*draw(trained(model), ["cat"], 1, tmp_path / "dog_000.png")]


def test_command(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trained_runs, "load_run", lambda target, job=None: trained(model))
    command("predict", "x", "--class", "7", "dog", "--count", "2", "--steps", "1", "--seed", "5", "--to", str(tmp_path))
    names = ["7_000.png", "7_001.png", "dog_000.png", "dog_001.png"]
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / name) for name in names]
    for words, message in (
        (["a.png", "--to", str(tmp_path)], "Generate draws images from noise. Received: images"),
        (["--class", "cat"], "--to must be a folder for the images that are drawn. Received: none"),
        (
            ["--class", "cat", "--to", str(tmp_path), "--guidance", "-1"],
            "`guidance` must be a finite number, 0 or more",
        ),
        (["--class", "cat", "--to", str(tmp_path), "--steps", "0"], "`steps` must be a positive integer"),
    ):
        command("predict", "x", *words, status=2)
        assert message in capsys.readouterr().err
    assert len([*tmp_path.iterdir()]) == 4


def of_words():
    task = Generate(text=True, words=tuple(WORDS), length=LENGTH, steps=2, guidance=1.5)
    return types.SimpleNamespace(model=of_texts(), class_names=(), task=task)


def test_pictures_of_texts(tmp_path):
    run = of_words()
    assert draws_images(run)
    paths = [*draw(run, texts=["a red cat", "Blue"], count=2, folder=tmp_path, seed=3)]
    assert [path.name for path in paths] == [f"{name}_00{i}.png" for name in ("a_red_cat", "Blue") for i in (0, 1)]
    texts = ["a red cat", "a red cat", "blue", "blue"]
    for path, image in zip(paths, keras_vit.sample(run.model, texts, steps=2, guidance=1.5, seed=3)):
        np.testing.assert_array_equal(np.asarray(Image.open(path)), image[..., 0])
    before = len([*tmp_path.iterdir()])
    for options, message in (
        ({}, "draws texts, not classes: say what to draw. Received: no text"),
        ({"classes": ["cat"]}, r"draws texts, not classes: say what to draw. Received: classes=\['cat'\]"),
        ({"texts": ["blue", "blue"]}, r"Each text must be named once. Received: \['blue', 'blue'\]"),
        ({"texts": [" "]}, "Each text must be a string with a word, .*Received: ' '"),
    ):
        with pytest.raises(ValueError, match=message):
            [*draw(run, **options, folder=tmp_path)]
    with pytest.raises(ValueError, match=r"draws classes: leave texts out. Received: \['blue'\]"):
        [*draw(trained(small()), texts=["blue"], folder=tmp_path)]
    assert len([*tmp_path.iterdir()]) == before


def test_command_with_a_text(tmp_path, capsys, monkeypatch):
    run = of_words()
    monkeypatch.setattr(trained_runs, "load_run", lambda target, job=None: run)
    command("predict", "x", "--text", "a red cat", "--count", "2", "--steps", "1", "--to", str(tmp_path))
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / f"a_red_cat_00{i}.png") for i in (0, 1)]
    for words, message in (
        (["--to", str(tmp_path)], "say what to draw. Received: no text"),
        (["--class", "cat", "--to", str(tmp_path)], "draws texts, not classes"),
        (["--text", "blue"], "--to must be a folder"),
        (["--text", "blue", "a.png", "--to", str(tmp_path)], "Generate draws images from noise. Received: images"),
        (["--text", "", "--to", str(tmp_path)], "Each text must be a string with a word"),
    ):
        command("predict", "x", *words, status=2)
        assert message in capsys.readouterr().err
    run.task, run.model = Generate(classes=NAMES), small()
    run.class_names = NAMES
    command("predict", "x", "--text", "blue", "--to", str(tmp_path), status=2)
    assert "Generate draws images from noise. Received: --text" in capsys.readouterr().err
    assert len([*tmp_path.iterdir()]) == 2


def test_options_of_drawing_are_for_models_that_draw(tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(b"")
    command("predict", "mnist", str(tmp_path / "a.png"), "--count", "3", "--class", "7", status=2)
    assert "--class, --count: only models that draw images, as of Generate, take this. Received: Classify" in (
        capsys.readouterr().err
    )


@slow
def test_the_shipped_model_draws_the_digits_that_are_asked_for():
    digits = np.arange(50) % 10
    images = keras_vit.sample(keras_vit.from_pretrained("mnist_dit"), digits, batch_size=50)
    read = keras_vit.from_pretrained("mnist").predict(images.astype("float32"), verbose=0).argmax(-1)
    assert (read == digits).mean() > 0.95

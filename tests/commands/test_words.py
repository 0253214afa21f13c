import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.checkpoints import pretrained
from tests import captions
from tests.commands.helpers import run as command
from tests.towers import WORDS, two_towers

CLASSES = ["--classes", "cat", "red car"]


@pytest.fixture
def model(monkeypatch):
    """Two towers by the name `both`, those with independent probabilities by the name `sigmoid`."""
    made = {"both": two_towers(words=WORDS), "sigmoid": two_towers(bias=-1.0, words=WORDS)}
    monkeypatch.setattr(pretrained, "from_pretrained", lambda name, part: made[name])
    return made["both"]


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos").mkdir()
    for i in range(4):
        pixels = np.random.default_rng(i).integers(0, 256, (12, 8, 3))
        keras.utils.save_img(tmp_path / "photos" / f"{i}.png", pixels, scale=False)
    return tmp_path / "photos"


def test_images_for_a_text(model, photos, tmp_path, capsys):
    index = keras_vit.embed_folder(photos, model, tmp_path / "photos.npz")
    wanted = keras_vit.nearest(index, ["a red car", "a dog"], 2, model=model, tokens=model)
    command("nearest", str(index), "--text", "a red car", "a dog", "--k", "2", "--model", "both")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a red car:" and lines[3] == "a dog:"
    assert [line.split("  ")[-1] for line in lines[1:3] + lines[4:]] == [path for each in wanted for path, _ in each]
    command("nearest", str(index), "a.png", "--text", "a dog", status=2)
    assert "Pass images or --text. Received: both, such as 'a.png' and 'a dog'" in capsys.readouterr().err


def test_classes_of_images(model, photos, tmp_path, capsys):
    command("zero-shot", str(photos), *CLASSES, "--model", "both", "--top", "1", "--to", str(tmp_path / "a.keras"))
    out, err = capsys.readouterr()
    found = keras_vit.zero_shot(model, sorted(photos.iterdir()), ["cat", "red car"])
    best = [found.classes[row.argmax()] for row in found.probabilities]
    first, *lines = out.splitlines()
    assert first == str(tmp_path / "a.keras") and "independent" not in err
    assert [line.split(": ")[1].rpartition(" ")[0] for line in lines] == best
    command("predict", str(tmp_path / "a.keras"), str(photos), "--top", "1")
    assert capsys.readouterr().out.splitlines()[0].split(": ")[1].startswith(best[0])


def test_independent_probabilities_are_said_to_be(model, photos, capsys):
    command("zero-shot", str(photos), *CLASSES, "--model", "sigmoid", "--prompts", "a {}", "{}")
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4 and "Each probability is independent of the others" in err


def test_a_bad_file_does_not_end_the_others(model, photos, capsys):
    (photos / "1.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="Left out 1 of 4 images"):
        command("zero-shot", str(photos), *CLASSES, "--model", "both", status=1)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3 and err.endswith("error: 1 of 4 images cannot be read.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["PHOTOS", *CLASSES], "--model is missing"),
        (["PHOTOS", "--model", "both"], "`classes` must be two names or more"),
        ([*CLASSES, "--model", "both"], "At least one image file is needed"),
        ([*CLASSES, "--model", "both", "--to", "a.h5"], "--to must end in .keras"),
        (["PHOTOS", *CLASSES, "--model", "both", "--prompts", "a photo"], "Each prompt must have {}"),
    ],
)
def test_bad_words_are_one_sentence(words, said, model, photos, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command("zero-shot", *[str(photos) if word == "PHOTOS" else word for word in words], status=2)
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_captions(photos, tmp_path, capsys):
    """A captioner's own file, and published files with a tokenizer."""
    table = ["<unknown>", "<pad>", "<start>", "<end>", *"abcdefghijklmnopqrstuvwxyz"]
    made = captions.small(metadata={"words": table})
    made.save(tmp_path / "writer.keras")
    (photos / "9.png").write_text("no image")
    command("caption", str(photos), "--model", str(tmp_path / "writer.keras"), "--length", "8", status=1)
    out, err = capsys.readouterr()
    good = sorted(photos.iterdir())[:4]
    wanted = keras_vit.generate_text(made, good, length=8).texts
    assert out.splitlines() == [f"{file}: {text}" for file, text in zip(good, wanted)]
    assert "1 of 5 images cannot be read" in err
    command("caption", str(photos), "--model", "mnist", status=2)
    assert "--model must write about images, as BLIP or a run of Caption. Received: 'mnist'" in capsys.readouterr().err
    command("caption", str(photos), status=2)
    assert "--model is missing" in capsys.readouterr().err

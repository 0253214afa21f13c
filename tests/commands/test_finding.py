import csv
import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from tests import owls
from tests.commands.helpers import run as command
from tests.towers import WORDS

CLASSES = ["--classes", "cat", "red car"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Returns a folder with a detector, and with photographs of which one cannot be read."""
    place = tmp_path_factory.mktemp("finding")
    owls.small(True, words=WORDS).save(place / "owl.keras")
    (place / "photos").mkdir()
    for i in range(2):
        pixels = np.random.default_rng(i).integers(0, 256, (12, 8, 3))
        keras.utils.save_img(place / "photos" / f"{i}.png", pixels, scale=False)
    return place


def test_boxes_of_images(place, tmp_path, capsys):
    photos, model = place / "photos", str(place / "owl.keras")
    files = ["--json", str(tmp_path / "a.json"), "--csv", str(tmp_path / "a.csv"), "--to", str(tmp_path / "a.keras")]
    command("find", str(photos), *CLASSES, "--model", model, "--threshold", "0.01", *files)
    wanted = keras_vit.detect(owls.shared(True), sorted(photos.iterdir()), ["cat", "red car"], WORDS, threshold=0.01)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == str(tmp_path / "a.keras") and keras.models.load_model(first).output_shape == (None, 4, 6)
    assert all(line.startswith(str(photos)) and one.classes[0] in line for line, one in zip(lines, wanted, strict=True))
    rows = json.loads((tmp_path / "a.json").read_text())
    assert [row["category"] for row in rows] == [name for one in wanted for name in one.classes]
    left, top, right, bottom = wanted[0].boxes[0]
    np.testing.assert_allclose(rows[0]["bbox"], [left, top, right - left, bottom - top], atol=0.01)
    with open(tmp_path / "a.csv", encoding="utf-8") as file:
        assert [row["width"] for row in csv.DictReader(file)] == [str(row["bbox"][2]) for row in rows]


def test_nothing_and_bad_files(place, tmp_path, capsys):
    (tmp_path / "bad.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="Left out 1 of 3 images"):
        command("find", str(place / "photos"), str(tmp_path / "bad.png"), *CLASSES, "--model",
                str(place / "owl.keras"), "--threshold", "0.99", status=1)  # fmt: skip
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()] == ["nothing", "nothing"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["PHOTOS", *CLASSES], "--model is missing"),
        (["PHOTOS", *CLASSES, "--model", "mnist"], "`model` must find what texts name"),
        ([*CLASSES, "--model", "mnist", "--to", "a.h5"], "--to must end in .keras"),
        ([*CLASSES, "--model", "mnist"], "At least one image file is needed"),
    ],
)
def test_bad_words_are_one_sentence(words, said, place, capsys):
    command("find", *[str(place / "photos") if word == "PHOTOS" else word for word in words], status=2)
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1

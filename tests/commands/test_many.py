"""Commands for many images print as they go, write tables, and keep what was done before Ctrl-C."""

import csv
import json
import warnings

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.checkpoints import pretrained
from keras_vit.commands import features, finding, people, words
from keras_vit.preparing.preprocessing import Preparation
from keras_vit.utils import images
from tests import captions, owls, poses
from tests.marks import slow
from tests.towers import WORDS, two_towers

COUNT, STOPPED = 40, "37.png"  # which is the 39th


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a folder of images in two classes, an index of it, and models."""
    place, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(0)
    for i in range(COUNT):
        (place / "photos" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (12, 8, 3))
        keras.utils.save_img(place / "photos" / "ab"[i % 2] / f"{i:02}.png", pixels, scale=False)
    table = ["<unknown>", "<pad>", "<start>", "<end>", *"abcdefghijklmnopqrstuvwxyz"]
    captions.small(metadata={"words": table}).save(place / "writer.keras")
    poses.small().save(place / "pose.keras")
    owls.small(words=WORDS).save(place / "owl.keras")
    two_towers(words=WORDS).save(place / "towers.keras")
    entries = [{"image_id": f"{i:02}.png", "category": "person", "bbox": [0, 0, 8, 12]} for i in range(COUNT)]
    (place / "boxes.json").write_text(json.dumps(entries))
    model = two_towers(words=WORDS)
    keras_vit.embed_folder(place / "photos", model, place / "all.npz")
    return place


CALLS = {
    "find": lambda place, **more: finding.print_found(
        [place / "photos"], classes=["cat"], model=str(place / "owl.keras"), threshold=0.0, **more
    ),
    "caption": lambda place, **more: words.print_captions(
        [place / "photos"], model=str(place / "writer.keras"), length=6, **more
    ),
    "zero-shot": lambda place, **more: words.print_zero_shot(
        [place / "photos"], classes=["cat", "red car"], model="both", top=1, **more
    ),
    "nearest": lambda place, **more: features.print_nearest(
        place / "all.npz", [place / "photos"], k=2, model=two_towers(words=WORDS), **more
    ),
    "knn": lambda place, **more: features.print_votes(
        place / "all.npz", [place / "photos"], k=3, model=two_towers(words=WORDS), top=1, **more
    ),
    "poses": lambda place, **more: people.print_poses(
        [place / "photos"], model=str(place / "pose.keras"), boxes=place / "boxes.json", **more
    ),
}


SEVERAL = {"nearest": 2, "find": 4}  # answers of an image: the nearest two, and a box of each patch


def rows_in(path):
    with open(path, encoding="utf-8") as file:
        return [*csv.DictReader(file)]


@pytest.fixture(autouse=True)
def towers(monkeypatch):
    usual = pretrained.from_pretrained
    made = lambda name, *given, **more: two_towers(words=WORDS) if name == "both" else usual(name, *given, **more)  # noqa: E731
    monkeypatch.setattr(pretrained, "from_pretrained", made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@slow
@pytest.mark.parametrize("name", CALLS)
def test_tables_have_what_is_printed(name, place, tmp_path, capsys):
    paths = {"json": tmp_path / "a.json", "csv": tmp_path / "a.csv"}
    CALLS[name](place, **paths)
    out = capsys.readouterr().out
    entries = json.loads(paths["json"].read_text())
    rows = rows_in(paths["csv"])
    assert len(entries) == len(rows) == COUNT * SEVERAL.get(name, 1)
    assert [entry["image_id"] for entry in entries] == [row["image_id"] for row in rows]
    assert all(entry["image_id"] in out for entry in entries)
    with pytest.raises(FileExistsError, match="a.json' exists"):
        CALLS[name](place, **paths)


@pytest.mark.parametrize("name", CALLS)
def test_what_was_done_before_ctrl_c_is_there(name, place, tmp_path, monkeypatch, capsys):
    def stopping(read, at):
        def some(*given, **more):
            if STOPPED in str(given[at]):
                raise KeyboardInterrupt
            return read(*given, **more)

        return some

    for home, reader, at in ((Preparation, "__call__", 1), (Preparation, "sized", 1), (images, "read_pixels", 0)):
        monkeypatch.setattr(home, reader, stopping(getattr(home, reader), at))
    with pytest.raises(KeyboardInterrupt):
        CALLS[name](place, csv=tmp_path / "a.csv")
    out, err = capsys.readouterr()
    rows = rows_in(tmp_path / "a.csv")
    done = {row["image_id"] for row in rows}
    assert 16 <= len(done) < COUNT and all(each in out for each in done)
    assert "a.csv' has what was done until then" in err

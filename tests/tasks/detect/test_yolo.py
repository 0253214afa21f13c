"""A folder in YOLO's layout, from training to predictions in YOLO's format."""

import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")
pytest.importorskip("pycocotools")

import keras_vit
from keras_vit.config import Data, Detect, Optim, Recipe, Segment
from keras_vit.data import sources
from keras_vit.training import devices
from tests.marks import slow


@pytest.fixture
def folder(tmp_path):
    """Images of a bright square each, all but the first with a box or, in `polygons.yaml`, a polygon around it."""
    rng, folder = np.random.default_rng(0), tmp_path / "set"
    for i in range(6):
        split, (top, left) = ("train", "val")[i % 3 == 0], rng.integers(0, 8, 2)
        image = rng.integers(0, 100, (20, 24, 3), "uint8")
        image[top : top + 8, left : left + 8] = 220
        places = np.array([[left, top], [left + 8, top], [left + 8, top + 8], [left, top + 8]]) / (24, 20)
        box = (*places.mean(0), *(places[2] - places[0]))
        for kind, numbers in (("", box), ("polygons/", places.ravel())):
            for name in ("images", "labels"):
                (folder / f"{kind}{name}" / split).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / f"{kind}images" / split / f"{i}.png")
            row = " ".join(map(str, (i % 2, *numbers))) if i else ""
            (folder / f"{kind}labels" / split / f"{i}.txt").write_text(row)
    for kind in ("", "polygons/"):
        (folder / kind / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [odd, square]\n")
    return folder


def trained(folder, task, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    recipe = Recipe(
        name="squares",
        task=task,
        model=dict(variant="mu/4", image_size=16, depth=1),
        data=Data(source=f"folder:{folder}", train="train", validation="val", test="val", batch_size=2),
        optim=Optim(epochs=1, warmup_epochs=0.5),
    )
    keras_vit.fit(recipe, tmp_path / "run", verbose=0)
    return tmp_path / "run"


@slow
def test_boxes(folder, tmp_path, monkeypatch):
    task = Detect(classes=("odd", "square"), most=6, head={"kind": "points", "width": 8}, score=0.01)
    run = trained(folder, task, tmp_path, monkeypatch)
    assert 0 <= next(iter(keras_vit.evaluate(run).values()))["map"] <= 1
    keras_vit.predict(run, folder / "images" / "val", to=folder / "labels" / "found", json=folder / "a.json")
    rows = {path.stem: path.read_text().split("\n")[:-1] for path in (folder / "labels" / "found").iterdir()}
    found = json.loads((folder / "a.json").read_text())
    assert set(rows) == {"0", "3"} and sum(map(len, rows.values())) == len(found) > 0
    with pytest.raises(FileExistsError, match="exists. Choose another folder"):
        keras_vit.predict(run, folder / "images" / "val", to=folder / "labels" / "val")

    for name, lines in rows.items():  # labels are boxes without a score
        Image.new("RGB", (24, 20)).save(folder / "images" / f"{name}.png")
        text = "".join(line.rsplit(" ", 1)[0] + "\n" for line in lines)
        (folder / "labels" / f"{name}.txt").write_text(text)
    (folder / "again.yaml").write_text("train: list.txt\nnames: [odd, square]\n")
    (folder / "list.txt").write_text("images/0.png\nimages/3.png\n")
    source = sources.load(Data(source=f"folder:{folder / 'again.yaml'}"), "train", ("bounding_boxes",))
    for path, boxes in zip(source.images, source.targets["bounding_boxes"]):
        ours = [entry for entry in found if path.endswith(entry["image_id"])]
        boxes = boxes[boxes[:, 4] >= 0]
        assert [task.classes[int(kind)] for kind in boxes[:, 4]] == [entry["category"] for entry in ours]
        top, left, bottom, right = (boxes[:, :4] * (20, 24, 20, 24)).T
        for box, (x, y, width, height) in zip(zip(left, top, right, bottom), [entry["bbox"] for entry in ours]):
            np.testing.assert_allclose(box, np.clip((x, y, x + width, y + height), 0, (24, 20, 24, 20)), atol=0.01)


def test_polygons(folder, tmp_path, monkeypatch):
    run = trained(folder / "polygons", Segment(classes=("background", "odd", "square")), tmp_path, monkeypatch)
    assert 0 < next(iter(keras_vit.evaluate(run).values()))["mean_iou"] <= 1

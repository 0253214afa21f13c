"""The package's tasks, taken through everything that is done with a task."""

import csv
import dataclasses
import json
import shutil

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Augment, Classify, ClassifyClips, Data, Detect, Optim, Recipe, Regress, Restore, Segment
from keras_vit.export import runtimes
from keras_vit.runs import predictions
from keras_vit.training import history
from tests import owls
from tests.clipfiles import animated, moving
from tests.marks import QUICKLY, fuller, slow
from tests.tasks.harness import run_task_test
from tests.towers import WORDS

SIZES = ((20, 24), (16, 16), (30, 18))
SPLITS = dict(train="all[:67%]", validation="all[67%:]", test="all[67%:]", batch_size=4)


@pytest.fixture
def shapes(tmp_path):
    """A folder of images of several sizes, with a bright square each, their masks, and COCO's file of their boxes."""
    coco = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "square"}]}
    rng, lines = np.random.default_rng(0), []
    for i in range(12):
        rows, columns = SIZES[i % 3]
        image, mask = rng.integers(0, 100, (rows, columns, 3), "uint8"), np.zeros((rows, columns), "uint8")
        top, left = rng.integers(0, 8, 2)
        image[top : top + 8, left : left + 8], mask[top : top + 8, left : left + 8] = 220, 1
        for folder, pixels in (("images", image), ("masks", mask)):
            (tmp_path / "shapes" / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / "shapes" / folder / f"{i}.png")
        coco["images"].append({"id": i, "file_name": f"{i}.png", "height": rows, "width": columns})
        box = [int(left), int(top), 8, 8]
        coco["annotations"].append({"id": i, "image_id": i, "category_id": 1, "bbox": box, "area": 64, "iscrowd": 0})
        lines.append(f"{i}.png,{top},{left},{i % 4}")
    shutil.copytree(tmp_path / "shapes" / "images", tmp_path / "numbers")
    (tmp_path / "numbers" / "metadata.csv").write_text("\n".join(["file_name,top,left,camera", *lines]))
    shutil.copytree(tmp_path / "shapes" / "images", tmp_path / "labels")
    flags = [f"{i}.png,{i % 2},{int(i % 4 < 2)},{'' if i % 3 else int(i % 4 == 0)}" for i in range(12)]  # some unknown
    (tmp_path / "labels" / "metadata.csv").write_text("\n".join(["file_name,odd,first,fourth", *flags]))
    (tmp_path / "boxes").mkdir()
    shutil.copytree(tmp_path / "shapes" / "images", tmp_path / "boxes" / "images")
    (tmp_path / "boxes" / "annotations.json").write_text(json.dumps(coco))
    return tmp_path / "shapes"


@fuller
def test_classify(tmp_path, monkeypatch, shapes):
    recipe = Recipe(
        name="digits",
        task=Classify(label_smoothing=0.1, class_weights=True, metrics=("accuracy", "balanced_accuracy")),
        model=dict(variant="mu/4", image_size=8, channels=1, num_classes=10, depth=1, dropout=0.1),
        data=Data(source="digits", batch_size=16, limit=32),
        augment=Augment(rotation=10.0, mixup=0.2),
        optim=Optim(ema=0.9),
    )
    run_task_test(recipe, tmp_path, monkeypatch, sorted((shapes / "images").iterdir())[:2], whole=True)


@fuller
def test_clips(tmp_path, monkeypatch):
    for i in range(12):
        (tmp_path / "clips" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        animated(tmp_path / "clips" / "ab"[i % 2] / f"{i}.gif", moving(3 + i % 5, 12 + i % 3, 16, seed=i))
    recipe = Recipe(
        name="clips",
        task=ClassifyClips(frames=4, stride=2, metrics=("accuracy", "f1")),
        model=dict(variant="mu/4", image_size=8, num_classes=2, depth=1, dropout=0.1),
        data=Data(source=f"folder:{tmp_path / 'clips'}", train="all[:67%]", validation="all", test="all", batch_size=4),
        augment=Augment(crop="inception", flip=True, rotation=10.0, jitter=0.2, mixup=0.2),
        optim=Optim(ema=0.9),
    )
    files = sorted((tmp_path / "clips").rglob("*.gif"))
    run = run_task_test(recipe, tmp_path, monkeypatch, files[:2])
    alone = shutil.copy(run.run / "best.keras", tmp_path / "alone.keras")  # it knows how its frames are sampled
    assert keras_vit.load_run(alone).task.clips == run.task.clips
    both = [predictions.predict(one, files[:2]) for one in (run, alone)]
    assert [[name for name, _ in each] for each in both[0]] == [[name for name, _ in each] for each in both[1]]
    with Image.open(keras_vit.runs.looking.explain(run, files[:2], tmp_path / "seen")[-1]) as animation:
        assert 1 < animation.n_frames <= 4 and animation.format == "GIF"  # Pillow joins frames that are the same
    (tmp_path / "bad.gif").write_bytes(b"x")
    with pytest.raises(ValueError, match="bad.gif' cannot be read as a clip"):
        predictions.predict(run, [tmp_path / "bad.gif"])


@fuller
def test_several_labels(tmp_path, monkeypatch, shapes):
    names = ("odd", "first", "fourth")
    recipe = Recipe(
        name="tags",
        task=Classify(multilabel=True, loss="asymmetric", label_smoothing=0.1, class_weights=True),
        model=dict(variant="mu/4", image_size=16, num_classes=3, depth=1, dropout=0.1),
        data=Data(
            source=f"folder:{shapes.with_name('labels')}",
            train="all[:67%]",
            validation="all",
            test="all",
            batch_size=4,
            columns={"multilabels": list(names)},
        ),
        augment=Augment(jitter=0.2, mixup=0.2, cutmix=1.0),
        optim=Optim(ema=0.9),
    )
    images = sorted(shapes.with_name("labels").glob("*.png"))
    run = run_task_test(recipe, tmp_path, monkeypatch, images[:2])
    chosen = run.model.get_layer("rescale").metadata["thresholds"]
    for folder in (run.run, tmp_path / "killed")[: 1 if QUICKLY else 2]:  # what was resumed has the same
        assert keras_vit.load_run(folder).task.thresholds == tuple(chosen) and len(chosen) == 3
    measured = keras_vit.evaluate(run, "all")[run.file]  # on what the thresholds were chosen on
    last = {name: values[-1] for name, values in history.read(run.run).items()}
    assert all(measured[name] == pytest.approx(last[f"val_{name}"]) for name in ("map", "macro_f1", "micro_f1"))
    predictions.predict(run, images[:2], json=tmp_path / "tags.json", csv=tmp_path / "tags.csv")
    rows = json.loads((tmp_path / "tags.json").read_text())
    assert {(row["name"], row["threshold"]) for row in rows} == set(zip(names, chosen))
    assert all(row["holds"] == (row["value"] >= row["threshold"]) for row in rows)
    assert (tmp_path / "tags.csv").read_text().startswith("image_id,name,value,threshold,holds\n")
    alone = shutil.copy(run.run / "best.keras", tmp_path / "alone.keras")  # it knows by itself what its outputs are
    assert keras_vit.load_run(alone).task.multilabel and keras_vit.load_run(alone).task.classes == names
    with pytest.raises(ValueError, match="with one label for each image. Received: .* for several labels"):
        keras_vit.calibrate(run)
    if not QUICKLY:
        for path in (run.run / "saved_model/assets.extra/keras_vit.json", run.run / "model.tflite.json"):
            assert json.loads(path.read_text())["thresholds"] == chosen
        exports_of_several(run, tmp_path / "exports")


def exports_of_several(trained, folder):
    """Files with probabilities have those that the task says; ONNX has the model's logits."""
    pixels = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3)).astype("float32")
    logits = trained.viewer()(pixels)
    keras_vit.export_saved_model(trained.model, folder / "shares", probabilities=True)
    keras_vit.export_tflite(trained.model, folder / "shares.tflite", probabilities=True)
    keras_vit.export_onnx(trained.model, folder / "model.onnx")
    readers = {"shares": runtimes.saved_model, "shares.tflite": runtimes.tflite, "model.onnx": runtimes.onnx}
    for name, reader in readers.items():
        expected = logits if name == "model.onnx" else trained.task.probabilities(logits)
        np.testing.assert_allclose(reader(folder / name)[0](pixels), expected, atol=1e-4)


@fuller
def test_segment(tmp_path, monkeypatch, shapes):
    recipe = Recipe(
        name="shapes",
        task=Segment(classes=("ground", "square"), class_weights=True),
        model=dict(variant="mu/4", image_size=16, depth=1, dropout=0.1),
        data=Data(source=f"folder:{shapes}", train="all[:67%]", validation="all[67%:]", test="all[67%:]", batch_size=4),
        augment=Augment(crop="inception", flip=True, rotation=20.0, jitter=0.2),
        optim=Optim(ema=0.9),
    )
    images = sorted((shapes / "images").iterdir())
    run = run_task_test(recipe, tmp_path, monkeypatch, images[:1])
    predictions.predict(run, images[:3], to=tmp_path / "predicted")
    for i, path in enumerate(images[:3]):
        with Image.open(tmp_path / "predicted" / path.name) as mask, Image.open(path) as image:
            assert mask.size == image.size and mask.mode == "L" and set(np.unique(mask)) <= {0, 1}, i
    with pytest.raises(FileExistsError, match="exists. Choose another folder"):
        predictions.predict(run, images[:3], to=tmp_path / "predicted")
    with pytest.raises(ValueError, match="Received: two of '0.png'"):
        predictions.predict(run, [images[0], shapes / "masks" / "0.png"], to=tmp_path / "twice")


OBJECTS = [
    pytest.param({"kind": "queries", "queries": 4, "upscales": 1}, marks=fuller),
    pytest.param({"kind": "deformable", "queries": 6, "width": 16, "depth": 1, "groups": 2}, marks=slow),
]


@pytest.mark.parametrize("head", OBJECTS, ids=["queries", "deformable"])
def test_segment_objects(head, tmp_path, monkeypatch, shapes):
    recipe = Recipe(
        name="squares",
        task=Segment(kind="instance", classes=("square",), head=head),
        model=dict(variant="mu/4", image_size=16, depth=2, dropout=0.1),
        data=Data(source=f"folder:{shapes}", train="all[:67%]", validation="all[67%:]", test="all[67%:]", batch_size=4),
        augment=Augment(crop="inception", flip=True, rotation=20.0, jitter=0.2),
        optim=Optim(ema=0.9),
    )
    images = sorted((shapes / "images").iterdir())
    run = run_task_test(recipe, tmp_path, monkeypatch, images[:1])
    certain = dataclasses.replace(
        run, recipe=dataclasses.replace(run.recipe, task=dataclasses.replace(run.task, score=0))
    )
    predictions.predict(certain, images[:3], to=tmp_path / "predicted", json=tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text())
    for path in images[:3]:
        with Image.open(tmp_path / "predicted" / path.name) as mask, Image.open(path) as image:
            assert mask.size == image.size and mask.mode == "RGB"
            numbers = np.unique(np.asarray(mask)[..., 0])
        assert {row["id"] for row in rows if row["image_id"] == path.name} == {*numbers.tolist()} - {0}
    [found] = keras_vit.segment(run.model, images[0], "instance", threshold=0.0)
    assert found.map.shape == SIZES[0][::1] and {each["label"] for each in found.segments} <= {"square"}


@fuller
def test_regress(tmp_path, monkeypatch, shapes):
    recipe = Recipe(
        name="places",
        task=Regress(names=("top", "left"), loss="huber"),
        model=dict(variant="mu/4", image_size=16, num_classes=2, depth=1, dropout=0.1),
        data=Data(
            source=f"folder:{shapes.with_name('numbers')}",
            train="all[:67%]",
            validation="all[67%:]",
            test="all[67%:]",
            batch_size=4,
            columns={"groups": "camera"},
        ),
        augment=Augment(jitter=0.2),
        optim=Optim(ema=0.9),
    )
    run = run_task_test(recipe, tmp_path, monkeypatch, sorted(shapes.with_name("numbers").glob("*.png"))[:2])
    (answer,) = predictions.predict(run, [shapes.with_name("numbers") / "0.png"])
    assert [name for name, _ in answer] == ["top", "left"] and all(-8 < value < 16 for _, value in answer)


@fuller
def test_detect(tmp_path, monkeypatch, shapes):
    recipe = Recipe(
        name="boxes",
        task=Detect(classes=("square",), most=10, head="tokens"),  # that of points is trained in `detect/test_yolo.py`
        model=dict(variant="mu/4", image_size=16, depth=1, dropout=0.1, tokens={"class_token": True}),
        data=Data(source=f"folder:{shapes.with_name('boxes')}", **SPLITS),
        augment=Augment(crop="inception", crop_area=0.5, flip=True, rotation=20.0, jitter=0.2),
        optim=Optim(ema=0.9),
    )
    images = sorted((shapes / "images").iterdir())
    run = run_task_test(recipe, tmp_path, monkeypatch, images[:3])
    predictions.predict(run, images[:3], json=tmp_path / "found.json", csv=tmp_path / "found.csv")
    found = json.loads((tmp_path / "found.json").read_text())
    assert all(row.keys() == {"image_id", "category", "bbox", "score"} for row in found)
    table = list(csv.DictReader((tmp_path / "found.csv").read_text().splitlines()))
    assert [[float(row[side]) for side in ("x", "y", "width", "height")] for row in table] == [r["bbox"] for r in found]
    assert {row["image_id"] for row in found} <= {path.name for path in images[:3]}
    with pytest.raises(FileExistsError, match="found.json' exists. Choose another file"):
        predictions.predict(run, images[:3], json=tmp_path / "found.json")
    with pytest.raises(ValueError, match="Received: two of '0.png'"):
        predictions.predict(run, [images[0], shapes / "masks" / "0.png"], json=tmp_path / "twice.json")
    with pytest.raises(ValueError, match="`json` must end in .json. Received: json='found.txt'"):
        predictions.predict(run, images[:1], json="found.txt")
    with pytest.raises(ValueError, match="The folder of `json` must exist. Received: .*nowhere"):
        predictions.predict(run, images[:1], json=tmp_path / "nowhere" / "found.json")


@fuller
def test_detect_by_words(tmp_path, monkeypatch, shapes):
    owls.small(True, words=[*WORDS[:-1], "square"]).save(tmp_path / "owl.keras")
    recipe = Recipe(
        name="words",
        task=Detect(classes=("square",), most=3, head="open"),
        model=dict(weights=str(tmp_path / "owl.keras"), image_size=owls.SIDE),
        data=Data(source=f"folder:{shapes.with_name('boxes')}", **SPLITS, resize="pad"),
        augment=Augment(flip=True, scale=0.2, jitter=0.2),
        optim=Optim(ema=0.9, layer_decay=0.9),
    )
    run_task_test(recipe, tmp_path, monkeypatch, sorted((shapes / "images").iterdir())[:3])


@fuller
def test_restore(tmp_path, monkeypatch, shapes):
    recipe = Recipe(
        name="larger",
        task=Restore(scale=2, noise=2.0, luma=True, head_depth=1),
        model=dict(variant="mu/4", stem=[[8, 1], [8, 1]], patch_size=4, image_size=8, depth=1, dropout=0.1),
        data=Data(source=f"folder:{shapes}", **SPLITS, resize="window"),
        augment=Augment(crop="window", crop_shrink=1.5, flip=True),
        optim=Optim(ema=0.9),
    )
    images = sorted((shapes / "images").iterdir())
    run = run_task_test(recipe, tmp_path, monkeypatch, images[:1])
    predictions.predict(run, images[:3], to=tmp_path / "larger")
    for path in images[:3]:
        with Image.open(tmp_path / "larger" / path.name) as found, Image.open(path) as image:
            assert found.size == (2 * image.width, 2 * image.height) and found.mode == "RGB"
            enlarged = image.resize(found.size, Image.Resampling.BICUBIC)
            assert np.abs(np.asarray(found, "float32") - np.asarray(enlarged)).mean() < 20

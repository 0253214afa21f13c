import csv
import importlib.util
import json
import re
import types

import keras
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.runs import predictions, trained, unfinished
from keras_vit.runs.passage import Output
from tests.checkpoints.formats.test_huggingface_depth import copied
from tests.marks import slow


def test_progress_is_not_shown_where_the_answers_go(monkeypatch, tmp_path):
    monkeypatch.setattr(predictions.progress, "counted", lambda *given, **more: [[each] for each in "ab"])
    assert [*predictions.followed(iter("xy"), 2)] == ["a", "b"]
    with open(tmp_path / "both", "w") as one, open(tmp_path / "both", "a") as same:
        monkeypatch.setattr(predictions.sys, "stdout", one)
        monkeypatch.setattr(predictions.sys, "stderr", same)
        assert [*predictions.followed(iter("xy"), 2)] == ["x", "y"]


@pytest.mark.parametrize("last", ["softmax", "sigmoid", None])
def test_the_numbers_are_the_model_s_own_and_no_class_vanishes(last, pictures, tmp_path):
    inner = keras_vit.vit("mu/4", image_size=8, num_classes=4)
    inner.get_layer("head").bias.assign([3.0, -40.0, 2.0, -1.0])
    inner.get_layer("rescale").metadata["labels"] = ["crane", "cat", "crane", "dog"]
    model = keras.Sequential([inner, keras.layers.Activation(last)]) if last else inner
    model.save(tmp_path / "model.keras")
    own = keras.ops.convert_to_numpy(model(np.zeros((1, 8, 8, 3)), training=False))[0].astype("float64")
    own = own if last else np.exp(own) / np.exp(own).sum()
    found = dict(predictions.predict(tmp_path / "model.keras", pictures[:1], top=4)[0])
    assert list(found) == ["crane (0)", "crane (2)", "dog", "cat"]
    np.testing.assert_allclose([found[n] for n in ("crane (0)", "cat", "crane (2)", "dog")], own, rtol=1e-5, atol=1e-12)


def by_hand():
    inputs = keras.Input((8, 8, 3))
    x = keras_vit.Patches(4)(keras.layers.Rescaling(1 / 255)(inputs))
    x = keras_vit.TransformerBlock(2, 32)(keras_vit.PatchEncoder(16)(x))
    return keras.Model(inputs, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling1D()(x)))


def wrapped():
    inside = keras_vit.from_pretrained("mnist", num_classes=3)
    return keras.Sequential([keras.Input((28, 28, 1)), inside, keras.layers.Softmax()])


@slow
@pytest.mark.parametrize("make", [by_hand, wrapped, lambda: keras_vit.from_pretrained("cifar10_hybrid")])
def test_a_model_is_asked_as_its_file_is(make, pictures, tmp_path):
    model = make()
    model.save(tmp_path / "model.keras")
    found = keras_vit.predict(model, pictures[:2], json=tmp_path / "a.json")
    assert found == keras_vit.predict(tmp_path / "model.keras", pictures[:2])
    assert found == keras_vit.predict(keras.models.load_model(tmp_path / "model.keras"), pictures[:2])
    assert len(json.loads((tmp_path / "a.json").read_text())) == 6


IDS = np.array([[0, 0, -1], [1, 1, 1]], "int32")


@pytest.fixture
def segmenter(monkeypatch):
    """A run of a task that finds two segments in each image."""
    segments = [{"id": i, "class": i, "category": "ab"[i], "score": 0.5} for i in range(2)]
    task = types.SimpleNamespace(gives="segments", whole=False, of_texts=False, clips=None, inputs=("images",))
    task.result = lambda output, size: (IDS, segments)
    task.listed = lambda output, top: [("1 a", 0.5), ("1 b", 0.5)]
    run = types.SimpleNamespace(task=task, alone=False, ids_of=lambda texts, count: {})
    monkeypatch.setattr(unfinished, "facts", lambda *call: {})

    def outputs(trained, files, ids, keeps, finish):
        return (Output(file, np.zeros(3), keeps(file.read_bytes()), None) for file in files)

    monkeypatch.setattr(predictions, "load_run", lambda target, job=None: run)
    monkeypatch.setattr(predictions, "draws_images", lambda trained: False)
    monkeypatch.setattr(predictions, "outputs", outputs)


def test_segments_are_written_as_pngs_and_tables(segmenter, pictures, tmp_path):
    pytest.importorskip("pycocotools")
    tables = {name: tmp_path / f"found.{name}" for name in ("json", "csv")}
    predictions.predict("run", pictures[:2], to=tmp_path / "maps", **tables)
    for path in pictures[:2]:
        colors = np.asarray(Image.open(tmp_path / "maps" / f"{path.stem}.png"))
        np.testing.assert_array_equal(colors, np.stack([IDS + 1, 0 * IDS, 0 * IDS], axis=-1))
    rows = json.loads(tables["json"].read_text())
    assert [(row["image_id"], row["id"]) for row in rows] == [(path.name, i) for path in pictures[:2] for i in (1, 2)]
    assert rows[1]["bbox"] == [0, 1, 3, 1] and rows[1]["segmentation"]["size"] == [2, 3]
    with open(tables["csv"]) as file:
        flat = [*csv.DictReader(file)]
    wanted = {"id": "2", "category": "b", "x": "0.0", "y": "1.0", "width": "3.0", "height": "1.0", "area": "3"}
    assert flat[1] == {"image_id": pictures[0].name, **wanted, "score": "0.5"} and len(flat) == 4


def test_a_table_of_segments_needs_pycocotools_before_any_work(segmenter, pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="A table of masks needs pycocotools. Install it: pip install .*detection"):
        predictions.predict("run", pictures[:1], to=tmp_path / "maps", csv=tmp_path / "found.csv")
    assert not (tmp_path / "maps").exists()
    predictions.predict("run", pictures[:1], to=tmp_path / "maps")
    assert len([*(tmp_path / "maps").iterdir()]) == 1


def test_folders_are_searched_for_images(run, pictures):
    assert predictions.image_files([pictures[0].parent, pictures[1]]) == [*pictures, pictures[1]]
    assert predictions.predict(run, [pictures[0].parent]) == predictions.predict(run, pictures)
    (pictures[0].parent / "none").mkdir()
    with pytest.raises(ValueError, match="There is no image in the folder '.*none'. Known endings: .jpg"):
        predictions.image_files([pictures[0].parent / "none"])


def test_an_image_that_cannot_be_read_ends_nothing(run, pictures):
    pictures[1].write_text("no image")
    found = list(predictions.predictions(run, pictures))
    assert [path for path, *_ in found] == pictures
    assert [error is None for *_, error in found] == [classes is not None for _, classes, _ in found]
    assert [isinstance(error, ValueError) for *_, error in found] == [False, True, False, False, False]
    with pytest.raises(ValueError, match="b.png' is not a PNG, JPEG, BMP, GIF or WebP image"):
        predictions.predict(run, pictures)
    with pytest.raises(ValueError, match="`top` must be a positive integer. Received: top=0"):
        predictions.predict(run, pictures, top=0)


def test_images_need_a_task_that_makes_them(run, pictures, tmp_path):
    said = "tasks that make files, such as Segment, Detect, Depth and Restore. Received: to='.*masks' with Classify"
    with pytest.raises(ValueError, match=said):
        predictions.predict(run, pictures, to=tmp_path / "masks")
    assert not (tmp_path / "masks").exists()


def test_masks_are_written_into_a_folder(tmp_path):
    picture = tmp_path / "a.png"
    picture.write_bytes(b"")
    with pytest.raises(ValueError, match="`to` must be a folder. Received: to='.*a.png'"):
        predictions.predict("nuclei", [picture], to=picture)


def test_what_exists_already_is_named_and_what_cannot_exist(pictures, run, tmp_path):
    (tmp_path / "masks").mkdir()
    for name in ("a.png", "c.png"):
        (tmp_path / "masks" / name).symlink_to("nothing")
    said = "a.png' exists. Choose another folder, .* Received: to='.*masks' with files of 2 of 4 images"
    with pytest.raises(FileExistsError, match=said):
        predictions.predict("nuclei", pictures[:4], to=tmp_path / "masks")
    with pytest.raises(ValueError, match="`to` cannot be written: File name too long. Received: to='.*xxx'"):
        predictions.predict("nuclei", pictures[:4], to=tmp_path / ("x" * 300))
    (tmp_path / "a.csv").symlink_to("nothing")
    with pytest.raises(FileExistsError, match="a.csv' exists. Choose another file"):
        predictions.predict(run, pictures, csv=tmp_path / "a.csv")
    with pytest.raises(ValueError, match="`csv` cannot be written: File name too long. Received: csv='.*xxx.csv'"):
        predictions.predict(run, pictures, csv=tmp_path / f"{'x' * 300}.csv")


@slow
@pytest.mark.parametrize("name, size", [("nuclei", 1), ("blood_cells", 1), ("superres_x2", 2)])
def test_images_may_vanish_while_the_model_runs(name, size, pictures, tmp_path, monkeypatch):
    real = trained.forward

    def late(*given, **more):
        model = real(*given, **more)
        return lambda images: [path.unlink(missing_ok=True) for path in pictures[:2]] and model(images)

    monkeypatch.setattr(trained, "forward", late)
    found = [*predictions.predictions(name, pictures[:2], to=tmp_path / "to", json=tmp_path / "a.json")]
    assert found[0][2] is None and len([*(tmp_path / "to").iterdir()]) == sum(error is None for *_, error in found)
    if name == "superres_x2":  # reads one at a time: the second had vanished before
        assert "There is no file" in str(found[1][2])
    for path in (tmp_path / "to").glob("*.png"):
        with Image.open(path) as written:
            assert written.size[1] == size * 30


@pytest.mark.parametrize("name", ["mnist", "superres_x2"])
def test_outputs_that_are_not_finite_are_refused(name, pictures, tmp_path, monkeypatch):
    real = trained.forward
    monkeypatch.setattr(trained, "forward", lambda *a, **k: lambda images: np.nan * real(*a, **k)(images))
    with pytest.raises(ValueError, match="must return finite numbers. Received: NaN or infinity for '.*a.png'"):
        predictions.predict(name, pictures[:1], json=tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


def test_answers_are_written_as_json_and_as_csv(run, pictures, tmp_path):
    """A task without objects; those of detectors are in `tasks/test_harness.py`."""
    odd = pictures[0].rename(tmp_path / "pictures" / "ö, \udcff.png")
    found = keras_vit.predict(run, tmp_path / "pictures", top=2, json=tmp_path / "a.json", csv=tmp_path / "a.csv")
    rows = json.loads((tmp_path / "a.json").read_text())
    with open(tmp_path / "a.csv", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = [{**row, "value": float(row["value"])} for row in csv.DictReader(file)]
    assert rows == table and len(rows) == 10 and str(odd) in {row["image_id"] for row in rows}
    assert [(row["name"], row["value"]) for row in rows] == [pair for answer in found for pair in answer]
    for name, path in (("json", "a.csv"), ("csv", "a.json")):
        with pytest.raises(ValueError, match=f"`{name}` must end in .{name}. Received: {name}="):
            keras_vit.predict(run, pictures[1], **{name: tmp_path / path})


def test_a_model_s_own_probabilities_are_its_answers(tmp_path, pictures):
    """One sigmoid for each class does not sum to one; and of two classes of one name both are answers."""
    inside = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    inside.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 3)))
    inside.get_layer("head").bias.assign([2.0, 2.0, 2.0])
    inside.get_layer("rescale").metadata["labels"] = ["crane", "owl", "crane"]
    model = keras.Model(inside.input, keras.layers.Activation("sigmoid")(inside.output))
    model.save(tmp_path / "model.keras")
    wanted = np.asarray(model(keras_vit.preprocess(model, pictures[:1])))[0]
    assert abs(wanted.sum() - 1) > 0.05
    [found] = predictions.predict(tmp_path / "model.keras", pictures[:1])
    assert dict(found) == pytest.approx(dict(zip(("crane (0)", "owl", "crane (2)"), wanted)), abs=1e-6)


@slow
def test_depth_keeps_the_aspect_ratio_of_each_photograph(tmp_path):
    """A file of published weights; maps have the sizes of the photographs (report DepthCrafter 48)."""
    copied("depth_anything", tmp_path)
    model = keras_vit.from_checkpoint(tmp_path)
    model.save(tmp_path / "depth.keras")
    photos = [tmp_path / f"{i}.png" for i in range(3)]
    for path, shape in zip(photos, ((40, 90), (90, 40), (40, 90))):
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (*shape, 3), "uint8")).save(path)
    Image.new("RGB", (900, 40)).save(tmp_path / "3.png")
    wanted = keras_vit.estimate_depth(model, photos)
    predictions.predict(tmp_path / "depth.keras", photos, to=tmp_path / "maps", json=tmp_path / "a.json")
    for path, depth in zip(photos, wanted):
        with Image.open(tmp_path / "maps" / path.name) as written:
            low, scale = (float(x) for x in re.findall(r"= (\S+) \+ value \* (\S+)", written.text["depth"])[0])
            np.testing.assert_allclose(low + np.asarray(written) * scale, depth, atol=scale)
            assert written.size == depth.shape[::-1]
    *found, (_, answer, error) = predictions.predictions(tmp_path / "depth.keras", [*photos, tmp_path / "3.png"])
    assert [one[2] for one in found] == [None] * 3 and answer is None and "900 x 40 pixels" in str(error)

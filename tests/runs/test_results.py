import dataclasses
import json
import os
import pathlib
import runpy
import warnings

import keras
import numpy as np
import pytest
from PIL import Image, ImageDraw

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.config.cookbook import recipe_path
from keras_vit.runs import looking, results
from keras_vit.runs.predictions import predict
from tests.marks import slow
from tests.small import small


@slow
def test_exports_of_shipped_weights_do_not_lie_in_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results.export("mnist")
    assert sorted(os.listdir("exports/mnist")) == ["model.tflite", "model.tflite.json", "saved_model"]
    assert not os.path.exists("runs")


@slow
def test_evaluate_export_and_evaluate_again(run):
    assert list(results.evaluate(run)) == [str(run / "model.keras")]
    for report in results.export(run):
        assert report.agreement == 1 and report.max_abs_diff < 1e-4
    found = results.evaluate(run, "all[80%:]")
    assert list(found) == [str(run / name) for name in ("model.keras", "saved_model", "model.tflite")]
    assert len({values["accuracy"] for values in found.values()}) == 1
    pytest.importorskip("openvino")
    (report,) = results.export(run, openvino=True)  # what exists is kept
    assert report.path == str(run / "model.xml")
    assert results.evaluate(run, "all[80%:]")[str(run / "model.xml")] == found[str(run / "model.keras")]
    with pytest.raises(FileExistsError, match="model.xml' exists"):
        results.export(run, openvino=True)
    (run / "model.xml").unlink()
    with pytest.raises(FileExistsError, match="model.bin' exists"):  # and nothing is written before
        results.export(run, quantize=["dynamic"], openvino=True)
    assert not (run / "model-dynamic.tflite").exists()
    with pytest.raises(FileExistsError, match="saved_model' exists"):
        results.export(run)
    with pytest.raises(ValueError, match="'int8'"):
        results.export(run, quantize=["int9"])


def test_other_scores_are_measured_on_request(run):
    changes = {"task.metrics": ("f1", "keras.metrics.F1Score")}
    found = results.evaluate(run, "all[:50%]", changes=changes)[str(run / "model.keras")]
    assert list(found) == ["f1", *(f"f1_score {i}" for i in range(10))]
    of_classes = [value for name, value in found.items() if " " in name]
    assert sum(of_classes) / 10 <= found["f1"] <= max(of_classes)  # classes that do not occur are not counted
    for changes, said in (
        ({"task.metrics": ("f2",)}, "must be one of accuracy"),
        ({"optim.epochs": 3}, "settings of data, task.metrics can be changed. Received: optim.epochs=3"),
        ({"task.metric": 3}, "no option 'task.metric'"),
    ):
        with pytest.raises(ValueError, match=said):
            results.evaluate(run, changes=changes)


def test_a_run_is_measured_on_other_data(run, tmp_path):
    from PIL import Image
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    for i in range(20):
        path = tmp_path / "there" / str(labels[i]) / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels[i].reshape(8, 8) * 15).astype("uint8")).save(path)
    source = {"data.source": f"folder:{tmp_path / 'there'}", "data.limit": None}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "folder:")  # other files than it was trained on
        found = results.evaluate(run, changes=source)[str(run / "model.keras")]
    assert found["accuracy"] * 20 == pytest.approx(round(found["accuracy"] * 20))
    with pytest.raises(FileNotFoundError, match="no folder"):
        results.evaluate(run, changes={"data.source": f"folder:{tmp_path / 'nowhere'}"})
    (tmp_path / "model.keras").write_bytes((run / "model.keras").read_bytes())
    with pytest.raises(TypeError, match="`changes` must be a dictionary, .* Received: an array of shape .3,., float64"):
        results.evaluate(tmp_path / "model.keras", changes=np.zeros(3))
    with pytest.raises(ValueError, match="model.keras' has no recipe to change: it is outside a run directory"):
        results.evaluate(tmp_path / "model.keras", changes=source)


def test_a_fold_of_a_run_is_not_one_of_other_data(run):
    trained = results.load_run(run)
    data = dataclasses.replace(trained.recipe.data, fold=(1, 3))
    trained = dataclasses.replace(trained, recipe=dataclasses.replace(trained.recipe, data=data))
    for source, asked, fold in (
        ("folder:b", {}, None),
        ("folder:b", {"data.fold": (2, 3)}, (2, 3)),
        ("digits", {}, (1, 3)),  # the run's own
    ):
        changed = results._changed(trained, {"data.source": source, **asked})
        assert changed.recipe.data.fold == fold and changed.elsewhere == (source != "digits")


@slow
def test_smaller_formats_are_calibrated_and_measured_on_the_recipe_s_data(run, tmp_path):
    with pytest.warns(UserWarning, match="is rough. Received: 8"):  # all that this run trained on
        reports = results.export(run, tmp_path, quantize=["dynamic", "int8"], onnx=True, openvino=True)
    assert [pathlib.Path(r.path).name for r in reports] == [
        "saved_model", "model.tflite", "model-dynamic.tflite", "model-int8.tflite", "model.onnx", "model.xml"
    ]  # fmt: skip
    assert all(set(r.accuracy) == {"of this file", "of the model"} and r.images == 8 for r in reports)
    assert json.loads((tmp_path / "model-int8.tflite.json").read_text())["labels"] == list("0123456789")


def test_predict(run, tmp_path):
    keras.utils.save_img(tmp_path / "digit.png", np.zeros((20, 20, 3)))
    [classes] = predict(run, [tmp_path / "digit.png"])
    assert len(classes) == 3 and classes[0][1] >= classes[1][1]
    with pytest.raises(FileNotFoundError, match=r"no\.png"):
        predict(run, ["no.png"])


@slow
def test_a_file_outside_of_a_run_is_taken_wherever_a_run_is(run, pictures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = keras_vit.load_run(run).model
    model.get_layer("rescale").metadata["labels"] = [f"digit {i}" for i in range(10)]
    model.save("mine.keras")
    inside, outside = predict(run, pictures, 10), predict("mine.keras", pictures, 10)
    for ours, theirs in zip(inside, outside):
        ours = {f"digit {name}": value for name, value in ours}
        assert all(abs(ours[name] - value) < 1e-3 for name, value in theirs)
    assert looking.explain("mine.keras", pictures) == [pathlib.Path("mine/attention.png")]
    arrays = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1)), np.arange(40) % 10
    assert list(results.evaluate("mine.keras", arrays=arrays)) == ["mine.keras"]
    results.export("mine.keras")
    found = results.evaluate("mine.keras", arrays=arrays)
    assert [pathlib.Path(file).name for file in found] == ["mine.keras", "saved_model", "model.tflite"]
    assert len({values["accuracy"] for values in found.values()}) == 1
    for call, instead in (
        (lambda: results.evaluate("mine.keras"), "`arrays`, (images, labels)"),
        (lambda: looking.explain("mine.keras"), "image files"),
        (lambda: results.export("mine.keras", quantize=["int8"]), "its model and `calibration` to export_tflite"),
    ):
        with pytest.raises(ValueError) as error:
            call()
        said = "'mine.keras' has no data: it is outside a run directory. Pass a run directory, or "
        assert str(error.value) == f"{said}{instead}."


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(ValueError, match="is not a run directory"):
        results.load_run(tmp_path)
    with pytest.raises(ValueError, match="There is no recipe 'digitz'"):
        results.load_run("digitz")
    (tmp_path / "recipe.json").write_text(json.dumps(config.to_dict(small())))
    with pytest.raises(FileNotFoundError, match=r"no model.keras yet"):
        results.load_run(tmp_path)


@pytest.mark.skipif("TFDS_DATA_DIR" not in os.environ, reason="TFDS_DATA_DIR is not set")
@slow
def test_shipped_mnist_is_as_good_as_it_says():
    recipe = keras_vit.load_recipe("mnist")
    [found] = keras_vit.evaluate("mnist").values()
    assert found["accuracy"] == pytest.approx(recipe.reached.test_accuracy, abs=1e-4)


nuclei = pytest.mark.skipif(
    "KERAS_VIT_DATA" not in os.environ, reason="KERAS_VIT_DATA, a folder with nuclei, is not set"
)


@slow
@nuclei
def test_shipped_nuclei_are_as_good_as_they_say(monkeypatch):
    monkeypatch.chdir(os.environ["KERAS_VIT_DATA"])
    (_, reached), *_ = keras_vit.load_recipe("nuclei").reached.scores
    [found] = keras_vit.evaluate("nuclei").values()
    assert found["mean_iou"] == pytest.approx(reached, abs=1e-3)


@slow
@pytest.mark.skipif("KERAS_VIT_DATA" not in os.environ, reason="KERAS_VIT_DATA, a folder with blood_cells, is not set")
def test_shipped_blood_cells_are_as_good_as_they_say(monkeypatch):
    pytest.importorskip("pycocotools")
    monkeypatch.chdir(os.environ["KERAS_VIT_DATA"])
    (_, reached), *_ = keras_vit.load_recipe("blood_cells").reached.scores
    [found] = keras_vit.evaluate("blood_cells").values()
    assert found["map50"] == pytest.approx(reached, abs=1e-3)


@slow
@pytest.mark.skipif("KERAS_VIT_DATA" not in os.environ, reason="KERAS_VIT_DATA, a folder with Set5, is not set")
def test_shipped_superres_is_as_good_as_it_says(tmp_path, monkeypatch):
    pytest.importorskip("skimage")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "superres").symlink_to(pathlib.Path(os.environ["KERAS_VIT_DATA"], "superresolution"))
    (_, reached), *_ = keras_vit.load_recipe("superres_x2").reached.scores
    [found] = keras_vit.evaluate("superres_x2").values()
    assert found["psnr"] == pytest.approx(reached, abs=1e-2)


@nuclei
@slow
def test_every_format_of_a_segmenter_keeps_its_score(tmp_path, monkeypatch):
    monkeypatch.chdir(os.environ["KERAS_VIT_DATA"])
    some = results.some_images
    monkeypatch.setattr(results, "some_images", lambda *what: some(*what[:-1], min(what[-1], 32)))
    reports = results.export("nuclei", tmp_path, quantize=("dynamic", "int8"), onnx=True)
    assert len(reports) == 5
    for report in reports[1:]:  # calibrated formats are exported last, and compared on the same images
        if report.accuracy:
            difference = report.accuracy["of this file"] - report.accuracy["of the model"]
            assert report.score == "mean_iou" and abs(difference) < 0.005, report
    assert sum(report.accuracy is not None for report in reports) == 5


@slow
@pytest.mark.skipif("KERAS_VIT_DATA" not in os.environ, reason="KERAS_VIT_DATA, a folder with emoji, is not set")
def test_shipped_emoji_are_as_good_as_they_say(monkeypatch):
    monkeypatch.chdir(os.environ["KERAS_VIT_DATA"])
    [found] = keras_vit.evaluate("emoji").values()
    for name, reached in keras_vit.load_recipe("emoji").reached.scores:
        assert found[name.replace("R@", "recall at ").replace(" ", "_")] == pytest.approx(reached, abs=0.01)


@slow
@pytest.mark.skipif("KERAS_VIT_DATA" not in os.environ, reason="KERAS_VIT_DATA, a folder with easy_vqa, is not set")
@pytest.mark.parametrize("name", [pytest.param("easy_vqa", marks=slow), "easy_vqa_captions"])
def test_shipped_drawings_are_answered_and_described(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = {"easy_vqa": "easy_vqa", "easy_vqa_captions": "captions"}[name]
    runpy.run_path(str(recipe_path(name)))["main"](os.environ["KERAS_VIT_DATA"] + "/easy_vqa", folder, ("test",))
    recipe = keras_vit.load_recipe(name)
    [found] = keras_vit.evaluate(name, changes={"data.test": "test[:5%]"}).values()
    least = recipe.reached.headline[1] - 0.01
    assert found.get("accuracy", found.get("exact_match")) > least


def test_shipped_answers_depend_on_the_drawing_and_the_question(tmp_path):
    """And lines of text are read: of drawings that the test makes itself."""
    shapes = {"red circle": ("ellipse", (255, 0, 0)), "blue rectangle": ("rectangle", (0, 0, 255))}
    for name, (shape, color) in shapes.items():
        image = Image.new("RGB", (64, 64), (235, 245, 240))
        getattr(ImageDraw.Draw(image), shape)((18, 24, 40, 46), fill=color)
        image.save(tmp_path / f"{name}.png")
    files = [tmp_path / f"{name}.png" for name in shapes]
    for question, wanted in (
        ("what shape is in the image?", ["circle", "rectangle"]),
        ("is there not a circle?", ["no", "yes"]),
    ):
        found = keras_vit.predict("easy_vqa", files, top=1, texts=question)
        assert [name for ((name, _),) in found] == wanted
    assert [name for ((name, _),) in keras_vit.predict("easy_vqa_captions", files)] == [f"a {name}" for name in shapes]


@slow
def test_shipped_lines_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawing = runpy.run_path(str(recipe_path("lines")))
    drawing["main"]("lines", {"test": 60, "font": 20})
    [found] = keras_vit.evaluate("lines").values()
    assert found["character_error_rate"] < 0.02
    words = drawing["words"]()
    assert not {*words["train"]} & {*words["test"], *words["validation"]} and len(words["test"]) > 200
    assert len({*map(str, (tmp_path / "lines" / "font").glob("*.png"))}) == 20


@pytest.mark.parametrize("value_range", [(0, 255), (0, 4095), (0, 1), (-1, 1), None])
def test_a_model_alone_is_measured_on_pixels_of_its_own_range(value_range):
    random = np.random.default_rng(0)
    low, high = value_range or (0, 1)
    if value_range is None:  # nothing rescales
        x = inputs = keras.Input((8, 8, 3))
        for layer in (
            keras_vit.Patches(4),
            keras_vit.PatchEncoder(8),
            keras_vit.TokenPool("gap"),
            keras.layers.Dense(3),
        ):
            x = layer(x)
        model = keras.Model(inputs, x)
    else:
        model = keras_vit.vit("mu/4", image_size=8, depth=1, num_classes=3, value_range=value_range)
    head = model.layers[-1]
    head.set_weights([random.normal(size=weight.shape) for weight in head.get_weights()])
    images = (low + random.random((12, 8, 8, 3)) * (high - low)).astype("uint16" if high > 255 else "float32")
    labels = model.predict(images, verbose=0).argmax(-1)
    [scores] = results.evaluate(model, arrays=(images, labels)).values()
    assert scores["accuracy"] == 1

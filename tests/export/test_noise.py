"""A step from noise to images, exported: three inputs by name, and what the file says of them."""

import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.export import export_onnx, export_openvino, export_saved_model, export_tflite, runtimes
from keras_vit.generation.sampler import by_steps, drawn
from keras_vit.traits import Traits
from tests.checkpoints.towers import GENERATION
from tests.dits import WORDS, given, given_texts, of_texts, small
from tests.marks import few, slow

FORMATS = {
    "a.tflite": (export_tflite, runtimes.tflite, "a.tflite.json"),
    "saved": (export_saved_model, runtimes.saved_model, "saved/assets.extra/keras_vit.json"),
    "a.onnx": (export_onnx, runtimes.onnx, "a.onnx.json"),
    "a.xml": (export_openvino, runtimes.openvino, "a.xml.json"),
}


@slow
@few(2)
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_followed_as_the_model_is(name, tmp_path):
    if name.endswith(("onnx", "xml")):
        pytest.importorskip({"a.onnx": "tf2onnx", "a.xml": "openvino"}[name])
    write, load, facts = FORMATS[name]
    model, x = small(), given(5)
    report = write(model, tmp_path / name, images=x)
    assert report.given == "images, times and labels" and report.max_abs_diff < 1e-4
    run, _ = load(tmp_path / name)
    np.testing.assert_allclose(run(x), np.asarray(model(x)), atol=1e-4)
    expected = drawn(model, x["images"], x["labels"], 2, 2.0)
    np.testing.assert_allclose(by_steps(run, 3, x["images"], x["labels"], 2, 2.0), expected, atol=1e-3)
    said = json.loads((tmp_path / facts).read_text())
    assert said["labels"] == ["cat", "dog", "7"] and said["sampling"] == {"times": [0, 1.0], "no_class": 3}
    assert said["preprocessing"] is None and said["input"]["shape"] == [None, 8, 12, 1]


@slow
@few(2)
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_texts_is_followed_as_the_model_is(name, tmp_path):
    if name.endswith(("onnx", "xml")):
        pytest.importorskip({"a.onnx": "tf2onnx", "a.xml": "openvino"}[name])
    write, load, facts = FORMATS[name]
    about = {"gives": {"head": "velocity"}, "shift": 3.0}
    model, x = of_texts(predicts="image"), given_texts()
    model.get_layer("rescale").metadata = about
    x["texts"][0] = [3, 4, 6, 1, 7]  # what is after the end does not count in the file either
    report = write(model, tmp_path / name, images=x)
    assert report.given == "images, texts and times" and report.max_abs_diff < 1e-4 * report.range
    run, _ = load(tmp_path / name)
    np.testing.assert_allclose(run(x), np.asarray(model(x)), atol=1e-4 * report.range)
    said = json.loads((tmp_path / facts).read_text())
    none = said["sampling"]["no_text"]
    assert said["sampling"] == {"times": [0, 1.0], "no_text": [1, 0, 0, 0, 0], "shift": 3.0}
    assert said["texts"]["words"] == WORDS and said["texts"]["shape"] == [None, 5] and said["labels"] is None
    expected = drawn(model, x["images"], x["texts"], 2, 2.0)
    found = by_steps(run, np.array(none), x["images"], x["texts"], 2, 2.0, said["sampling"]["shift"])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=5e-3)


def test_a_published_model_has_its_own_steps():
    from keras_vit.export import prepare

    model = keras_vit.from_checkpoint(GENERATION / "dit" / "checkpoint.safetensors")
    assert prepare.facts(Traits(model), None)["sampling"] == {"times": [0, 1000.0], "no_class": 10}
    assert list(prepare.named_outputs(Traits(model), "x", False)) == ["prediction"]


def test_what_cannot_be_compared_or_calibrated(tmp_path):
    model, x = small(), given(3)
    for changes, message in (
        ({"labels": np.array([0, 1, 4])}, r"Labels must be integers \(batch,\) from 0 to below 4"),
        ({"times": np.array([0, 1, np.nan])}, r"Times must be finite numbers \(batch,\)"),
        (
            {"images": x["images"][:, :4]},
            r"Noisy images must be finite numbers \(batch, 8, 12, 1\). Received: shape=\(3, 4",
        ),
        ({"times": x["times"][:2]}, "Inputs must have as many examples each. Received"),
    ):
        with pytest.raises(ValueError, match=message):
            export_tflite(model, tmp_path / "a.tflite", images={**x, **changes})
    with pytest.raises(ValueError, match="Calibration is for models of images alone.* which takes images and times"):
        export_tflite(model, tmp_path / "a.tflite", quantize="int8", calibration=np.zeros((1, 8, 12, 1)))
    assert not [*tmp_path.iterdir()]

import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("onnxruntime")
pytest.importorskip("tf2onnx")

import keras_vit
from keras_vit.export import matrices, prepare, runtimes
from tests.export.small import IMAGES, tiny
from tests.marks import few, slow


@few(1)
@pytest.mark.parametrize(
    "options, probabilities",
    [
        (dict(), True),
        (dict(tokens={"distilled": True, "registers": 2}, block={"gelu": "exact"}, dtype="mixed_bfloat16"), False),
    ],
)
def test_runs_in_its_own_runtime_for_any_number_of_images(options, probabilities, tmp_path, monkeypatch):
    monkeypatch.setattr(matrices, "LARGE", 64)
    model, path = tiny(**options), tmp_path / "m.onnx"
    report = keras_vit.export_onnx(model, path, images=IMAGES, labels=["a", "b", "c", "d"], probabilities=probabilities)
    assert report.agreement == 1 and report.max_abs_diff < 1e-4 * report.range
    assert not {"Erfc", "Einsum", "ReduceProd"} & set(report.operators)  # sums over any axes, written with shapes
    import onnx
    import onnxruntime

    constants = [each.name for each in onnx.load(path).graph.initializer]
    large = [each for each in model.weights if len(each.shape) == 2 and np.prod(each.shape) >= 64]
    assert len(large) > 4 and sum(name.startswith("matrix_") for name in constants) == len(large)
    session = onnxruntime.InferenceSession(path)
    assert [tensor.name for tensor in session.get_inputs()] == ["images"]
    assert [x.shape[0] for x in (*session.get_inputs(), *session.get_outputs())] == ["batch"] * 2
    assert [tensor.name for tensor in session.get_outputs()] == ["probabilities" if probabilities else "logits"]
    run, _ = runtimes.onnx(path)
    assert run(IMAGES[:1]).shape == (1, 4) and run(IMAGES).shape == (5, 4)
    if probabilities:
        np.testing.assert_allclose(run(IMAGES).sum(-1), 1, rtol=1e-5)
    assert json.loads((tmp_path / "m.onnx.json").read_text())["labels"] == ["a", "b", "c", "d"]
    inside = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    assert inside["labels"] == ["a", "b", "c", "d"] and inside["input"]["range"] == [0, 255]
    assert inside["preprocessing"]["resize"] == "direct"


def test_exact_gelus_of_plain_keras_next_to_gates(tmp_path):
    gated = tiny(block={"swiglu": True, "gelu": "exact"})
    model = keras.Model(gated.input, keras.layers.Dense(4, "gelu")(gated.output))
    report = keras_vit.export_onnx(model, tmp_path / "a.onnx", images=IMAGES)
    assert report.agreement == 1 and report.operators["Erf"] == 1 and "Erfc" not in report.operators


def test_bad_input_is_named_and_writes_nothing(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"must end in \.onnx.*model\.bin"):
        keras_vit.export_onnx(tiny(), tmp_path / "model.bin")
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs tf2onnx, onnx.*pip install .*\[onnx\].\. Nothing was"):
        keras_vit.export_onnx(tiny(), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@slow
def test_a_detector_returns_boxes_in_pixels_and_scores(tmp_path):
    task = keras_vit.Detect(classes=("a", "b"), most=7, head={"kind": "points", "width": 4})
    model = task.model(variant="mu/8", image_size=(72, 40), stem=((4, 2),))  # maps of 5 rows, enlarged to 9
    rng = np.random.default_rng(0)
    for variable in model.get_layer("head").trainable_weights:
        variable.assign(rng.normal(size=variable.shape) * 0.3)
    images = rng.integers(0, 256, (3, 72, 40, 3)).astype("float32")
    report = keras_vit.export_onnx(model, tmp_path / "m.onnx", images=images, labels=["a", "b"])
    assert report.agreement == 1 and report.range > 0.1
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    boxes, scores = session.run(["boxes", "scores"], {"images": images})
    expected = np.asarray(model(images))
    np.testing.assert_allclose(boxes, expected[..., :4] * (72, 40, 72, 40), atol=1e-2)
    np.testing.assert_allclose(scores, expected[..., 4:], atol=1e-4)
    with pytest.raises(ValueError, match="A detector returns scores already. Received: probabilities=True"):
        keras_vit.export_onnx(model, tmp_path / "n.onnx", probabilities=True)
    with pytest.raises(ValueError, match="`labels` must be a list of 2 class names"):
        keras_vit.export_onnx(model, tmp_path / "n.onnx", labels=list("abcdef"))
    assert not (tmp_path / "n.onnx").exists()


def test_weights_of_two_gigabytes_are_external_data(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "LIMIT", 8_000)
    monkeypatch.setattr(matrices, "LARGE", 64)
    model, path = tiny(), tmp_path / "m.onnx"
    report = keras_vit.export_onnx(model, path, images=IMAGES)
    assert report.agreement == 1 and report.bytes > 4 * model.count_params() > path.stat().st_size
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data", "m.onnx.json"]
    with pytest.raises(FileExistsError, match="m.onnx' exists"):
        keras_vit.export_onnx(model, path)
    monkeypatch.undo()
    keras_vit.export_onnx(model, path, images=IMAGES, overwrite=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", "m.onnx.json"]


def test_tensors_that_layers_keep_are_constants(tmp_path):
    """Such as the mean of an adapted `Normalization`: the exporter would make inputs of them."""
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3)).astype("float32")
    norm = keras.layers.Normalization()
    norm.adapt(images)
    x = inputs = keras.Input((8, 8, 3))
    for layer in (norm, keras_vit.Patches(4), keras_vit.PatchEncoder(8), keras_vit.TokenPool(), keras.layers.Dense(2)):
        x = layer(x)
    model = keras.Model(inputs, x)
    report = keras_vit.export_onnx(model, tmp_path / "model.onnx", images=images)
    assert report.max_abs_diff < 1e-5
    assert keras.ops.is_tensor(norm.mean)  # the model is as it was

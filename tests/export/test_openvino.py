import json
import pathlib

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("openvino")

import openvino

import keras_vit
from keras_vit.export import export_openvino, prepare, runtimes
from keras_vit.layers import CrossAttention, MultiHeadSelfAttention
from keras_vit.traits import Traits
from keras_vit.utils.keras_private import sublayers
from tests.export.small import CALIBRATION, IMAGES, KINDS, tiny
from tests.marks import few, slow

BFLOAT16 = runtimes.openvino_has("BF16")


@few(2)
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_runs_in_its_own_runtime(name, tmp_path):
    model, images = KINDS[name]()
    report = export_openvino(model, tmp_path / "m.xml", images=images)
    assert report.max_abs_diff < 1e-5 * report.range and report.agreement > 0.999
    assert bool(report.on("bfloat16")) == BFLOAT16
    names = set(prepare.named_outputs(Traits(model), np.zeros((1, *model.output_shape[1:]), "float32"), False))
    read = openvino.Core().read_model(tmp_path / "m.xml")
    assert {name for output in read.outputs for name in output.names} == names
    assert read.input(0).names == {"images"} and read.input(0).partial_shape[0].is_dynamic
    run, _ = runtimes.openvino(tmp_path / "m.xml")
    assert run(images[:1]).shape == (1, *model.output_shape[1:]) and len(run(images)) == 5


@slow
@few(2)
@pytest.mark.parametrize("name", ["classes", "set", "rotary", "relative"])
def test_attention_is_one_operator_which_openvino_computes_at_once(name, tmp_path):
    model, images = KINDS[name]()
    found = export_openvino(model, tmp_path / "m.xml", images=images).operators
    count = sum(isinstance(layer, MultiHeadSelfAttention | CrossAttention) for layer in sublayers(model))
    assert found["ScaledDotProductAttention"] == count > 0 and "Einsum" not in found


def test_the_files_say_what_a_user_needs(tmp_path):
    path = tmp_path / "m.xml"
    score = lambda outputs: {"mean": outputs.mean()}  # noqa: E731
    report = export_openvino(tiny(), path, images=IMAGES, labels=list("abcd"), probabilities=True, score=score)
    assert report.bytes == path.stat().st_size + (tmp_path / "m.bin").stat().st_size and report.score == "mean"
    assert not BFLOAT16 or (
        report.on("bfloat16").accuracy == pytest.approx(0.25) and "in bfloat16, as Open" in str(report)
    )
    read, said = openvino.Core().read_model(path), json.loads((tmp_path / "m.xml.json").read_text())
    inside = {name: json.loads(read.get_rt_info(["keras_vit", name]).value) for name in ("labels", "input")}
    assert inside["labels"] == said["labels"] == ["a", "b", "c", "d"]
    assert inside["input"] == said["input"] and said["input"]["shape"] == [None, 12, 8, 3]
    assert said["preprocessing"]["resize"] == "direct" and read.output(0).any_name == "probabilities"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.bin", "m.xml", "m.xml.json"]


def test_a_fixed_number_of_images(tmp_path):
    model = tiny()
    export_openvino(model, tmp_path / "m.xml", images=IMAGES, batch=3)
    assert openvino.Core().read_model(tmp_path / "m.xml").input(0).shape == openvino.Shape([3, 12, 8, 3])
    run, _ = runtimes.openvino(tmp_path / "m.xml")
    np.testing.assert_allclose(run(IMAGES), model.predict(IMAGES, verbose=0), atol=1e-4)  # 5 of them
    assert json.loads((tmp_path / "m.xml.json").read_text())["input"]["shape"] == [3, 12, 8, 3]


@pytest.mark.parametrize("threads", [None, 1])
def test_images_of_another_shape_are_refused(threads, tmp_path):
    """With one thread, OpenVINO itself returned nothing for them, or ended the process."""
    export_openvino(tiny(), tmp_path / "m.xml", images=IMAGES)
    run = runtimes.Compiled(openvino.Core().read_model(tmp_path / "m.xml"), threads=threads)
    assert run(IMAGES)["logits"].shape == (5, 4)
    for shape in ((1, 2), (5, 8, 12, 3), (5, 12, 8), (5, 12, 8, 1)):
        with pytest.raises(ValueError, match=r"'images' must be of the shape \(None, 12, 8, 3\). Received: \("):
            run(np.zeros(shape, "float32"))


@pytest.mark.parametrize("batch", [None, 3])
def test_int8_has_its_scales_from_calibration(batch, tmp_path):
    pytest.importorskip("nncf")
    float32 = export_openvino(tiny(width=64, mlp_dim=256), tmp_path / "m.xml", images=IMAGES)
    model = tiny(width=64, mlp_dim=256)
    report = export_openvino(model, tmp_path / "i.xml", quantize="int8", calibration=CALIBRATION, batch=batch)
    assert report.operators["FakeQuantize"] > 5 and report.bytes < 0.6 * float32.bytes
    assert report.images == 40 and report.agreement > 0.8 and report.quantize == "int8"


def test_int8_of_more_tokens_than_the_width_needs_a_batch(tmp_path):
    pytest.importorskip("nncf")
    model = keras_vit.vit("mu/4", image_size=24, depth=1)  # 37 tokens of 32 values
    images = np.random.default_rng(0).integers(0, 256, (4, 24, 24, 3)).astype("uint8")
    given = dict(quantize="int8", calibration=images, images=images)
    with pytest.raises(RuntimeError, match="cannot run .* more tokens than the model is wide: pass `batch`"):
        export_openvino(model, tmp_path / "i.xml", **given)
    assert not [*tmp_path.iterdir()]
    assert export_openvino(model, tmp_path / "i.xml", batch=2, **given).operators["FakeQuantize"] > 5


@slow
@pytest.mark.parametrize("name", ["set", "masks"])
def test_int8_of_other_tasks(name, tmp_path):
    pytest.importorskip("nncf")
    model, images = KINDS[name]()
    calibration = images.repeat(8, axis=0)
    report = export_openvino(model, tmp_path / "i.xml", quantize="int8", calibration=calibration, images=images)
    assert report.operators["FakeQuantize"] > 5 and report.agreement > 0.9


@slow
def test_int8_keeps_a_trained_model_right(tmp_path):
    """NNCF's own settings for transformers, which move scales into weights, lose 40 % of the digits."""
    pytest.importorskip("nncf")
    from sklearn.datasets import load_digits

    pixels, _ = load_digits(return_X_y=True)
    images = np.kron(pixels[:400].reshape(-1, 8, 8, 1) * 15.9, np.ones((3, 3, 1)))
    images = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0))).astype("uint8")
    model = keras_vit.from_pretrained("mnist")
    report = export_openvino(model, tmp_path / "i.xml", quantize="int8", calibration=images[:200], images=images[200:])
    assert report.agreement > 0.85 and report.mean_abs_diff < 0.02 * report.range


def test_both_files_are_replaced_or_neither(tmp_path, monkeypatch):
    path = tmp_path / "m.xml"
    export_openvino(tiny(), path, images=IMAGES)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match="m.xml' exists. Choose another path, or pass overwrite=True"):
        export_openvino(tiny(), path)
    path.rename(tmp_path / "n.xml")
    with pytest.raises(FileExistsError, match="m.bin' exists. Choose another path, or pass overwrite=True"):
        export_openvino(tiny(), path)
    (tmp_path / "n.xml").rename(path)

    def fails(model, path, **options):
        pathlib.Path(path).write_text("<half")
        raise RuntimeError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(openvino, "save_model", fails)
        with pytest.raises(OSError, match="disk is full. Nothing was kept"):
            export_openvino(tiny(), path, overwrite=True)
        with pytest.raises(OSError, match="disk is full. Nothing was kept"):
            export_openvino(tiny(), tmp_path / "new" / "m.xml")
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    (tmp_path / "other").write_text("of the user")
    export_openvino(tiny(depth=2), path, images=IMAGES, overwrite=True)
    assert (tmp_path / "m.bin").read_bytes() != before[tmp_path / "m.bin"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.bin", "m.xml", "m.xml.json", "other"]


def test_bad_input_is_named_and_writes_nothing(tmp_path, monkeypatch):
    for options, message in (
        (dict(path=tmp_path / "m.onnx"), r"`path` must end in \.xml. Received"),
        (dict(quantize="int4"), "`quantize` must be one of None, 'int8'. Received: quantize='int4'"),
        (dict(calibration=CALIBRATION), "`calibration` is for quantize='int8' and 'int16x8'. Received: quantize=None"),
        (dict(batch=0), "`batch` must be a positive integer. Received: batch=0"),
        (dict(labels=["a"]), "`labels` must be a list of 4 class names. Received: 1"),
    ):
        with pytest.raises(ValueError, match=message):
            export_openvino(tiny(), **{"path": tmp_path / "m.xml", **options})
    pytest.importorskip("nncf")
    points, images = KINDS["points"]()
    with pytest.raises(ValueError, match=r"cannot compile the int8 form of Detect.*Received: quantize='int8'"):
        export_openvino(points, tmp_path / "m.xml", quantize="int8", calibration=images)
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs openvino. Install it: .*\[openvino\].\. Nothing was written"):
        export_openvino(tiny(), tmp_path / "m.xml")
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "m.xml").write_text("<net>")
    with pytest.raises(RuntimeError, match="OpenVINO cannot run the exported file"):
        runtimes.openvino(tmp_path / "m.xml")


@slow
def test_weights_are_not_shared_with_the_memory_of_tensorflow(tmp_path):
    """By default OpenVINO reads them there, also after TensorFlow has given the memory to others."""
    from keras_vit.export import openvino as ours

    model = keras_vit.from_pretrained("mnist")
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28, 1)).astype("float32")
    expected = np.asarray(model(images))
    converted = ours.converted(lambda pixels: {"logits": model(pixels)}, {"images": (28, 28, 1)})
    for variable in model.weights:
        variable.assign(variable * np.nan)
    np.testing.assert_allclose(runtimes.Compiled(converted)(images)["logits"], expected, atol=1e-4)


@pytest.mark.parametrize("name", ["m.bin", "m.xml.json"])
def test_a_folder_of_yours_beside_the_file_is_never_overwritten(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "precious").write_text("")
    with pytest.raises(FileExistsError, match=f"{name}' is a folder but no SavedModel"):
        export_openvino(tiny(), tmp_path / "m.xml", overwrite=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [name, "precious"]

import errno
import json
import os

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit import export_saved_model, from_recipe, vit  # noqa: E402
from keras_vit.export import prepare  # noqa: E402
from keras_vit.models import kinds  # noqa: E402
from keras_vit.models.metadata import keep  # noqa: E402
from keras_vit.traits import Traits  # noqa: E402
from keras_vit.utils import files  # noqa: E402
from keras_vit.utils.keras_private import shapes_only  # noqa: E402


def half_write(path, error):
    with files.destination(path, True) as temporary:
        temporary.write_text("half")
        raise error


def test_an_existing_path_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="exists"), files.destination(path, False):
        pass
    with pytest.raises(OSError, match="broken"):
        half_write(path, OSError("broken"))
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with files.destination(path, True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x"),
        tf.errors.ResourceExhaustedError(None, None, "x; No space left on device\n\t [[node]] [Op:Save]"),
        tf.errors.ResourceExhaustedError(None, None, "{{function_node __wrapped__SaveV2}} x.tempstate1; No space left"),
    ],
    ids=["of Python", "of TensorFlow", "of its SavedModels"],
)
def test_a_full_disk_is_one_sentence_and_leaves_no_new_folder(error, tmp_path):
    (tmp_path / "mine").mkdir()
    for folder in ("mine", "new/newer"):
        with pytest.raises(OSError, match=r"^'.*file' could not be written: the disk is full. Nothing was kept.$"):
            half_write(tmp_path / folder / "file", error)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_what_a_killed_export_left_goes_after_a_day_and_a_running_one_stays(tmp_path):
    with files.destination(tmp_path / "running", False) as running:
        running.write_text("half")
        with files.destination(tmp_path / "killed", False) as killed:
            killed.write_text("half")
            for path in (killed, killed.parent):
                os.utime(path, (0, 0))
            with files.destination(tmp_path / "whole", False) as whole:
                whole.write_text("whole")
            assert running.exists() and not killed.parent.exists()
            killed.parent.mkdir()
            killed.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"running", "killed", "whole"}


def test_a_folder_of_yours_is_never_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError, match="no SavedModel"), files.destination(tmp_path / "mine", True):
        pass
    assert (tmp_path / "mine").exists()


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), files.destination(tmp_path / "file" / "inside", False):
        pass


def test_another_backend_is_an_error(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow.*'jax'"):
        prepare.need_tensorflow_backend("A SavedModel")


def two_outputs():
    inputs = keras.Input((8, 8, 3))
    flat = keras.layers.Flatten()(inputs)
    return keras.Model(inputs, [keras.layers.Dense(3)(flat), keras.layers.Dense(2)(flat)])


@pytest.mark.parametrize(
    "model, message",
    [
        (keras.layers.Dense(3), "Received: Dense"),
        (
            keras.Sequential([keras.Input((None, None, 3)), keras.layers.GlobalAveragePooling2D()]),
            "take images of a known size",
        ),
        (two_outputs(), "return one tensor of known size, such as a vector of logits.*None, 3"),
    ],
)
def test_a_model_that_is_not_of_images_and_one_tensor_is_an_error(model, message):
    with pytest.raises(ValueError, match=message):
        prepare.check_model(Traits(model))


def test_a_model_that_is_too_large_is_named_before_it_is_built():
    with pytest.raises(ValueError, match=r"less than 2 GB in this format. Received: 'vit_H_14', 2\.5 GB"):
        prepare.check_model(Traits(shapes_only(lambda: vit("H/14", num_classes=10))))


def test_labels_are_counted():
    model = vit("mu/4", image_size=8, num_classes=3)
    prepare.check_labels(Traits(model), ["a", "b", "c"])
    for labels in (["a"], "abc"):
        with pytest.raises(ValueError, match="must be a list of 3 class names"):
            prepare.check_labels(Traits(model), labels)


def test_labels_default_to_the_model_s_metadata():
    assert prepare.facts(Traits(from_recipe("mnist", pretrained=True)), None)["labels"] == list("0123456789")


def test_all_missing_converters_are_in_one_error(monkeypatch):
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None if "ai_edge" in name else name)
    prepare.need(["dynamic", "float16"], onnx=True)
    said = r"^'int8' needs ai_edge_quantizer. Install it: pip install .*\[quantize\].\. Nothing was written.$"
    with pytest.raises(ImportError, match=said):
        prepare.need(["dynamic", "int8"])
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"onnx' needs tf2onnx, onnx, onnxruntime. .*\[quantize,onnx\]"):
        prepare.need(["dynamic", "int8"], onnx=True)


def test_probabilities_are_not_made_of_probabilities():
    model = vit("mu/4", image_size=8, num_classes=3)
    prepare.check_probabilities(Traits(model))
    with pytest.raises(ValueError, match="The model returns probabilities already"):
        prepare.check_probabilities(Traits(keras.Model(model.input, keras.ops.softmax(model.output))))


def test_probabilities_and_thresholds_of_several_labels():
    model = vit("mu/4", image_size=8, num_classes=3)
    logits = np.float32([[1, -2, 0.5]])
    said = prepare.named_outputs(Traits(model), logits, True)["probabilities"]
    np.testing.assert_allclose(np.sum(said), 1, rtol=1e-5)
    kinds.note(model, "labels")
    model.get_layer("rescale").metadata["thresholds"] = [0.2, 0.3, 0.4]
    said = prepare.named_outputs(Traits(model), logits, True)["probabilities"]
    np.testing.assert_allclose(said, 1 / (1 + np.exp(-logits)), rtol=1e-5)
    assert prepare.facts(Traits(model), None)["thresholds"] == [0.2, 0.3, 0.4]
    kinds.note(model, "classes")
    assert "thresholds" not in prepare.facts(Traits(model), None)


def test_a_rule_by_energy_is_not_of_probabilities():
    model = vit("mu/4", image_size=8, num_classes=3)
    rule = {"rule": "energy", "temperature": 1.0, "threshold": -1.0, "rate": 0.05, "quantiles": [-2.0, 0.0]}
    keep(model, unknown=rule)
    about = Traits(model)
    assert prepare.facts(about, None)["unknown"] == rule
    assert "unknown" not in prepare.facts(about, None, True)
    with pytest.raises(ValueError, match="No class may be called 'none of these'"):
        prepare.check_labels(about, ["a", "b", "none of these"])
    keep(model, unknown={**rule, "rule": "neighbours", "k": 1})
    assert prepare.facts(Traits(model), None, True)["unknown"]["k"] == 1  # distances need no logits


@pytest.mark.parametrize("probabilities", [False, True])
def test_the_json_of_a_saved_model_follows_its_outputs(probabilities, tmp_path):
    model = vit("mu/4", image_size=8, num_classes=3)
    keep(model, unknown={"rule": "energy", "temperature": 1.0, "threshold": -1.0, "rate": 0.05, "quantiles": [-2, 0]})
    export_saved_model(model, tmp_path / "saved", probabilities=probabilities)
    stated = json.loads((tmp_path / "saved" / "assets.extra" / "keras_vit.json").read_text())
    assert ("unknown" in stated) != probabilities

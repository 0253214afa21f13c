"""Published YOLOS weights: `tests/golden/yolos` is one of transformers, and what it computes."""

import json
import pathlib
import shutil

import keras
import numpy as np
import pytest

from keras_vit import Detect, from_checkpoint, save_checkpoint, vit
from keras_vit.checkpoints.arguments import arguments_of
from tests.checkpoints.helpers import weights

pytestmark = pytest.mark.backend

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "yolos"


def edges(boxes):
    """Returns top, left, bottom and right of boxes by center, width and height."""
    center, half = boxes[..., 1::-1], boxes[..., 3:1:-1] / 2
    return np.concatenate([center - half, center + half], axis=-1)


@pytest.mark.parametrize("size", ["same", "other"])
def test_boxes_and_logits_are_transformers(size):
    io = np.load(GOLDEN / "io.npz")
    images = io[f"{size}_images"]
    more = {} if size == "same" else {"image_size": images.shape[1:3]}
    task, model = Detect.from_checkpoint(GOLDEN, **more)
    assert task == Detect(classes=("N/A", "person", "N/A 2", "dog", "N/A 4"), head="tokens", most=7)
    assert model.get_layer("rescale").metadata["labels"] == list(task.classes)
    found = np.asarray(task.learner(model)(images))[:, 0]
    np.testing.assert_allclose(found[..., 4:], io[f"{size}_logits"], atol=1e-4)
    np.testing.assert_allclose(found[..., :4], edges(io[f"{size}_boxes"]), atol=1e-4)
    shares = np.exp(io[f"{size}_logits"]) / np.exp(io[f"{size}_logits"]).sum(-1, keepdims=True)
    output = np.asarray(model(images))
    np.testing.assert_allclose(output[..., 4:], shares[..., :-1], atol=1e-4)
    np.testing.assert_allclose(output[..., :4], edges(io[f"{size}_boxes"]).clip(0, 1), atol=1e-4)


def test_the_encoder_alone_is_read_and_classifies_anew():
    _, model = Detect.from_checkpoint(GOLDEN)
    classifier = from_checkpoint(GOLDEN, num_classes=3)
    assert classifier.output_shape == (None, 3)
    ours = weights(model)
    for path, array in weights(classifier).items():
        if not path.startswith("head/"):
            np.testing.assert_array_equal(array, ours[path], err_msg=path)
    assert arguments_of(classifier)["tokens"]["block_positions"] and "position_2/table" in ours


def test_a_detector_of_other_classes_starts_from_the_encoder(tmp_path):
    _, theirs = Detect.from_checkpoint(GOLDEN)
    task = Detect(classes=("cat",), head="tokens", most=7)
    model = task.model(variant=None, weights=GOLDEN, image_size=(40, 48))
    np.testing.assert_array_equal(weights(model)["block_1/mlp/fc1/kernel"], weights(theirs)["block_1/mlp/fc1/kernel"])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    images = np.random.default_rng(0).integers(0, 256, (1, 40, 48, 3)).astype("float32")
    np.testing.assert_array_equal(np.asarray(loaded(images)), np.asarray(model(images)))
    larger = task.model(variant=None, weights=tmp_path / "model.keras", image_size=(48, 64))
    assert weights(larger)["position_1/table"].shape == (1, 1 + 7 + 6 * 8, 24)


def test_without_positions_in_blocks_and_without_names(tmp_path):
    import safetensors.numpy

    arrays = safetensors.numpy.load_file(GOLDEN / "model.safetensors")
    del arrays["vit.encoder.mid_position_embeddings"]
    safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors")
    config = json.loads((GOLDEN / "config.json").read_text())
    del config["id2label"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    task, model = Detect.from_checkpoint(tmp_path)
    assert task.classes == ("0", "1", "2", "3", "4") and "position_1/table" not in weights(model)
    kernel = arrays["bbox_predictor.layers.1.weight"]
    np.testing.assert_array_equal(weights(model)["head/box1/kernel"], kernel.T)


def test_other_files_are_refused(tmp_path):
    model = vit("mu/8", image_size=16, num_classes=3)
    save_checkpoint(model, tmp_path / "vit.npz", format="google")
    with pytest.raises(ValueError, match="must be weights of YOLOS or RF-DETR. Received: a model of google"):
        Detect.from_checkpoint(tmp_path / "vit.npz")
    shutil.copytree(GOLDEN, tmp_path / "yolos")
    config = json.loads((GOLDEN / "config.json").read_text())
    (tmp_path / "yolos" / "config.json").write_text(json.dumps({**config, "image_size": [64, 64]}))
    with pytest.raises(ValueError, match="make no grid of 8 x 8"):
        Detect.from_checkpoint(tmp_path / "yolos")
    with pytest.raises(ValueError, match="The weights determine head. Received: head='new'"):
        Detect.from_checkpoint(GOLDEN, head="new")
    import safetensors.numpy

    arrays = safetensors.numpy.load_file(GOLDEN / "model.safetensors")
    body = {name.removeprefix("vit."): array for name, array in arrays.items() if name.startswith("vit.")}
    safetensors.numpy.save_file(body, tmp_path / "yolos" / "model.safetensors")
    with pytest.raises(ValueError, match="must have YOLOS's heads. Received: a file without class_labels_classifier"):
        Detect.from_checkpoint(tmp_path / "yolos")


def test_other_formats_have_no_positions_in_blocks(tmp_path):
    model = vit("mu/8", image_size=16, depth=2, num_classes=3, tokens={"block_positions": True})
    with pytest.raises(ValueError, match="position"):
        save_checkpoint(model, tmp_path / "vit.npz", format="google")
    assert not list(tmp_path.iterdir())

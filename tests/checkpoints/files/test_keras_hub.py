"""Folders of KerasHub: what is in them, what is missing, what is damaged; and from the hub."""

import json
import pathlib
import shutil

import h5py
import numpy as np
import pytest

from keras_vit import from_pretrained
from keras_vit.checkpoints.files import keras_hub
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.read import open_checkpoint
from tests.checkpoints.helpers import unexpected
from tests.hub.helpers import logits

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "keras_hub"


def test_what_a_preset_has():
    with open_checkpoint(GOLDEN / "vit_plain") as checkpoint:
        zeros = checkpoint.read("layers/vi_t_encoder/encoder_layers/vi_t_encoder_block/mlp/dense_1/vars/1")
        np.testing.assert_array_equal(zeros, np.zeros(12, "float32"))
        kernel = checkpoint.read("layers/vi_t_encoder/encoder_layers/vi_t_encoder_block/mlp/dense_1/vars/0")
        assert kernel.dtype == "float32" and kernel.shape == (8, 12) and 0.01 < kernel.std() < 1  # bfloat16 in the file
        assert checkpoint.notes[keras_hub.NOTES]["task"]["pooling"] == "gap"
        assert not any("optimizer" in name for name in checkpoint.shapes)
    with open_checkpoint(GOLDEN / "dinov2") as checkpoint:
        assert checkpoint.shapes["layers/dinov2_embedding/position_embeddings"] == (1, 10, 8)
        assert checkpoint.shapes["layers/dinov2_embedding/register_tokens"] == (1, 2, 8)


def test_a_function_s_name_is_an_activation():
    serialized = {"module": "builtins", "class_name": "function", "config": "softmax", "registered_name": "function"}
    for stated in ("softmax", serialized):
        assert keras_hub.activation({"activation": stated}) == "softmax"
    assert keras_hub.activation({}) is None and keras_hub.activation(None) is None


def test_other_models_are_refused_with_where_the_original_loads(tmp_path):
    (tmp_path / "metadata.json").write_text('{"keras_hub_version": "0.32.0"}')
    for kind, source in [
        ("ResNetBackbone", "google/vit-base-patch16-224"),
        ("SigLIPBackbone", "google/siglip-base-patch16-224"),
        ("DINOV3Backbone", "facebook/dinov3-vits16-pretrain-lvd1689m"),
        ("CLIPBackbone", "openai/clip-vit-base-patch32"),
    ]:
        content = {"registered_name": f"keras_hub>{kind}", "config": {}}
        (tmp_path / "config.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=f"KerasHub, {kind}.*Load it with keras_hub, .*'hf://{source}'$"):
            from_pretrained(tmp_path)


def test_what_is_missing_or_damaged_is_one_sentence(tmp_path):
    names = iter(range(100))

    def read(change, case="vit"):
        folder = tmp_path / str(next(names))
        shutil.copytree(GOLDEN / case, folder)
        change(folder)
        return lambda: from_pretrained(folder)

    def without(name):
        return lambda folder: (folder / name).unlink()

    def holding(name, content):
        return lambda folder: (folder / name).write_bytes(content)

    def cut(name):
        return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:3000])

    def shape(folder):
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            place = "layers/vi_t_encoder/layer_norm/vars/0"
            del file[place]
            file[place] = np.ones(9, "float32")

    def bad(folder):
        with h5py.File(folder / "task.weights.h5", "r+") as file:
            file["layers/dense/vars/0"][0, 0] = np.nan

    def elsewhere(folder):
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            del file["layers/vi_t_encoder/layer_norm/vars/0"]
            file.create_dataset("layers/vi_t_encoder/layer_norm/vars/0", (8,), "f4", external=[("/etc/passwd", 0, 32)])

    def task(folder):
        content = json.loads((folder / "task.json").read_text())
        content["registered_name"] = "mine>Classifier"
        (folder / "task.json").write_text(json.dumps(content))

    def shards(folder):
        (folder / "model.weights.h5").rename(folder / "model.weights.json")

    wrong = unexpected(
        [
            (read(without("model.weights.h5")), "must have model.weights.h5"),
            (read(shards), "must have model.weights.h5: its weights are in several files, model.weights.json"),
            (read(without("task.weights.h5")), "must have task.weights.h5"),
            (read(without("task.json")), "must have task.json"),
            (read(without("config.json")), "its preset has no config.json"),
            (read(without("image_converter.json"), "dinov2"), "Nothing in the preset says how pixels were prepared"),
            (read(holding("model.weights.h5", b"")), "model.weights.h5: "),
            (read(cut("model.weights.h5")), "model.weights.h5: "),
            (read(cut("task.weights.h5")), "task.weights.h5: "),
            (read(holding("task.json", b"{")), "task.json' cannot be read"),
            (read(holding("config.json", b"[]")), "^'[^']*/config.json' cannot be read: it is not a dictionary$"),
            (read(holding("task.json", b"{}")), "task.json must describe an object of KerasHub"),
            (read(task), "the class in task.json must be of KerasHub. Received: 'mine>Classifier'"),
            (read(shape), r"of another shape: encoder/layer_norm/vars/0 is \(9,\), not \(8,\)"),
            (read(bad), "numbers that are not finite in task/layers/dense/vars/0"),
            (read(elsewhere), "is in another file"),
        ]
    )
    assert not wrong


def test_presets_of_the_hub(hub, tmp_path):
    for case in ("vit", "dinov2"):
        files = {path.name: path.read_bytes() for path in (GOLDEN / case).iterdir()}
        hub.repositories[f"me/{case}"] = files | {"README.md": b"a card", "assets.bin": b"0"}
        np.testing.assert_array_equal(
            logits(from_pretrained(f"hf://me/{case}")), logits(from_pretrained(GOLDEN / case))
        )
    assert not [*(tmp_path / "cache").rglob("assets.bin")]
    with pytest.raises(
        ValueError, match=r"kagglehub.model_download\('keras/vit/keras/vit_base_patch16_224_imagenet'\)"
    ):
        fetch("kaggle://keras/vit/keras/vit_base_patch16_224_imagenet")

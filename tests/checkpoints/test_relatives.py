"""Relatives of models that have a format: the originals' answers, and one sentence with the kind for others."""

import json
import pathlib
import shutil
import warnings

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, save_checkpoint
from keras_vit.models.kinds import name_of
from tests.checkpoints.helpers import assert_same_weights, weights

pytestmark = pytest.mark.backend

FOLDER = pathlib.Path(__file__).parents[1] / "golden" / "relatives"
SAID = {  # the warning, and the kind of the output
    "beit_training": ("BEiT v2 has ImageNet's", "classes"),
    "chinese_clip": ("", "embeddings"),
    "data2vec_shared": ("", "labels"),
    "dinov3_no_registers": ("", "classes"),
    "dual_encoder": ("", "embeddings"),
    "mocov3": ("Those of module.base_encoder are loaded", "classes"),
    "other_decoder": ("Its decoder, 'bert', is none that can be loaded: the image tower alone is", "classes"),
}


@pytest.mark.parametrize("case", SAID)
def test_answers_are_the_original_s(case):
    io, (said, kind) = np.load(FOLDER / case / "io.npz"), SAID[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = from_checkpoint(FOLDER / case, num_heads=3)
    assert np.abs(np.asarray(model(io["x"])) - io["y"]).max() <= 1e-4 and name_of(model) == kind
    told = " ".join(str(warning.message) for warning in caught)
    assert said in told if said else not told


def test_moco_s_images_are_prepared_as_its_authors_do():
    model = from_checkpoint(FOLDER / "mocov3", num_heads=3)
    rescale = model.get_layer("rescale")
    assert rescale.mean == [0.485, 0.456, 0.406] and rescale.metadata["format"] == "timm-moco"
    rule = rescale.metadata["evaluation"]
    assert rule["crop_pct"] == 0.875 and rule["interpolation"] == "bilinear"


def test_no_registers_are_written_and_read(tmp_path):
    model = from_checkpoint(FOLDER / "dinov3_no_registers")
    again = from_checkpoint(save_checkpoint(model, tmp_path / "it", format="huggingface"))
    assert_same_weights(weights(model), weights(again))
    stated = json.loads((tmp_path / "it" / "config.json").read_text())
    assert stated["model_type"] == "dinov3_vit" and stated["num_register_tokens"] == 0


@pytest.mark.parametrize("shared, each", [
    ("encoder.relative_position_bias.", "encoder.layer.{i}.attention.attention.relative_position_bias."),
])  # fmt: skip
def test_positions_of_all_blocks_and_of_each_are_not_added(shared, each, tmp_path):
    arrays = safetensors.numpy.load_file(FOLDER / "data2vec_shared" / "model.safetensors")
    (name,) = (name for name in arrays if name.endswith(f"{shared}relative_position_bias_table"))
    for file in ("config.json", "preprocessor_config.json"):
        shutil.copy(FOLDER / "data2vec_shared" / file, tmp_path)
    prefix, table = name.partition(shared)[0], arrays[name]
    own = {f"{prefix}{each.format(i=i)}relative_position_bias_table": table for i in range(2)}
    safetensors.numpy.save_file(arrays | own, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="relative positions of their own, or share them. Received: both"):
        from_checkpoint(tmp_path)
    safetensors.numpy.save_file({k: v for k, v in arrays.items() if k != name} | own, tmp_path / "model.safetensors")
    assert_same_weights(weights(from_checkpoint(tmp_path)), weights(from_checkpoint(FOLDER / "data2vec_shared")))


@pytest.mark.parametrize("config", [{"model_type": "swin"}, {"architecture": "swin_tiny_patch4_window7_224"}])
def test_a_refusal_names_the_kind_that_the_configuration_states(config, tmp_path):
    names = ("patch_embed.proj.weight", "layers.0.blocks.0.attn.proj.weight")
    safetensors.numpy.save_file({n: np.ones((8, 3, 4, 4), "float32") for n in names}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="|".join(config.values())):
        from_checkpoint(tmp_path)

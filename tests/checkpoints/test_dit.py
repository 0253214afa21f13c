import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_vit import from_checkpoint, load_weights, save_checkpoint
from tests.checkpoints.towers import GENERATION as FOLDER

pytestmark = pytest.mark.backend

HEADS = {"dit": {}, "dit_original": {"num_heads": 3}}


def answer(model, folder):
    io = np.load(folder / "io.npz")
    x = {"images": io["latents_nhwc"], "times": io["timesteps"].astype("float32"), "labels": io["labels"]}
    return np.asarray(model({**x, "labels": x["labels"].astype("int32")})), io["output_nhwc"]


@pytest.mark.parametrize("case", HEADS)
def test_answers_are_the_original_s(case):
    model = from_checkpoint(FOLDER / case / "checkpoint.safetensors", **HEADS[case])
    np.testing.assert_allclose(*answer(model, FOLDER / case), atol=1e-3)
    metadata = model.get_layer("rescale").metadata
    assert metadata["format"] == {"dit": "diffusers-dit", "dit_original": "dit"}[case]
    assert model.get_layer("patches").patch_size == (2, 2) and model.output_shape == (None, 8, 8, 8)


def rewritten(folder, case, change, config=None):
    """Copies a case with other tensors and another configuration."""
    tensors = load_file(FOLDER / case / "checkpoint.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    if case == "dit":
        stated = json.loads((FOLDER / case / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(stated | (config or {})))
    return folder


def test_equal_copies_of_the_conditions_are_read_once(tmp_path):
    def alike(tensors):
        for name in tensors:
            if ".1.norm1.emb." in name:
                tensors[name] = tensors[name.replace(".1.norm1", ".0.norm1")]

    model = from_checkpoint(rewritten(tmp_path, "dit", alike))
    names = {layer.name for layer in model.layers}
    assert "time" in names and "time_1" not in names
    shared, own = answer(model, FOLDER / "dit")[0], tmp_path / "own"
    own.mkdir()
    changed = from_checkpoint(rewritten(own, "dit", lambda tensors: None))
    assert "time_1" in {layer.name for layer in changed.layers}
    assert np.abs(answer(changed, FOLDER / "dit")[0] - shared).max() > 1e-2


def test_a_tensor_too_few_or_too_many(tmp_path):
    (tmp_path / "less").mkdir()
    less = rewritten(tmp_path / "less", "dit_original", lambda tensors: tensors.pop("blocks.1.mlp.fc2.bias"))
    with pytest.raises(ValueError, match="missing in the file: blocks.1.mlp.fc2.bias"):
        from_checkpoint(less, num_heads=3)
    more = rewritten(tmp_path, "dit_original", lambda tensors: tensors.update(extra=np.zeros(3, "float32")))
    with pytest.raises(ValueError, match="not in the model: extra"):
        from_checkpoint(more, num_heads=3)


def test_published_files_are_not_written_or_filled(tmp_path):
    path = FOLDER / "dit_original" / "checkpoint.safetensors"
    model = from_checkpoint(path, num_heads=3)
    with pytest.raises(ValueError, match="`from_pretrained` builds published ones. Received: .*dit_original"):
        load_weights(model, path)
    with pytest.raises(ValueError, match="Received"):
        save_checkpoint(model, tmp_path / "dit.safetensors")
    model.save(tmp_path / "dit.keras")
    again = from_checkpoint(tmp_path / "dit.keras")
    np.testing.assert_array_equal(answer(again, FOLDER / "dit_original")[0], answer(model, FOLDER / "dit_original")[0])


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "ema."])
def test_names_that_training_scripts_write(prefix, tmp_path):
    """Prefixes of `DataParallel` and of compiled models."""

    def renamed(tensors):
        for name in list(tensors):
            tensors[prefix + name] = tensors.pop(name)

    model = from_checkpoint(rewritten(tmp_path, "dit_original", renamed), num_heads=3)
    np.testing.assert_allclose(*answer(model, FOLDER / "dit_original"), atol=1e-3)


def test_the_size_of_the_latents_is_that_of_the_positions(tmp_path):
    """A model of larger images has a longer table, and no other sign of it."""

    def longer(tensors):
        tensors["pos_embed"] = np.random.default_rng(0).normal(size=(1, 64, 24)).astype("float32")

    model = from_checkpoint(rewritten(tmp_path, "dit_original", longer), num_heads=3)
    assert model.output_shape == (None, 16, 16, 8)


@pytest.mark.parametrize("given", [{"head": "new"}, {"grid": (4, 4)}, {"part": "image"}])
def test_what_a_dit_does_not_take_is_refused(given):
    path = FOLDER / "dit_original" / "checkpoint.safetensors"
    name = next(iter(given))
    with pytest.raises(ValueError, match=f"A DiT is loaded whole, as it was saved. Received: {name}="):
        from_checkpoint(path, num_heads=3, **given)
    with pytest.raises(ValueError, match="must be a DiT of timm. Received: "):
        from_checkpoint(path, format="timm")


def test_arguments_and_metadata_of_the_caller():
    path = FOLDER / "dit_original" / "checkpoint.safetensors"
    model = from_checkpoint(path, num_heads=3, mlp_epsilon=1e-5, metadata={"mine": 1})
    assert model.get_layer("block_0").norm2.epsilon == 1e-5
    assert model.get_layer("rescale").metadata["mine"] == 1

import json
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import save_file

import keras_vit
from keras_vit import from_checkpoint
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.models.kinds import name_of
from tests.latents import CLASSES, FILE, GOLDEN, NOISE, pipeline, tensors

pytestmark = pytest.mark.backend


def written(folder, change=lambda arrays: None, config=None):
    """Writes the golden autoencoder with other tensors and another configuration."""
    arrays = tensors()
    change(arrays)
    folder.mkdir(exist_ok=True)
    save_file(arrays, folder / FILE)
    stated = json.loads((GOLDEN / "config.json").read_text()) | (config or {})
    (folder / "config.json").write_text(json.dumps(stated))
    return folder


def decoded(source, **options):
    """Returns what a decoder makes of the golden latents, unscaled, -1 to 1."""
    model = from_checkpoint(source, part="decoder", latent_size=(13, 8), **options)
    return np.asarray(model(np.load(GOLDEN / "io.npz")["latents_nhwc"] * 0.18215)) / 127.5 - 1


ANSWER = np.load(GOLDEN / "io.npz")["decoded_nhwc"]


def test_names_of_before(tmp_path):
    """Files of before 2023 name the attention otherwise, also inside another model."""

    def older(arrays):
        for name in list(arrays):
            short = name
            for now, before in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
                short = short.replace(f"attentions.0.{now}.", f"attentions.0.{before}.")
            arrays[f"vae.{short}"] = arrays.pop(name)

    np.testing.assert_allclose(decoded(written(tmp_path, older)), ANSWER, atol=1e-4)


def test_a_part_alone_and_without_what_is_optional(tmp_path):
    def alone(arrays):
        for name in list(arrays):
            if name.startswith(("encoder.", "quant_conv.", "post_quant_conv.")):
                del arrays[name]

    identity = {"post_quant_conv.weight": np.eye(4, dtype="float32")[..., None, None],
                "post_quant_conv.bias": np.zeros(4, "float32")}  # fmt: skip
    expected = decoded(written(tmp_path / "identity", lambda arrays: arrays.update(identity)))
    np.testing.assert_allclose(decoded(written(tmp_path / "alone", alone)), expected, atol=1e-5)
    with pytest.raises(ValueError, match="must be an autoencoder of latents, AutoencoderKL,"):
        from_checkpoint(tmp_path / "alone", part="encoder")


def test_scale_and_shift_are_the_configuration_s(tmp_path):
    folder = written(tmp_path, config={"scaling_factor": 0.3611, "shift_factor": 0.1159})
    model = from_checkpoint(folder, part="decoder", latent_size=(13, 8))
    z = (np.load(GOLDEN / "io.npz")["latents_nhwc"] - 0.1159) * 0.3611
    np.testing.assert_allclose(np.asarray(model(z)) / 127.5 - 1, ANSWER, atol=1e-4)
    assert from_checkpoint(folder, part="encoder").input_shape == (None, 16, 16, 3)  # `sample_size`


def test_a_file_without_its_configuration(tmp_path):
    path = shutil.copy(GOLDEN / "checkpoint.safetensors", tmp_path)
    with pytest.raises(ValueError, match="No tensor shows the groups and the scale of the latents: put config.json"):
        decoded(path)
    np.testing.assert_allclose(decoded(path, groups=4, scaling_factor=0.18215), ANSWER, atol=1e-4)
    with pytest.raises(ValueError, match="No setting says the size of the images: pass image_size"):
        from_checkpoint(path, part="decoder", groups=4, scaling_factor=0.18215)


@pytest.mark.parametrize(
    "config",
    [{"act_fn": "gelu"}, {"latents_mean": [0.1]}, {"down_block_types": ["AttnDownEncoderBlock2D"]}],
)
def test_what_would_compute_something_else_is_refused(config, tmp_path):
    with pytest.raises(ValueError, match=f"An autoencoder with {next(iter(config))}=.* its images would be wrong"):
        decoded(written(tmp_path, config=config))


def test_other_autoencoders(tmp_path):
    with pytest.raises(ValueError, match="must be an AutoencoderKL. Received: .* of 'AsymmetricAutoencoderKL'"):
        decoded(written(tmp_path, config={"_class_name": "AsymmetricAutoencoderKL"}))

    def first_names(arrays):
        """Those of the latent diffusion's authors."""
        for name in list(arrays):
            arrays[name.replace("up_blocks", "up").replace("down_blocks", "down")] = arrays.pop(name)

    for part in ("decoder", "encoder"):
        with pytest.raises(ValueError, match="must be an autoencoder of latents, AutoencoderKL, of diffusers"):
            from_checkpoint(written(tmp_path, first_names), part=part)


def test_a_tensor_too_few_or_too_many(tmp_path):
    with pytest.raises(ValueError, match="missing in the file: decoder.mid_block.attentions.0.to_q.bias"):
        decoded(written(tmp_path, lambda arrays: arrays.pop("decoder.mid_block.attentions.0.to_q.bias")))
    with pytest.raises(ValueError, match="not in the model: decoder.more"):
        decoded(written(tmp_path, lambda arrays: arrays.update({"decoder.more": np.zeros(2, "float32")})))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"part": None}, "Of an autoencoder, a part is loaded: part='decoder', .*Received: part=None"),
        ({"part": "image"}, "a part is loaded.*Received: part='image'"),
        ({"part": "decoder", "head": "new"}, "loaded as it was saved. Received: part='decoder', head='new'"),
        ({"part": "decoder", "num_classes": 3}, "`overrides` must be a dictionary with keys among image_size, "),
        ({"part": "encoder", "text": {}}, "loaded as it was saved. Received: part='encoder', text={}"),
    ],
)
def test_other_requests(given, message):
    with pytest.raises(ValueError, match=message):
        from_checkpoint(GOLDEN / "checkpoint.safetensors", **given)


def test_a_file_of_keras(tmp_path):
    from_checkpoint(GOLDEN / "checkpoint.safetensors", part="decoder").save(tmp_path / "decoder.keras")
    with pytest.raises(ValueError, match="read by keras.models.load_model"):
        from_checkpoint(tmp_path / "decoder.keras", part="decoder")
    again = keras.models.load_model(tmp_path / "decoder.keras")
    assert again.get_layer("rescale").metadata["format"] == "diffusers-decoder"


def test_a_folder_with_a_dit(tmp_path):
    model = from_checkpoint(pipeline(tmp_path / "a"))
    metadata = model.get_layer("rescale").metadata
    assert name_of(model) == "noise" and keras_vit.class_names(model) == tuple(CLASSES)
    assert metadata[AUTOENCODER] == str(tmp_path / "a") and metadata["schedule"]["beta_end"] == 0.02
    assert from_checkpoint(tmp_path / "a", part="encoder").output_shape == (None, 8, 8, 8)
    unnamed = from_checkpoint(pipeline(tmp_path / "b", id2label=None))
    assert "labels" not in unnamed.get_layer("rescale").metadata


@pytest.mark.parametrize(
    ("index", "noise", "message"),
    [
        ({"_class_name": "PixArtAlphaPipeline"}, {}, "those of a DiTPipeline are read.* a PixArtAlphaPipeline"),
        ({}, {"prediction_type": "v_prediction"}, "prediction_type='v_prediction'"),
        ({}, {"beta_end": "x"}, "scheduler_config.json' cannot be read: A scheduler needs"),
    ],
)
def test_other_folders(index, noise, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        from_checkpoint(pipeline(tmp_path / "a", noise, **index))
    assert from_checkpoint(tmp_path / "a", part="decoder").output_shape == (None, 16, 16, 3)


def test_a_folder_that_lacks_something(tmp_path):
    folder = pipeline(tmp_path / "a")
    (folder / "scheduler" / "scheduler_config.json").unlink()
    with pytest.raises(ValueError, match="needs the settings of its noise. Received: .*without scheduler_config.json"):
        from_checkpoint(folder)
    index = {"_class_name": "DiTPipeline", "transformer": NOISE}
    (folder / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="must have 'vae' in its model_index.json. Received"):
        from_checkpoint(folder)

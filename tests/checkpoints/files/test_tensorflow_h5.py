"""`tests/golden/tensorflow`: tiny models of transformers' TensorFlow classes, and what they compute.

All weights are random. Each folder has the `tf_model.h5` and `config.json` that `save_pretrained` of transformers 4.46
wrote, and in `io.npz` normalized images `x`, `(batch, height, width, channels)`, with the outputs.
"""

import pathlib
import shutil

import h5py
import keras
import numpy as np
import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.files.tensorflow_h5 import pytorch_name
from keras_vit.tasks.pretrain.masked import MaskedAutoencoder
from tests.checkpoints.helpers import everything, unexpected

pytestmark = pytest.mark.backend
GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "tensorflow"


def outputs(path, x, **options):
    model = from_checkpoint(path, **options)
    past_rescaling = keras.Model(model.get_layer("patches").input, model.output)
    return keras.ops.convert_to_numpy(past_rescaling(x))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("case", "wanted", "change"),
    [
        ("vit", lambda io: io["logits"], None),
        ("deit", lambda io: io["logits"], None),
        ("vit_model", lambda io: io["tokens"][:, 0], None),
        ("clip_vision", lambda io: io["pooled"], None),
        ("clip", lambda io: io["embedding"], unit),  # TFCLIPModel normalizes it
    ],
)
def test_outputs_are_those_of_the_original(case, wanted, change):
    io = np.load(GOLDEN / case / "io.npz")
    found = outputs(GOLDEN / case / "tf_model.h5", io["x"])
    np.testing.assert_allclose(change(found) if change else found, wanted(io), atol=1e-5)


def test_the_masked_autoencoder_is_the_original_s():
    io = np.load(GOLDEN / "mae" / "io.npz")
    learner = MaskedAutoencoder.from_checkpoint(GOLDEN / "mae" / "tf_model.h5", mean=0.0, std=1 / 255)
    packed = keras.ops.convert_to_numpy(learner({"images": io["x"], "noise": io["noise"]}))
    np.testing.assert_allclose(packed[..., :-1], io["logits"], atol=1e-4)
    np.testing.assert_array_equal(packed[..., -1], io["mask"])


def test_a_directory_and_another_size(tmp_path):
    for name in ("tf_model.h5", "config.json"):
        shutil.copy(GOLDEN / "vit" / name, tmp_path)
    assert from_checkpoint(tmp_path, image_size=(16, 20), num_classes=5).output_shape == (None, 5)


def test_names():
    assert pytorch_name("clip/tfclip_model/clip/visual_projection/kernel:0") == "visual_projection.weight"
    assert pytorch_name("vit/tf_vi_t_model/vit/embeddings/cls_token:0") == "vit.embeddings.cls_token"
    names = everything(GOLDEN / "vit" / "tf_model.h5")
    assert "vit.encoder.layer.1.attention.attention.query.weight" in names and len(names) == 40
    assert names["vit.embeddings.patch_embeddings.projection.weight"].shape == (16, 3, 4, 4)


def test_bad_files(tmp_path):
    whole = (GOLDEN / "vit" / "tf_model.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.h5").write_bytes(b"no weights")
    with h5py.File(tmp_path / "bomb.h5", "w") as file:
        file.create_dataset("a/b/kernel:0", (10**5, 10**5), "f4", compression="gzip", chunks=(10**3, 10**3))
    with h5py.File(tmp_path / "elsewhere.h5", "w") as file:
        file.create_dataset("a/b/kernel:0", (2, 2), "f4", external=[("/etc/hostname", 0, 16)])
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file["a/b/c/kernel:0"] = np.ones((2, 2), "int32")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["dense/dense/kernel:0"] = np.ones((2, 2), "float32")
    assert not unexpected(
        [
            (lambda: everything(tmp_path / "cut.h5"), "cut.h5' cannot be read"),
            (lambda: everything(tmp_path / "text.h5"), "text.h5' cannot be read"),
            (lambda: everything(tmp_path / "bomb.h5"), "claims to contain 40,000,000,000 bytes"),
            (lambda: everything(tmp_path / "elsewhere.h5"), "a/b/kernel:0 is in another file"),
            (lambda: everything(tmp_path / "whole.h5"), "weights must be floats"),
            (lambda: from_checkpoint(tmp_path / "other.h5"), "must be a Vision Transformer of google, timm, hugg"),
        ]
    )


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_keras_s_own_files_say_what_to_do(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.save_weights(tmp_path / "best.weights.h5")
    model.save(tmp_path / "whole.h5")
    shutil.copy(tmp_path / "best.weights.h5", tmp_path / "renamed.h5")
    again = r"weights of a Keras model without the model. Build .* call model.load_weights\(path\)"
    assert not unexpected(
        [
            (lambda: from_checkpoint(tmp_path / "best.weights.h5"), again),
            (lambda: from_checkpoint(tmp_path / "renamed.h5"), again),
            (lambda: from_checkpoint(tmp_path / "whole.h5"), "Load it with keras.models.load_model, and save it as .k"),
        ]
    )

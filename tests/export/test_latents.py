"""An autoencoder's parts, exported: latents of any size go in, and pixels or moments come out."""

import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.models.autoencoder import latent_decoder, latent_encoder
from keras_vit.traits import Traits
from tests.export.test_noise import FORMATS
from tests.latents import SIZES, pipeline, spread
from tests.marks import few, slow

Z = np.random.default_rng(0).normal(0, 5, (3, 2, 4, 2)).astype("float32")  # some beyond 8


@slow
@few(1)
@pytest.mark.parametrize("name", FORMATS)
def test_parts_are_exported(name, tmp_path):
    if name.endswith(("onnx", "xml")):
        pytest.importorskip({"a.onnx": "tf2onnx", "a.xml": "openvino"}[name])
    write, load, facts = FORMATS[name]
    decoder = spread(latent_decoder(latent_size=(2, 4), **SIZES))
    assert np.abs(Z).max() > 8
    report = write(decoder, tmp_path / name, images=Z)
    run, _ = load(tmp_path / name)
    np.testing.assert_allclose(run(Z), np.asarray(decoder(Z)), atol=1e-5 * report.range + 1e-3)
    assert json.loads((tmp_path / facts).read_text())["preprocessing"] is None
    encoder = spread(latent_encoder(image_size=(4, 8), **SIZES))
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 8, 3)).astype("uint8")
    write(encoder, tmp_path / name, images=images, overwrite=True)
    run, _ = load(tmp_path / name)
    np.testing.assert_allclose(run(images.astype("float32")), np.asarray(encoder(images)), atol=1e-4)


def test_what_a_file_of_a_published_model_says(tmp_path):
    from keras_vit.export import prepare

    model = keras_vit.from_pretrained(pipeline(tmp_path / "dit"))
    said = prepare.facts(Traits(model), None)["sampling"]
    assert said["times"] == [0, 1000.0] and said["schedule"]["beta_end"] == 0.02 and said["autoencoder"].endswith("dit")
    assert list(prepare.named_outputs(Traits(model), "x", False)) == ["noise"]

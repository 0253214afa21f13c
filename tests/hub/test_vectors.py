"""A classifier that tells unknown images by vectors of training images, on the hub and back."""

import json

import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit.checkpoints.files import repository
from keras_vit.explain.embedding import unit
from keras_vit.models.metadata import keep, metadata
from keras_vit.runs import unknown

RNG = np.random.default_rng(0)
ENERGY = {"rule": "energy", "temperature": 1.0, "threshold": -1.0, "rate": 0.05, "quantiles": [-2.0, 0.0]}


@pytest.fixture
def file(tmp_path):
    """A model of the rule `neighbours`, in a file, and a picture."""
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    kept = unit(RNG.normal(size=(20, 32))).astype("float32")
    keep(model, unknown={"rule": "neighbours", "k": 1, "sha256": unknown.digest(kept), "threshold": 0.1, "rate": 0.05,
                         "quantiles": np.linspace(0, 1, 101).tolist()})  # fmt: skip
    unknown.save(model, kept, tmp_path / "calibrated.keras")
    Image.fromarray(RNG.integers(0, 256, (8, 8, 3)).astype("uint8")).save(tmp_path / "x.png")
    return tmp_path / "calibrated.keras"


def predicted(target, file):
    return keras_vit.predict(target, [file.parent / "x.png"])


def test_the_vectors_are_published_with_the_model(file, hub, tmp_path):
    assert unknown.vectors_file(repository.TRAINED).name == repository.VECTORS
    here = predicted(file, file)
    assert "none of these" in str(here)
    keras_vit.push_to_hub(file, "me/x")
    assert json.loads(hub.repositories["me/x"]["keras_vit.json"])["files"][repository.VECTORS]
    assert predicted("hf://me/x", file) == here
    again = keras_vit.push_to_hub("hf://me/x", "me/y", folder=tmp_path / "again")  # also where it was downloaded
    assert predicted(again, file) == predicted(tmp_path / "again" / "model.keras", file) == here
    (tmp_path / "again" / repository.VECTORS).unlink()
    with pytest.raises(ValueError, match="is not complete: it has no model.vectors.npz"):
        keras_vit.predict(again, [tmp_path / "x.png"])
    energy = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    keep(energy, unknown=ENERGY)
    keras_vit.push_to_hub(energy, "me/x")  # takes the vectors of the model before away
    assert repository.VECTORS not in hub.repositories["me/x"]
    assert keras_vit.load_run("hf://me/x").task.unknown == ENERGY


def test_a_run_has_them_too(run, file, tmp_path):
    model, kept = keras_vit.load_run(run).model, RNG.normal(size=(5, 16)).astype("float32")
    rule = {**metadata(keras_vit.load_run(file).model)["unknown"], "sha256": unknown.digest(kept)}
    keep(model, unknown=rule)
    unknown.save(model, kept, run / "calibrated.keras")
    keras_vit.push_to_hub(run / "calibrated.keras", "me/run", folder=tmp_path / "new")
    images = RNG.integers(0, 256, (2, 8, 8, 1)).astype("float32")
    there, here = (keras_vit.load_run(path).viewer()(images) for path in (tmp_path / "new", run / "calibrated.keras"))
    assert there.shape == (2, 11)
    np.testing.assert_allclose(there, here, rtol=1e-5)


def test_a_model_in_memory_is_published_without_the_rule(file, tmp_path):
    model = keras_vit.load_run(file).model
    for i, target in enumerate((model, keras_vit.load_run(file))):
        if i:
            unknown.vectors_file(file).unlink()
            with pytest.raises(FileNotFoundError, match="which must be in .*calibrated.vectors.npz"):
                keras_vit.push_to_hub(target, "me/x", folder=tmp_path / str(i))
            assert not (tmp_path / str(i)).exists()
            continue
        with pytest.warns(UserWarning, match="is published without its rule for unknown images"):
            keras_vit.push_to_hub(target, "me/x", folder=tmp_path / str(i))
        assert "none of these" not in str(predicted(tmp_path / str(i), file))
    assert metadata(model)["unknown"]["rule"] == "neighbours"

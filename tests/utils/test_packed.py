import io
import json
import pathlib
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.training.rundir import read_model
from keras_vit.utils import packed

SHIPPED = pathlib.Path(__file__).parents[2] / "saved_models"


def repacked(path, source, **parts):
    """Writes a `.keras` file with other parts, packed; returns its path."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, parts.get(name.partition(".")[0], old.read(name)))
    return path


@pytest.fixture
def saved(tmp_path):
    model = keras_vit.vit("mu/4", image_size=8, num_classes=2)
    model.save(tmp_path / "model.keras")
    return tmp_path / "model.keras"


def zeros_packed(count):
    file = io.BytesIO()
    with h5py.File(file, "w") as weights:
        weights.create_dataset("a", (count,), "float32", chunks=(2**20,), compression="gzip", fillvalue=0)
    return file.getvalue()


def large(saved):
    with zipfile.ZipFile(saved) as file:
        text = file.read("config.json").decode()
    config = json.loads(text)
    for layer in config["config"]["layers"]:
        if layer["name"] == "head":
            layer["config"]["units"] = 2**26
            layer.pop("build_config", None)
    return json.dumps(config)


def test_what_fills_far_more_memory_than_it_has_bytes_is_refused(saved, tmp_path):
    hostile = {
        "a part": repacked(tmp_path / "a.keras", saved, model=bytes(2**28)),
        "a configuration": repacked(tmp_path / "b.keras", saved, config=b" " * 2**28),
        "an array": repacked(tmp_path / "c.keras", saved, model=zeros_packed(2**28)),
        "a model": repacked(tmp_path / "d.keras", saved, config=large(saved)),
    }
    for name, path in hostile.items():
        assert path.stat().st_size < 2**20, name
        for read in (packed.check_packed, read_model, keras_vit.from_pretrained, keras_vit.AnomalyDetector.load):
            with pytest.raises(ValueError, match="is packed too tightly to be a model: from |claims to contain"):
                read(path)


def test_other_files_are_left_to_keras(saved, tmp_path):
    packed.check_packed(saved)
    packed.check_packed(repacked(tmp_path / "a.keras", saved))  # packed as other programs do
    assert (
        keras_vit.from_pretrained(tmp_path / "a.keras").count_params() == keras.models.load_model(saved).count_params()
    )
    for path in SHIPPED.glob("*.keras"):
        packed.check_packed(path)
    (tmp_path / "b.keras").write_bytes(b"no file")
    packed.check_packed(tmp_path / "b.keras")
    zipfile.ZipFile(tmp_path / "c.keras", "w").close()
    packed.check_packed(tmp_path / "c.keras")
    packed.check_packed(repacked(tmp_path / "d.keras", saved, config=b"{}", model=np.zeros(9).tobytes()))
    with pytest.raises(FileNotFoundError):
        packed.check_packed(tmp_path / "none.keras")

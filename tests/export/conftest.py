"""A file that several tests read, and exports without a profile."""

import keras
import pytest


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A small model, its TFLite file in float32, and the report."""
    pytest.importorskip("tensorflow")
    from keras_vit import export_tflite
    from tests.export.small import IMAGES, tiny

    keras.utils.set_random_seed(0)
    model, path = tiny(), tmp_path_factory.mktemp("exported") / "m.tflite"
    return model, path, export_tflite(model, path, images=IMAGES)


@pytest.fixture
def untimed(monkeypatch):
    """Leaves out the measurement of time and memory, which takes as long as an export."""
    from keras_vit.export import runtimes

    monkeypatch.setattr(runtimes, "profile", lambda path: {"ms": {}})

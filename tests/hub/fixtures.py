import numpy as np
import pytest

import keras_vit
from keras_vit.config import override
from tests.hub.loopback import Hub
from tests.small import small


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on loopback, which `huggingface_hub` takes for the real one, and an empty cache."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="the hub needs huggingface_hub")
    hub = Hub()
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    yield hub
    hub.stop()


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run of two steps on arrays, with a TFLite file."""
    folder = tmp_path_factory.mktemp("runs") / "cells"
    random = np.random.default_rng(0)
    arrays = (random.integers(0, 256, (16, 8, 8, 1)).astype("uint8"), np.arange(16) % 10)
    recipe = override(small(), {"optim.epochs": 1, "data.batch_size": 8, "optim.warmup_epochs": 0})
    keras_vit.fit(recipe, folder, train=arrays, validation=arrays, verbose=False)
    keras_vit.export_tflite(keras_vit.load_run(folder).model, folder / "model.tflite")
    return folder

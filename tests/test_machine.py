import importlib.metadata
import json
import os

import keras
import pytest

from keras_vit import machine

pytestmark = pytest.mark.backend


def test_devices_and_versions_are_told():
    told = json.loads(json.dumps(machine.describe()))
    assert f"{os.cpu_count()} CPU cores" in told["device"]
    assert told["backend"] == keras.backend.backend()
    assert told["keras"] == keras.__version__
    assert told[told["backend"]] == importlib.metadata.version(told["backend"])


def test_what_is_not_installed_is_not_told(monkeypatch):
    monkeypatch.setattr(machine, "PACKAGES", ("keras", "no-such-package"))
    assert "no-such-package" not in machine.describe()

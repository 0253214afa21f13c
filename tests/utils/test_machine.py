import importlib.metadata
import json

import keras
import pytest

import keras_vit
from keras_vit.utils import machine
from keras_vit.utils.cores import cores

pytestmark = pytest.mark.backend


def test_devices_and_versions():
    facts = json.loads(json.dumps(machine.describe()))
    assert f"{cores()} CPU cores" in facts["device"]
    assert facts["backend"] == keras.backend.backend()
    assert facts["keras"] == keras.__version__
    assert facts["keras_vit"] == keras_vit.__version__
    assert facts[facts["backend"]] == importlib.metadata.version(facts["backend"])


def test_a_package_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setattr(machine, "PACKAGES", ("keras", "no-such-package"))
    assert "no-such-package" not in machine.describe()

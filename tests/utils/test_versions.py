import importlib.metadata
import pathlib
import re

import pytest

from keras_vit.utils import versions

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("old", ["2.15.0", "3.8.0", "3.15.0", "3.9.2.dev2025"])
def test_an_older_keras_is_named_in_one_sentence(old, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: old)
    with pytest.raises(
        ImportError, match=rf"needs Keras 3.15.1 or newer: pip install.*Received: Keras {re.escape(old)}$"
    ):
        versions.check_keras()


@pytest.mark.parametrize("new", ["3.15.1", "3.16.0", "3.100.0", "4.0.0", "3.16.0.dev2026"])
def test_a_newer_one_passes(new, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: new)
    versions.check_keras()


def test_one_that_is_not_installed_under_its_name_is_left_to_the_import(monkeypatch):
    def none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", none)
    versions.check_keras()


def test_the_bound_is_that_of_the_package():
    assert f'"keras>={versions.KERAS},<' in (ROOT / "pyproject.toml").read_text()

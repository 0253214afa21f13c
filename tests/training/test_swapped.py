"""Files that were copied from one run directory into another."""

import shutil

import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.training.fit import fit
from tests.small import small


def test_files_of_another_run_are_refused(tmp_path, eagerly):
    for name, seed in (("a", 0), ("b", 1)):
        fit(config.override(small(), {"seed": seed}), tmp_path / name, verbose=0)
    state_of_b = next((tmp_path / "b").glob("state-*"))
    for file, of_b, said in (
        ("model.keras", "model.keras", "model.keras' is a model of another run"),
        ("recipe.json", "recipe.json", "model.keras' is a model of another run"),
        ("state-9999999999" + state_of_b.name[16:], state_of_b.name, "is the training state of another run"),
    ):
        swapped = tmp_path / file.replace(".", "_")
        shutil.copytree(tmp_path / "a", swapped)
        shutil.copy(tmp_path / "b" / of_b, swapped / file)
        resume = lambda: fit(config.override(small(), {"seed": 0}), swapped, verbose=0)  # noqa: B023, E731
        with pytest.raises(ValueError, match=said):
            resume() if file.startswith("state") else keras_vit.load_run(swapped)

import dataclasses
import json

import pytest

import keras_vit
from keras_vit import config

pytestmark = pytest.mark.backend


def test_old_names_of_options_still_change_a_recipe():
    recipe = keras_vit.load_recipe("digits")
    with pytest.warns(DeprecationWarning, match="optim.label_smoothing is now task.label_smoothing"):
        changed = config.override(recipe, {"optim.label_smoothing": 0.25, "optim.epochs": 3})
    assert changed.task.label_smoothing == 0.25 and changed.optim.epochs == 3
    with pytest.warns(DeprecationWarning, match="metrics is now task.metrics"):
        assert config.override(recipe, {"metrics": ("partial_auc",)}).task.metrics == ("partial_auc",)


def test_recipes_of_earlier_versions_are_read():
    task = config.Classify(loss="sigmoid", distill="hard", teacher="a.keras", metrics=("balanced_accuracy",))
    recipe = config.Recipe(name="x", model={}, task=task, optim=config.Optim(epochs=3))
    old = json.loads(json.dumps(config.to_dict(recipe)))
    fields = old.pop("task")
    old["metrics"] = fields.pop("metrics")
    del fields["kind"], fields["classes"]
    old["optim"] |= fields
    assert set(fields) | {"metrics"} == {name.rpartition(".")[2] for name in config.MOVED}
    assert config.from_dict(old) == recipe
    assert "task" not in old  # as it was


def test_an_old_recipe_s_file_is_told_the_new_place(tmp_path):
    text = "from keras_vit.config import *\nrecipe = Recipe(name='x', model={}, optim=Optim(label_smoothing=0.1))"
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=r"It is an option of the task now: task=Classify\(label_smoothing=...\)"):
        keras_vit.load_recipe(tmp_path / "mine.py")


def test_every_option_has_its_new_place():
    fields = {field.name for field in dataclasses.fields(config.Classify)}
    assert {name.removeprefix("task.") for name in config.MOVED.values()} <= fields

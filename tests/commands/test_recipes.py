import csv
import pathlib
import re

import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.commands import recipes
from keras_vit.commands.recipes import stated
from keras_vit.config import cookbook
from keras_vit.models import variants
from tests.commands.helpers import run
from tests.marks import few, slow

SIZES = pathlib.Path(recipes.__file__).with_name("sizes.csv")


def test_list_and_show(capsys):
    run("list")
    listed = capsys.readouterr().out
    assert re.search(r"digits +digits", listed) and re.search(r"B/16 +768 +12 +12 +86,567,656 +17.5", listed)
    run("show", "digits", "optim.epochs=7", "model.depth=2")
    shown = capsys.readouterr().out
    assert "optim.epochs = 7" in shown and "model.depth = 2" in shown and "parameters" in shown


def test_the_list_fits_80_columns_and_says_which_recipes_have_weights(capsys, monkeypatch):
    for width in (80, 100, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        run("list")
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= width, width
        with_weights, without, _ = out.split("\n\n")
        assert with_weights.startswith("Recipes with trained weights:\n") and "\nmnist " in with_weights
        assert without.startswith("Recipes without weights, to train:\n") and "\nimagenet_b16 " in without
    assert re.search(r"mnist  +tfds:mnist  +0.50 M  +131  +99.70% test accuracy", out)


def test_a_configuration_is_shown_on_several_lines(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("show", "mnist")
    lines = capsys.readouterr().out.splitlines()
    assert "augment.layers =" in lines and "                 'kernel_size': (5, 5)," in lines
    assert not [line for line in lines if len(line) > 80 and " = '" not in line]  # texts are whole
    assert recipes.setting("task.metrics", ("f1",)) == "task.metrics = ('f1',)"
    (name, *more) = recipes.setting("task.classes", tuple(f"class {i}" for i in range(40))).splitlines()
    assert name == "task.classes =" and len(more) > 5 and max(map(len, more)) <= 80
    address = "https://storage.googleapis.com/" + "x" * 90
    assert recipes.setting("model.weights", address) == f"model.weights = {address!r}"  # to be copied


def sizes():
    return {row["name"]: row for row in csv.DictReader(SIZES.read_text().splitlines())}


def test_what_is_listed_is_what_there_is():
    names = [*keras_vit.list_recipes(), *variants.NAMES]
    assert [*sizes()] == names, "a line in sizes.csv for each recipe, then for each variant"


@few(3)
@pytest.mark.parametrize("name", sorted(keras_vit.list_recipes(), key=len))
def test_what_is_listed_of_a_recipe_is_what_it_says(name):
    recipe = keras_vit.load_recipe(name)
    reached = recipe.reached and (recipe.reached.headline, recipe.reached.minutes)
    said = stated(cookbook.recipe_path(name).read_text(encoding="utf-8"))
    assert said.data == recipe.data.source and (said.headline, said.minutes) == (reached or (None, None))
    assert said.shipped == (recipe.weights is not None)
    assert int(sizes()[name]["parameters"]) == cookbook.model_shapes(recipe).count_params()


@slow
def test_what_is_listed_of_variants_is_what_is_counted():
    for size in keras_vit.list_variants():
        row = sizes()[size.name]
        assert (row["parameters"], row["gmacs"]) == (str(size.parameters), f"{size.gmacs:.2f}"), size.name


def test_wrong_settings_are_an_error_before_any_is_shown(capsys):
    run("show", "digits", "model.depth=0", status=2)
    assert capsys.readouterr() == ("", "error: `depth` must be a positive integer. Received: depth=0\n")


def test_copy(tmp_path, capsys):
    run("copy", "digits", str(tmp_path))
    run("show", str(tmp_path / "digits.py"))
    run("copy", "digits", str(tmp_path), status=2)
    assert "exists" in capsys.readouterr().err
    run("copy", "digits", str(tmp_path / "mine.txt"), status=2)
    assert "'mine.txt" not in capsys.readouterr().out
    run("copy", "digits", str(tmp_path / "none" / "mine.py"), status=2)
    assert f"There is no folder {str(tmp_path / 'none')!r}." in capsys.readouterr().err


def test_a_recipe_is_a_program(tmp_path, capsys):
    run("copy", "digits", str(tmp_path))
    assert "A recipe is a program: run only those that you trust." in capsys.readouterr().out

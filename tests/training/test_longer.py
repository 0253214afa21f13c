"""The command that a finished run names is run."""

import dataclasses
import shlex

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.training import rundir
from keras_vit.training.longer import longer
from tests.commands.helpers import SMALL, run
from tests.marks import slow


def test_a_finished_run_is_trained_further_by_the_command_that_it_names(tmp_path, monkeypatch, capsys, eagerly):
    monkeypatch.chdir(tmp_path)
    run("fit", "digits", *SMALL, "optim.ema=0.5")
    capsys.readouterr()
    run("fit", "digits", *SMALL, "optim.ema=0.5")
    out = capsys.readouterr().out
    program, command = out.splitlines()[0].split("a schedule of its own: python -m ")[1].split(" ", 1)
    assert "already finished" in out and program == "keras_vit"
    words = shlex.split(command)
    assert words[:2] == ["fit", "digits"]
    assert words[-3:] == ["model.weights=runs/digits", "--workdir", "runs/digits-longer"]
    changed = {word.split("=")[0] for word in words[2:-3]}
    assert changed == {"optim.ema", *(word.split("=")[0] for word in SMALL)}  # not what the data say
    run(*[*words[:2], "optim.learning_rate=0.0", *words[2:]])  # the same weights remain
    old, new = (keras_vit.load_run(f"runs/{name}") for name in ("digits", "digits-longer"))
    assert new.class_names == old.class_names
    for a, b in zip(old.model.get_weights(), new.model.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)  # the EMA weights of the first, its head among them
    run("fit", "digits", *SMALL, "optim.ema=0.5", "optim.epochs=3", status=2)
    assert f"optim.epochs=3 {words[-3]} --workdir" in capsys.readouterr().err


@slow
def test_a_run_on_ones_own_arrays_is_trained_further_by_the_call_that_it_names(tmp_path, monkeypatch, capsys, eagerly):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (8, 8, 8, 1)).astype("uint8"), np.arange(8) % 10
    recipe = keras_vit.load_recipe("digits", config.parse(SMALL))
    for _ in range(2):
        keras_vit.fit(recipe, "runs/mine", train=data, validation=data)
    said = [capsys.readouterr().out]
    with pytest.raises(ValueError, match="optim.epochs") as error:
        keras_vit.fit(config.override(recipe, {"optim.epochs": 3}), "runs/mine", train=data, validation=data)
    said = [text.split("a schedule of its own: ")[1] for text in (*said, str(error.value))]
    assert "'optim.epochs': 3" in said[1]
    call = said[0].splitlines()[0]
    assert call.startswith("keras_vit.fit(keras_vit.load_recipe('digits', {") and call.endswith("validation=...)")
    eval(call.replace("...", "data"), {"keras_vit": keras_vit, "data": data})
    assert (tmp_path / "runs" / "mine-longer" / "model.keras").exists()


def test_what_a_recipe_changes_is_in_the_command():
    changes = {"model.width": 64, "data.resize": (9, 9), "task.metrics": ("f1",), "seed": 3, "optim.epochs": 9}
    recipe = keras_vit.load_recipe("digits", changes)
    words = shlex.split(longer("my runs/a", recipe))
    i = words.index("digits")
    again = keras_vit.load_recipe("digits", config.parse(words[i + 1 : -3]))  # without the weights
    assert again == dataclasses.replace(recipe, reached=None) and words[-3:] == [
        "model.weights=my runs/a", "--workdir", "my runs/a-longer",
    ]  # fmt: skip
    assert " fit RECIPE.py optim.epochs=9 " in longer("a", dataclasses.replace(recipe, name="mine"))
    assert rundir.longer is longer

import dataclasses
import json
import os
import sys
import warnings

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.config import cookbook
from keras_vit.runs import results
from keras_vit.tasks.generate.sample_tally import judge_of
from keras_vit.training import devices, rundir
from keras_vit.training.fit import datasets, fit
from tests.marks import few, slow
from tests.small import arrays, small, smoke


@slow
def test_first_losses_are_those_of_the_first_version(tmp_path):
    """Ten steps, one per epoch. The numbers are what the code printed before tasks existed."""
    changes = {"data.limit": 32, "optim.epochs": 10, "optim.warmup_epochs": 2.0, "augment.mixup": 0.2}
    recipe = keras_vit.load_recipe("digits", {**changes, "augment.cutmix": 1.0})
    model, history = keras_vit.fit(recipe, tmp_path, verbose=0)
    losses = [2.302585, 2.302585, 2.285004, 2.250847, 2.215906, 2.194821, 2.176375, 2.172765, 2.163971, 2.161921]
    np.testing.assert_allclose(history["loss"], losses, atol=2e-3)
    image = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 1)).astype("float32")
    np.testing.assert_allclose(np.asarray(model(image))[0, :4], [0.35282, 0.38488, 0.28001, -0.46280], atol=2e-2)


@slow
def test_every_recipe_trains_two_steps(tmp_path, monkeypatch, eagerly):
    """All are planned in `test_cookbook.py`. Wide ones are narrow here."""
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))  # compiling takes the longest
    recipes = [smoke(keras_vit.load_recipe(name)) for name in keras_vit.list_recipes()]
    narrow = {"model.width": 48, "model.num_heads": 3, "model.mlp_dim": 96}
    for recipe in recipes:
        recipe = config.override(recipe, narrow) if recipe.model.get("variant") else recipe
        recipe = config.override(recipe, {"model.num_classes": 2} if recipe.name == "finetune_folder" else {})
        judge = getattr(recipe.task, "judge", "")  # which knows the classes by their names
        recipe = config.override(recipe, {"task.classes": judge_of(judge).names} if judge else {})
        data = arrays(recipe, cookbook.model_shapes(recipe))
        folder = tmp_path / recipe.name
        model, history = keras_vit.fit(recipe, folder, train=data, validation=data, verbose=0)
        planned = cookbook.model_shapes(keras_vit.load_run(folder).bound)  # with the words that it learned
        assert np.isfinite(history["loss"]).all() and model.output_shape == planned.output_shape, recipe.name


def test_the_data_say_how_many_classes_there_are_and_how_large_a_batch_is(tmp_path):
    for kind in "abc":
        (tmp_path / kind).mkdir()
        for i in range(4):
            keras.utils.save_img(tmp_path / kind / f"{i}.png", np.full((8, 8, 1), 9 * i + ord(kind)), scale=False)
    all_of_it = {"data.train": "all", "data.validation": "all", "data.batch_size": 32, "data.limit": None}
    recipe = config.override(small(), {"data.source": f"folder:{tmp_path}", **all_of_it})
    with pytest.raises(ValueError, match="as many classes as the data, 3. Received: 10 classes"):
        datasets(recipe)
    recipe = dataclasses.replace(recipe, model={k: v for k, v in recipe.model.items() if k != "num_classes"})
    with pytest.warns(UserWarning, match="A batch is all 12 training images: data.batch_size is 32."):
        train, _ = datasets(recipe)
    assert [part.shape for part in next(iter(train))] == [(12, 8, 8, 1), (12, 3)]
    arrays = np.zeros((4, 8, 8, 1), "uint8"), np.arange(4)
    with pytest.raises(ValueError, match="A recipe for arrays must set model.num_classes"):
        datasets(recipe, train=arrays, validation=arrays)


def test_a_run_leaves_its_files(run):
    assert {p.name.split("-")[0] for p in run.iterdir()} - {".lock"} == {
        "recipe.json", "machine.json", "data.json", "labels.txt", "history.csv", "state", "best.keras", "model.keras"
    }  # fmt: skip
    last, best = results.load_run(run), results.load_run(run, "best.keras")  # of one epoch
    assert last.recipe == small() and last.class_names == tuple("0123456789")
    assert not last.model.compiled
    for a, b in zip(last.model.get_weights(), best.model.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_a_second_fit_goes_on_and_another_recipe_is_refused(run, eagerly):
    before = (run / "model.keras").read_bytes()
    model, history = fit(small(), run, verbose=0)
    assert len(history["loss"]) == 1 and (run / "model.keras").read_bytes() == before
    np.testing.assert_array_equal(model.get_weights()[0], results.load_run(run).model.get_weights()[0])
    with pytest.raises(ValueError, match=r"another recipe.*Different: optim.learning_rate: 0.002 there, 0.5 here"):
        fit(config.override(small(), {"optim.learning_rate": 0.5}), run, verbose=0)


@slow
def test_how_far_it_is_is_told_in_a_log(tmp_path, capsys, eagerly):
    recipe = config.override(small(), {"optim.epochs": 2})
    fit(recipe, tmp_path / "run")
    first, last = capsys.readouterr().out.splitlines()  # the clock stands still between them
    assert first.startswith("epoch 1/2  compiling") and last.startswith("epoch 2/2  loss ")
    assert "accuracy" in last and "validation" in last and "/s" not in last  # no time went by
    fit(recipe, tmp_path / "run")
    told = capsys.readouterr().out
    assert told.startswith(f"{tmp_path / 'run'}: already finished, all 2 epochs.") and told.count("\n") == 1
    fit(recipe, tmp_path / "run", verbose=0)
    fit(recipe, tmp_path / "quiet", verbose=0)
    assert capsys.readouterr().out == ""
    fit(recipe, tmp_path / "lines", verbose=2)
    assert "Epoch 2/2" in capsys.readouterr().out
    for wrong, said in ({"verbose": 3}, "verbose=3"), ({"tensorboard": "False"}, "tensorboard='False'"):
        with pytest.raises(ValueError, match=f"Received: {said}"):
            fit(recipe, tmp_path / "other", **wrong)
    with pytest.raises(TypeError, match="`workdir` must be a path. Received: workdir=7"):
        fit(recipe, 7)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("verbose", ["auto", 1])
def test_an_error_leaves_the_terminal_on_a_fresh_line(tmp_path, capsys, monkeypatch, verbose, eagerly):
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    recipe = config.override(small(), {"optim.learning_rate": 1e30, "data.limit": 80})
    with pytest.raises(RuntimeError, match=r"loss became (nan|inf) in epoch 1, step 1?\d,"):
        fit(recipe, tmp_path, verbose=verbose)
    assert capsys.readouterr().out.endswith("\n")


def test_the_trained_model_knows_its_classes(run):
    for file in ("model.keras", "best.keras"):
        assert results.load_run(run, file).model.get_layer("rescale").metadata["labels"] == list("0123456789")


def test_labels_may_be_a_column(tmp_path, eagerly):
    """As keras.datasets.cifar10 has them; and images of NumPy's own integers."""
    images, labels = np.zeros((16, 8, 8, 1), "int64"), np.arange(16)[:, None] % 10
    _, history = fit(small(), tmp_path, train=(images, labels), validation=(images, labels), verbose=0)
    assert np.isfinite(history["loss"]).all()


def test_a_class_name_of_two_lines_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    from keras_vit.data import sources

    load = sources.load

    def renamed(*what):
        source = load(*what)
        return dataclasses.replace(source, class_names=("a\nb", *source.class_names[1:]))

    monkeypatch.setattr(sources, "load", renamed)
    with pytest.raises(ValueError, match=r"A class name must be one line.* Received: 'a\\nb'"):
        fit(small(), tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()


def test_other_data_is_refused(run, tmp_path, eagerly):
    arrays = np.zeros((16, 8, 8, 1), "uint8"), np.arange(16) % 10
    with pytest.raises(ValueError, match="a run on other data"):
        fit(small(), run, train=arrays, validation=arrays, verbose=0)
    fit(small(), tmp_path / "arrays", train=arrays, validation=arrays, verbose=0)
    with pytest.raises(ValueError, match="trained on arrays"):
        results.evaluate(tmp_path / "arrays")
    assert 0 <= results.evaluate(tmp_path / "arrays", arrays=arrays).popitem()[1]["accuracy"] <= 1
    with pytest.raises(ValueError, match="must be a pair .*Received: ndarray"):
        results.evaluate(tmp_path / "arrays", arrays=arrays[0])


@pytest.fixture
def pictures(tmp_path):
    """Forty gray pictures of two classes, and the recipe of a run on them."""
    for i in range(40):
        path = tmp_path / "pictures" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(path, np.full((8, 8, 1), i), scale=False)
    splits = {"data.train": "all[:50%]", "data.validation": "all[50%:]", "data.limit": None}
    splits |= {"data.source": f"folder:{tmp_path / 'pictures'}", "model.num_classes": 2, "optim.epochs": 1}
    return sorted((tmp_path / "pictures").rglob("*.png")), config.override(small(), splits)


@slow
def test_other_pictures_of_the_same_names_are_refused(pictures, tmp_path, eagerly):
    files, recipe = pictures
    _, history = fit(recipe, tmp_path / "run", verbose=0)
    for path in files:
        os.utime(path, (1, 1))  # the same pictures, copied anew
    assert fit(recipe, tmp_path / "run", verbose=0)[1] == history
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    assert set(data) == {"arrays", "train", "validation", "train_contents", "validation_contents"}
    keras.utils.save_img(files[3], np.full((8, 8, 1), 200), scale=False)
    with pytest.raises(ValueError, match="a run on other data.*_contents: "):
        fit(recipe, tmp_path / "run", verbose=0)


@slow
def test_images_that_are_split_anew_are_warned_of(pictures, tmp_path, eagerly):
    files, recipe = pictures
    recipe = config.override(recipe, {"data.test": "all[50%:]"})
    rows = [f"{path.parent.name}/{path.name},{path.parent.name},{i // 4}" for i, path in enumerate(files)]
    (tmp_path / "pictures" / "metadata.csv").write_text("\n".join(["file_name,label,patient", *rows]))
    fit(recipe, tmp_path / "run", verbose=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*split differently")
        for changes in (None, {"data.limit": 2}, {"data.fold": (1, 2)}, {"data.bad_images": "skip"}):
            results.evaluate(tmp_path / "run", changes=changes)
    with pytest.warns(UserWarning, match="has other groups than .* so that its images are split differently"):
        results.evaluate(tmp_path / "run", changes={"data.columns": {"groups": "patient"}})
    (tmp_path / "pictures" / "metadata.csv").unlink()
    keras.utils.save_img(files[3].with_name("new.png"), np.full((8, 8, 1), 200), scale=False)
    with pytest.warns(UserWarning, match="has other files than .* so that its images are split differently"):
        results.evaluate(tmp_path / "run", changes={"data.limit": 2})


@slow
def test_the_head_of_other_classes_is_new(pictures, tmp_path, eagerly):
    _, recipe = pictures
    model, _ = fit(recipe, tmp_path / "run", verbose=0)
    longer = config.override(recipe, {"model.weights": str(tmp_path / "run"), "optim.learning_rate": 0.0})
    again, _ = fit(longer, tmp_path / "longer", verbose=0)
    np.testing.assert_array_equal(again.get_layer("head").kernel, model.get_layer("head").kernel)
    (tmp_path / "pictures" / "a").rename(tmp_path / "pictures" / "c")
    with pytest.warns(UserWarning, match=r"The weights are of other classes \(a, b\): the head is new."):
        renamed, _ = fit(longer, tmp_path / "renamed", verbose=0)
    assert not np.asarray(renamed.get_layer("head").kernel).any()
    kept, _ = fit(config.override(longer, {"model.head": "require"}), tmp_path / "kept", verbose=0)
    np.testing.assert_array_equal(kept.get_layer("head").kernel, model.get_layer("head").kernel)


@few(1)
@pytest.mark.parametrize("share", [0, 1])
def test_a_picture_that_goes_bad_is_named(share, pictures, tmp_path, monkeypatch):
    from keras_vit.data import memory

    files, recipe = pictures
    claim = rundir.claim

    def spoil(*given):
        for path in files[1::2]:
            path.unlink() if share else path.write_text("no image")
        return claim(*given)

    monkeypatch.setattr(memory, "SHARE", share)
    monkeypatch.setattr(rundir, "claim", spoil)
    with pytest.raises(ValueError, match=r"\d.png' was readable when it was checked, and now is not: ") as told:
        fit(recipe, tmp_path / "run", verbose=0)
    assert "\n" not in str(told.value) and told.value.__suppress_context__


def test_a_failed_start_leaves_the_directory_free(tmp_path):
    frozen = {"optim.freeze": "all", "optim.lora": 2}, {"optim.freeze": 1, "optim.lora": 2}, {"optim.freeze": 7}
    for changes in ({"model.patch_size": 3}, {"model.pooling": "none"}, *frozen):
        with pytest.raises(ValueError):
            fit(config.override(small(), changes), tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()


def test_a_foreign_directory_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="not empty and contains no run"):
        fit(small(), tmp_path, verbose=0)
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]


def test_bad_arrays_are_named_before_anything_is_written(tmp_path):
    images, labels = np.zeros((16, 8, 8, 1), "uint8"), np.arange(16)
    with pytest.raises(ValueError, match="6 outside"):
        fit(small(), tmp_path / "a", train=(images, labels), validation=(images, labels % 10))
    with pytest.raises(ValueError, match="must be given together"):
        fit(small(), tmp_path / "a", train=(images, labels % 10))
    wide = np.zeros((16, 8, 8, 3), "uint8"), labels % 10
    with pytest.raises(ValueError, match=r"shape=\(16, 8, 8, 3\)"):
        fit(small(), tmp_path / "a", train=wide, validation=wide)
    assert not (tmp_path / "a").exists()


@slow
def test_a_teacher_is_asked_for_and_learned_from(tmp_path, eagerly):
    recipe = config.override(small(), {"task.distill": "hard"})
    with pytest.raises(ValueError, match="task.distill needs a teacher"):
        fit(recipe, tmp_path / "run", verbose=0)
    teacher = keras_vit.from_recipe(small())
    with pytest.raises(ValueError, match="A teacher needs task.distill"):
        fit(small(), tmp_path / "run", teacher=teacher, verbose=0)
    _, history = fit(recipe, tmp_path / "run", teacher=teacher, verbose=0)
    assert np.isfinite(history["loss"]).all()
    teacher.save(tmp_path / "teacher.keras")
    named = config.override(recipe, {"task.teacher": str(tmp_path / "teacher.keras")})
    _, again = fit(named, tmp_path / "again", verbose=0)
    assert again["loss"] == history["loss"]


def test_datasets_feed_fit(eagerly):
    train, validation = keras_vit.datasets(small())
    model = keras_vit.from_recipe(small())
    model.compile("adam", keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(train, validation_data=validation, epochs=2, verbose=0).history
    assert len(history["val_accuracy"]) == 2


def test_without_tensorflow_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match="needs TensorFlow"):
        fit(small())

"""What every task must do: train, resume, be saved, evaluated, exported, reported and shown.

Exports and the demo take longest: without KERAS_VIT_SLOW, the other steps are taken.

Of most tasks, those of a single run."""

import dataclasses
import importlib.util
import pathlib
from html import escape

import keras
import numpy as np

import keras_vit
from keras_vit import config
from keras_vit.models.backbone import image_tower, variables_of
from keras_vit.runs import predictions, results
from keras_vit.runs.sampled import draws_images
from keras_vit.training import devices, state
from keras_vit.training.fit import fit, sources_of
from tests.marks import QUICKLY
from tests.small import drawn

TIMES = ("images_per_second", "minutes_left")


class Kill(keras.callbacks.Callback):
    """Ends a training like a crash, after so many batches."""

    def __init__(self, after):
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            raise SystemError("killed")


def run_task_test(
    recipe,
    folder,
    monkeypatch,
    images=(),
    whole=not QUICKLY,
    texts=None,
    exported=not QUICKLY,
    source=True,
    shown=True,
    demo=True,
):
    """Takes a recipe through everything that is done with a task.

    Args:
        recipe: A small `Recipe`, with two steps per epoch or more.
        folder: An empty folder.
        monkeypatch: Pytest's.
        images: Files of images to predict.
        whole: Whether the run is also killed and resumed, reported, and taken as a source of weights.
        texts: A text for the images, for a task that takes one.
        exported: Whether it is exported and shown in the demo.
        source: Whether its encoder is that of a classifier.
        shown: Whether it has a report.
        demo: Whether it is shown in the demo.

    Returns:
        The finished run, as `load_run` returns it.
    """
    recipe = config.override(recipe, {"optim.epochs": 2 if whole else 1, "optim.warmup_epochs": 1.0})
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))  # compiling takes longer than training
    run = folder / "whole"
    fit(recipe, run, verbose=0)
    if whole:
        _resumes(recipe, folder, monkeypatch)
    trained = keras_vit.load_run(run)
    _is_saved(recipe, trained)
    measured = _is_evaluated(trained, exported)
    for found in predictions.predict(trained, images, texts=texts) if images else ():
        assert found and all(isinstance(name, str) and np.isfinite(value) for name, value in found)
    if whole:
        if source:
            _is_a_source_of_weights(recipe, trained)
        page = keras_vit.report(run).read_text() if shown else ""
        for name in next(iter(measured.values())) if shown else ():
            assert escape(trained.task.titled(name)[0]) in page
    if (
        exported and demo and importlib.util.find_spec("gradio") and not draws_images(trained)
    ):  # which have a page of their own
        from keras_vit.demo.page import page as demo_page

        job = next(iter(getattr(trained.task, "jobs", ())), None)
        _answers(demo_page(keras_vit.load_run(run, job=job)), trained.size, texts)
    return trained


def _resumes(recipe, folder, monkeypatch):
    """A run that is killed in its second epoch ends where one ends that is left alone, bit for bit."""
    steps = len(state_of(folder / "whole")[1]["history"]) and _steps(recipe)
    with monkeypatch.context() as patched:
        patched.setattr("keras_vit.training.own_callbacks.tensorboard", lambda _: Kill(steps + 1))
        try:
            fit(recipe, folder / "killed", verbose=0, save_steps=1, tensorboard=True)
        except SystemError:
            pass
        else:
            raise AssertionError("the run was not killed")
    assert not (folder / "killed" / "model.keras").exists()
    fit(recipe, folder / "killed", verbose=0)
    ours, theirs = (state_of(folder / name) for name in ("killed", "whole"))
    assert ours[0].keys() == theirs[0].keys()
    for name, array in theirs[0].items():
        np.testing.assert_array_equal(ours[0][name], array, err_msg=name)
    rows = [[{**row, **dict.fromkeys(TIMES)} for row in notes["history"]] for _, notes in (ours, theirs)]
    np.testing.assert_equal(*rows)
    assert {name for name in rows[0][0] if name != "epoch"} >= {"loss", "val_loss", recipe.task.best[0]}


def state_of(folder):
    arrays, notes, _ = state.newest(folder)
    return arrays, notes


def _steps(recipe):
    train, _ = sources_of(recipe)
    return len(train) // recipe.data.batch_size


def _is_saved(recipe, trained):
    """The model's file loads without code of ours, and `best.keras` is there; the recipe comes back from its file."""
    model, loaded = trained.model, trained.recipe
    assert config.to_dict(loaded) == config.to_dict(recipe) and loaded.task == recipe.task
    given = drawn(model)
    again = keras.models.load_model(trained.file)
    np.testing.assert_array_equal(np.asarray(again(given)), np.asarray(model(given)))
    assert (trained.run / "best.keras").exists()


def _is_evaluated(trained, exported):
    """The exported files give the model's outputs, and all are measured by the task's scores."""
    for one in results.export(trained) if exported else ():
        assert one.max_abs_diff <= 1e-3 * max(one.range, 1e-3)
    measured = results.evaluate(trained)
    files = ["model.keras", "saved_model", "model.tflite"][: 3 if exported else 1]
    assert [pathlib.Path(name).name for name in measured] == files
    first = next(iter(measured.values()))
    assert first and all(np.isfinite(value) for value in first.values())
    for values in measured.values():
        assert values.keys() == first.keys()
        np.testing.assert_allclose(list(values.values()), list(first.values()), atol=0.02)
    return measured


def _answers(page, shape, text=None):
    """The demo's page answers, and draws its answer."""
    see = next(one.fn for one in page.fns.values() if one.name == "see")
    method = next(part.value for part in page.blocks.values() if type(part).__name__ == "Radio")
    shown = see(np.full(shape, 100.0, "float32"), method, text)
    assert isinstance(shown.answer, str) and shown.picture.size and shown.under
    assert method is None or (shown.laid.size and shown.heading)


def _is_a_source_of_weights(recipe, trained):
    """A classifier of other classes starts from the run's encoder."""
    model = keras_vit.from_pretrained(trained.run, part="image", num_classes=3, pooling="gap")
    assert model.output_shape == (None, 3)
    ours = variables_of(image_tower(trained.model))
    for variable in model.weights:
        if variable.path.startswith("block_"):
            np.testing.assert_array_equal(np.asarray(variable), np.asarray(ours[variable.path]), err_msg=variable.path)
    model = {**recipe.model, "weights": str(trained.run)}
    start = dataclasses.replace(recipe, task=trained.task, model=model, name="again")  # of the words of the data
    assert keras_vit.from_recipe(start).output_shape == trained.model.output_shape

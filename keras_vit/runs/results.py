"""Evaluates, exports and visualises a trained model."""

import math
import os
import pathlib
import warnings

import numpy as np

from keras_vit.explain.relevance import has_classes
from keras_vit.export import export_onnx, export_saved_model, export_tflite, runtimes
from keras_vit.export.prepare import need
from keras_vit.export.quantize import CALIBRATED, FORMATS
from keras_vit.models.outputs import fitting, num_classes
from keras_vit.runs.trained import Found, find, predictor, read
from keras_vit.runs.trained import load_run as load_run
from keras_vit.tasks.base import Task, are_shares
from keras_vit.training import rundir
from keras_vit.training.devices import need_tensorflow
from keras_vit.utils import checks
from keras_vit.utils.files import check_free, replacing

OUTPUTS = 2**26  # numbers that a model returns for all images on which its exports are compared, at most


def evaluate(
    target: os.PathLike | str | Found, split: str | None = None, *, arrays: tuple | None = None
) -> dict[str, dict[str, float]]:
    """Evaluates a trained model and its exports by the scores of its task.

    Memory does not grow with the number of images, except for `"partial_auc"`.

    Args:
        target: As in `load_run`.
        split: Such as `"test[:50%]"`; the recipe's test split if `None`.
        arrays: `(images, labels)`, or images and the task's other targets, to evaluate on in place of the recipe's
            data; needed for a run on arrays, and for a `.keras` file outside a run directory. Images have the model's
            size: a file's model sees them as they are, a run's after `data.resize`, as in training.

    Returns:
        A dictionary from files to dictionaries from scores, such as `"accuracy"`, to numbers. Each export runs in its
        own runtime.

    Raises:
        ValueError, FileNotFoundError: As `load_run`, and for data that is missing or has other classes.
    """
    need_tensorflow("Evaluation of a recipe")
    from keras_vit.training import evaluation

    found = find(target)
    model, source = found.trained.model, source_of(found, split, arrays)
    artifacts = dict.fromkeys(found.home.glob(rundir.SAVED_MODEL), runtimes.saved_model)
    artifacts |= dict.fromkeys(sorted(found.home.glob("model*.tflite")), runtimes.tflite)
    artifacts |= dict.fromkeys(found.home.glob("model.onnx"), runtimes.onnx)
    measured = {}
    for name, load in {found.file: None, **artifacts}.items():
        run = predictor(model) if load is None else load(name)[0]
        tally, _ = evaluation.tally_of(run, found.task, found.recipe, source, model.input_shape[1:])
        measured[str(name)] = tally.result()
    return measured


def export(target, folder=None, *, quantize=(), onnx=False, overwrite=False):
    """Exports a trained model as SavedModel and TFLite, and on request in smaller formats and as ONNX.

    Formats that need calibration use 256 images of the recipe's training split. They are compared with the model on
    1,000 images of its test split, or fewer large ones, by the task's first score too.

    Args:
        target: As in `load_run`.
        folder: Where to write `saved_model/` and `model.tflite`. If `None`: the run's directory; `NAME/` next to a file
            `NAME.keras`; `exports/NAME` for weights that ship with the package.
        quantize: Formats of `export_tflite`, each also written as `model-FORMAT.tflite`. An existing SavedModel and
            `model.tflite` are then kept.
        onnx: Whether to write `model.onnx` too. An existing SavedModel and `model.tflite` are then kept too.
        overwrite: Whether to replace existing files.

    Returns:
        A list of reports; see `export_tflite`.

    Raises:
        ValueError: As `load_run`; for an unknown format; for calibration of a run on arrays or of a `.keras` file
            outside a run directory: call `export_tflite` there.
    """
    for name in quantize:
        checks.one_of("quantize", name, FORMATS[1:])
    found = find(target)
    (model, _, class_names), recipe = found.trained, found.recipe
    folder = pathlib.Path(folder or found.home)
    more = {"labels": fitting(class_names, num_classes(model)), "overwrite": overwrite}
    planned = {folder / rundir.SAVED_MODEL: (export_saved_model, {}), folder / rundir.TFLITE: (export_tflite, {})}
    if (quantize or onnx) and not overwrite:
        planned = {path: what for path, what in planned.items() if not path.exists()}
    planned |= {folder / f"model-{name}.tflite": (export_tflite, {"quantize": name}) for name in quantize}
    planned |= {folder / "model.onnx": (export_onnx, {})} if onnx else {}
    for path in planned:
        check_free(path, overwrite)
    need(quantize, onnx)
    calibration = None
    if set(quantize) & set(CALIBRATED):
        _need_data(found, "its model and `calibration` to export_tflite")
        calibration = some_images(model, recipe, recipe.data.train, 256)["images"]
        count = max(min(1000, OUTPUTS // math.prod(model.output_shape[1:])), 8)
        examples = some_images(model, recipe, recipe.data.test, count)
        more |= {"images": examples["images"], "score": lambda outputs: _score(found.task, examples, outputs)}
    reports = []
    for path, (write, settings) in planned.items():
        given = {"calibration": calibration} if settings.get("quantize") in CALIBRATED else {}
        reports.append(write(model, path, **settings, **given, **more))
    return reports


def _score(task, examples, outputs):
    tally = task.tally()
    tally.add(examples, outputs)
    return tally.result()


def explain(target, files=(), folder=None):
    """Draws what a trained model attends to, and the training curves of its run.

    Args:
        target: As in `load_run`.
        files: Image files; the first eight images of the test split if empty.
        folder: Where to write `attention.png`, `curves.png` and, for a task that draws its outputs, `pictures.png`; as
            in `export` if `None`.

    Returns:
        The paths of the pictures.
    """
    found = find(target)
    model = found.trained.model
    if not files:
        _need_data(found, "image files")
    examples = {"images": read(found, files)} if files else some_images(model, found.recipe, found.recipe.data.test, 8)
    images = examples["images"]
    from keras_vit import plots
    from keras_vit.training import history

    outputs = found.viewer()(images)
    titles = [_title(found.task.answer(output)) for output in outputs]
    if len(examples) > 1:  # with targets: as the report, what is true and what is predicted
        each = [{name: values[i] for name, values in examples.items()} for i in range(len(images))]
        titles = [found.task.caption(*pair) for pair in zip(outputs, each)]
    folder = pathlib.Path(folder or found.home)
    folder.mkdir(parents=True, exist_ok=True)
    method = "relevance" if has_classes(model) else "rollout"
    figures = {"attention.png": plots.plot_attention(model, images, titles, method)}
    if found.run and (found.run / rundir.HISTORY).exists():
        figures["curves.png"] = plots.plot_history(history.read(found.run))
    if type(found.task).picture is not Task.picture:
        pictures = [found.task.picture(*pair) for pair in zip(images, outputs)]
        figures["pictures.png"] = plots.plot_pictures(pictures, titles)
    for name, figure in figures.items():
        with replacing(folder / name) as temporary:
            figure.savefig(temporary, format="png")
    return [folder / name for name in figures]


def _title(answer):
    name, value = next(iter(answer.items()), ("", 0.0))
    return f"{name} ({value:{'.0%' if are_shares([value]) else '.4g'}})" if name else ""


def source_of(found, split, arrays):
    """Returns the source of images that a trained model is evaluated on, checked against it.

    Args:
        found: The `Found` of `trained.find`.
        split: As in `evaluate`.
        arrays: As in `evaluate`.
    """
    from keras_vit.data import sources

    (model, _, class_names), recipe, task = found.trained, found.recipe, found.task
    shape = task.data_shape(model.input_shape[1:])
    if arrays is not None and split is not None:
        raise ValueError(f"A split is of the recipe's data, in whose place `arrays` are. Received: split={split!r}")
    if arrays is not None:
        wanted = (None, None, shape[2]) if task.whole else shape
        source = sources.from_arrays(arrays, task.targets, wanted, class_names)
    else:
        _need_data(found, "`arrays`, (images, labels)")
        source = sources.load(recipe.data, split or recipe.data.test, task.targets, task.extras)
        _check_splits(found)
        sources.check_channels(source, shape)
    if task.on(source).classes != task.classes:
        sources.same_classes(task.classes, task.on(source).classes)
    return source


def _check_splits(found):
    """Warns if a folder has other files than a run was trained on: parts of `"all"` are then others too."""
    from keras_vit.data import sources

    data, task = found.recipe.data, found.recipe.task
    if found.run is None or not data.source.startswith("folder:") or not data.train.startswith("all"):
        return
    then = rundir.read_json(found.run / rundir.DATA).get("train")
    if then and then != sources.load(data, data.train, task.targets, task.extras).fingerprint():
        warnings.warn(
            f"{data.source!r} has other files than {str(found.run)!r} was trained on, so that its images are split "
            "anew: some that are measured now may have been trained on.",
            stacklevel=3,
        )


def _need_data(found, instead):
    """Raises ValueError, with what to pass instead, if a trained model has no recipe with data."""
    if found.alone:
        raise ValueError(
            f"{found.file!r} has no data: it is outside a run directory. Pass a run directory, or {instead}."
        )
    if found.on_arrays:
        raise ValueError(f"The run in {str(found.run)!r} was trained on arrays. Pass {instead}.")


def some_images(model, recipe, split, count):
    """Returns the first images of a split, resized as in evaluation, and their targets: a dictionary of arrays."""
    need_tensorflow("Reading a recipe's data")
    from keras_vit.data import pipeline, sources

    source = sources.load(recipe.data, split, recipe.task.targets, recipe.task.extras).take(slice(count))
    batches = list(pipeline.evaluation_arrays(source, recipe, model.input_shape[1:]))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}

"""Evaluates, exports and visualizes a trained model."""

import dataclasses
import math
import os
from typing import Any

import keras
import numpy as np

from keras_vit import config
from keras_vit.export import export_onnx, export_openvino, export_saved_model, export_tflite, runtimes
from keras_vit.export.prepare import check_parts_free, need
from keras_vit.export.quantize import CALIBRATED, FORMATS, check_calibrated
from keras_vit.models.inputs import fed
from keras_vit.models.outputs import fitting, num_classes
from keras_vit.preparing.pixel_range import range_of, warn_unscaled
from keras_vit.runs import unknown_scores
from keras_vit.runs.predictions import image_files
from keras_vit.runs.trained import Trained, load_run
from keras_vit.runs.whole_pictures import in_tiles, note_tiles
from keras_vit.training import rundir, splits
from keras_vit.training.devices import need_tensorflow
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

OUTPUTS = 2**26  # numbers that a model returns for all images on which its exports are compared, at most


def evaluate(
    target: os.PathLike | str | keras.Model | Trained,
    split: str | None = None,
    *,
    arrays: Any = None,
    changes: dict | None = None,
    tiles: bool | dict | None = None,
    unknown: os.PathLike | str | None = None,
) -> dict[str, dict[str, float]]:
    """Evaluates a trained model and its exports by the scores of its task.

    Memory does not grow with the number of images, except for `"auc"` and `"partial_auc"`, and for several labels.

    Args:
        target: As in `load_run`.
        split: Such as `"test[:50%]"`; the recipe's test split if `None`.
        arrays: `(images, labels)`, or images and the task's other targets, or a dataset, as in `fit`, to evaluate on in
            place of the recipe's data; needed for a run on such data, for a model, and for a `.keras` file outside a
            run directory. Images have the model's size: a model, or that of a file, sees them as they are, a run's
            after `data.resize`, as in training. Those of a dataset may have any size for a run.
        changes: Other settings of the data, and of what is measured, such as `{"data.source": "folder:photos"}` or
            `{"task.metrics": ("f1", "auc")}`.
        tiles: Of `Detect` and `Segment`, whether pictures are scored at full size, in overlapping tiles, as `predict`
            does; a dictionary has options, as in `Segment`. `None` for what the recipe says.
        unknown: Folder of pictures of none of the classes, for a classifier that `calibrate` gave a threshold for them.
            The model's file, not its exports, then also has the scores `"unknown_auroc"` (area under the ROC curve),
            `"false_alarms"` (share of the split's images that are called "none of these") and `"unknown_found"` (share
            of the folder's).

    Returns:
        A dictionary from files, or the name of a model, to dictionaries from scores, such as `"accuracy"`, to numbers.
        Each export runs in its own runtime.

    Raises:
        ValueError, FileNotFoundError: As `load_run`, and for data that is missing or has other classes.
    """
    need_tensorflow("Evaluation of a recipe")
    from keras_vit.training import evaluation

    trained = _changed(load_run(target), {} if changes is None else changes)
    trained = in_tiles(trained, tiles)
    if unknown is not None:
        unknown_scores.check_rule(trained)
        image_files([unknown])
    source = source_of(trained, split, arrays)
    artifacts, measured = {} if trained.in_memory else _exports(trained.home), {}
    for name, load in {trained.file: None, **artifacts}.items():
        run = trained.answering() if load is None else trained.task.answering(load(name)[0])
        tally, _ = evaluation.tally_of(run, trained.bound, source, trained.size)
        measured[str(name)] = tally.result()
    if unknown is not None:
        measured[trained.file] |= unknown_scores.measured(trained, source, unknown)
    return measured


def _exports(folder):
    """Returns the exported files in a folder, each with the function that loads it."""
    artifacts = dict.fromkeys(folder.glob(rundir.SAVED_MODEL), runtimes.saved_model)
    artifacts |= dict.fromkeys(sorted(folder.glob("model*.tflite")), runtimes.tflite)
    artifacts |= dict.fromkeys(folder.glob("model.onnx"), runtimes.onnx)
    return artifacts | dict.fromkeys(folder.glob("model.xml"), runtimes.openvino)


def _changed(trained, changes):
    """Returns a trained model with other settings of its data, and of what its task measures."""
    if not isinstance(changes, dict):
        raise TypeError(
            "`changes` must be a dictionary, such as {'data.source': 'folder:photos'}. "
            f"Received: {checks.shown(changes)}"
        )
    if not changes:
        return trained
    if trained.alone:
        raise ValueError(
            f"{trained.file!r} has no recipe to change: it is outside a run directory. "
            f"Received: {checks.shown(changes)}"
        )
    free = [f"task.{name}" for name in trained.recipe.task.measured]
    other = next((name for name in changes if not name.startswith("data.") and name not in free), None)
    elsewhere = "data.source" in changes and (trained.on_arrays or changes["data.source"] != trained.recipe.data.source)
    whole = {"data.fold": None, "data.test": trained.recipe.data.test.partition("[")[0]}  # parts were of the own data
    recipe = config.override(trained.recipe, {**whole, **changes} if elsewhere else changes)
    if other:
        raise ValueError(
            f"Of a trained model, {', '.join(['data.source and other settings of data', *free])} can be changed. "
            f"Received: {other}={checks.shown(changes[other])}"
        )
    changed = dataclasses.replace(
        trained, recipe=recipe, on_arrays=trained.on_arrays and not elsewhere, elsewhere=elsewhere
    )
    changed.task.tally()  # names what is not known
    return changed


def export(target, folder=None, *, quantize=(), onnx=False, openvino=False, tiles=None, overwrite=False):
    """Exports a trained model as SavedModel and TFLite, and on request in smaller formats, as ONNX and for OpenVINO.

    Formats that need calibration use 256 images of the recipe's training split. They are compared with the model on
    1,000 images of its test split, or fewer large ones, by the task's first score too.

    Args:
        target: As in `load_run`.
        folder: Where to write `saved_model/` and `model.tflite`. If `None`: the run's directory; `NAME/` next to a file
            `NAME.keras`; `exports/NAME` for weights that ship with the package.
        quantize: Formats of `export_tflite`, each also written as `model-FORMAT.tflite`. An existing SavedModel and
            `model.tflite` are then kept.
        onnx: Whether to write `model.onnx` too. An existing SavedModel and `model.tflite` are then kept too.
        openvino: Whether to write `model.xml` and `model.bin` for OpenVINO too; the same holds.
        tiles: As in `evaluate`. A file is then the model of a tile, and its JSON says under `"tiles"` what a tile
            covers, how much tiles overlap and how their outputs are joined.
        overwrite: Whether to replace existing files.

    Returns:
        A list of reports; see `export_tflite`.

    Raises:
        ValueError: As `load_run`; for an unknown format; for calibration of a run on arrays or of a `.keras` file
            outside a run directory: call `export_tflite` there.
    """
    for name in quantize:
        checks.one_of("quantize", name, FORMATS[1:])
    trained = in_tiles(load_run(target), tiles)
    others = {"model.onnx": export_onnx} if onnx else {}
    others |= {"model.xml": export_openvino} if openvino else {}
    planned = _planned(checks.path("folder", folder or trained.home), quantize, others, overwrite)
    for path in planned:
        check_parts_free(path, overwrite, folder=path.name == rundir.SAVED_MODEL)
    need(quantize, onnx, openvino)
    options = {"labels": fitting(trained.class_names, num_classes(trained.model)), "overwrite": overwrite}
    note_tiles(trained)
    calibration = {}
    if calibrated := set(quantize) & set(CALIBRATED):
        check_calibrated(min(calibrated), Traits(trained.model))
        need_data(trained, "its model and `calibration` to export_tflite")
        calibration = {"calibration": some_images(trained, trained.recipe.data.train, 256)["images"]}
        options |= _scored(trained)
    reports = []
    for path, (write, settings) in planned.items():
        own = calibration if settings.get("quantize") in CALIBRATED else {}
        reports.append(write(trained.model, path, **settings, **own, **options))
    return reports


def _planned(folder, quantize, others, overwrite):
    """Returns what to write, in order: a dictionary from paths to functions and their own arguments."""
    plain = {folder / rundir.SAVED_MODEL: (export_saved_model, {}), folder / rundir.TFLITE: (export_tflite, {})}
    if (quantize or others) and not overwrite:
        plain = {path: what for path, what in plain.items() if not path.exists()}
    smaller = {folder / f"model-{name}.tflite": (export_tflite, {"quantize": name}) for name in quantize}
    return plain | smaller | {folder / name: (write, {}) for name, write in others.items()}


def _scored(trained):
    """Returns test images to compare a model and its exports on, and the score of both: arguments of the exports."""
    count = max(min(1000, OUTPUTS // math.prod(trained.model.output_shape[1:])), 8)
    examples = some_images(trained, trained.recipe.data.test, count)

    def score(outputs):
        tally = trained.task.tally()
        tally.add(examples, outputs)
        return tally.result()

    return {"images": fed(examples, trained.task.inputs), "score": score}


def source_of(trained, split, arrays):
    """Returns the source of images that a trained model is evaluated on, checked against it.

    Args:
        trained: A `Trained`.
        split: As in `evaluate`.
        arrays: As in `evaluate`.
    """
    from keras_vit.data import sources

    if arrays is None:
        other = "" if trained.alone else ", or the change data.source=folder:PATH"  # of a recipe
        need_data(trained, f"`arrays`, (images, labels){other}")
        source = _loaded(trained, split or trained.recipe.data.test)
        _check_splits(trained)
        _check_groups(trained, source)
        return source
    if split is not None:
        raise ValueError(
            f"A split is of the recipe's data, in whose place `arrays` are. Received: split={checks.shown(split)}"
        )
    task, shape = trained.task, trained.task.data_shape(trained.size)
    value_range = range_of(trained.model) if trained.alone else checks.BYTES
    source = sources.of_caller(arrays, trained.bound.data, task, shape, trained.class_names, value_range=value_range)
    if value_range is None and isinstance(source.images, np.ndarray):
        warn_unscaled(trained.model, source.images)
    sizes = {tuple(size) for _, size in source.sizes()} if trained.alone and not task.whole else set()
    if not sizes <= {shape[:2]}:
        raise ValueError(f"The model takes images of {shape[:2]}. Received: images of {sorted(sizes - {shape[:2]})[0]}")
    return _met(trained, sources.check_channels(source, shape))


def some_images(trained, split, count):
    """Returns the first images of a split, resized as in evaluation, and their targets: a dictionary of arrays."""
    need_tensorflow("Reading a recipe's data")
    from keras_vit.data import pipeline

    source = _loaded(trained, split).take(slice(count))
    batches = list(pipeline.evaluation_arrays(source, trained.bound, trained.size))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _loaded(trained, split):
    """Returns a split of the recipe's data, checked against the model."""
    from keras_vit.data import sources

    task = trained.task
    source = sources.load(trained.recipe.data, split, task.targets, task.extras, task.columns, task.clips)
    return _met(trained, sources.check_channels(source, task.data_shape(trained.size)))


def _met(trained, source):
    """Returns a source; ValueError unless it has what the task asks for, of the model's classes."""
    from keras_vit.data import cutting, sources

    source = sources.aligned(source, trained.task.classes)
    if trained.task.whole:
        source = cutting.whole(source, trained.bound)
    else:
        source = cutting.grid(source, trained.bound, trained.task.data_shape(trained.size), every=True)
    task = trained.task.on(source)
    sources.same_classes(trained.task.classes, task.classes)
    return task.read(source)


def _check_splits(trained):
    """Warns if a folder has other files or groups than a run was trained on: parts of `"all"` are then others too."""
    from keras_vit.data import sources

    if trained.run is None or trained.elsewhere:
        return
    data, task = rundir.recipe_of(trained.run).data, trained.task  # as it was trained, whatever is measured
    if not data.source.startswith("folder:") or not data.train.startswith("all"):
        return
    data = dataclasses.replace(data, bad_images="skip")  # one that is damaged since is no error here
    groups, before = ((each.columns or {}).get("groups") for each in (trained.recipe.data, data))
    then = rundir.read_json(trained.run / rundir.DATA).get("train")
    parts = task.targets, task.extras, task.columns, task.clips
    now = then and task.read(sources.load(data, data.train, *parts), training=True).fingerprint()
    if now != then or groups != before:
        warn(
            f"{data.source!r} has other {'groups' if now == then else 'files'} than {str(trained.run)!r} was trained "
            "on, so that its images are split differently: some that are measured now may have been trained on."
        )


def _check_groups(trained, source):
    """Warns if images to measure are of groups that a run was trained on."""
    from keras_vit.data import sources

    data, task = trained.recipe.data, trained.task
    if trained.run is not None and "groups" in (data.columns or {}) and source.groups is not None:
        train = sources.load(data, data.train, task.targets, task.extras, task.columns, task.clips)
        splits.warn_of_groups(train, source, "measured")


def need_data(trained, instead):
    """Raises ValueError, with what to pass instead, if a trained model has no recipe with data."""
    if trained.alone:
        raise ValueError(
            f"{trained.file!r} has no data: it is outside a run directory. Pass a run directory, or {instead}."
        )
    if trained.on_arrays:
        raise ValueError(f"The run in {str(trained.run)!r} was trained on arrays or a dataset. Pass {instead}.")

"""Evaluates, exports, visualises and applies a trained model."""

import math
import os
import pathlib

import numpy as np

from keras_vit import checks
from keras_vit.export import export_onnx, export_saved_model, export_tflite, runtimes
from keras_vit.export.prepare import check_free, need
from keras_vit.export.quantize import CALIBRATED, FORMATS
from keras_vit.preprocessing import preprocess
from keras_vit.trained import Found, find, probabilities
from keras_vit.trained import load_run as load_run
from keras_vit.training import rundir
from keras_vit.training.devices import need_tensorflow

IMAGES, VALUES = 64, 2**24  # files per batch of `predict`, and pixel values per batch, at most


def evaluate(
    target: os.PathLike | str | Found, split: str | None = None, *, arrays: tuple | None = None
) -> dict[str, dict[str, float]]:
    """Evaluates a trained model and its exports by the metrics of its recipe.

    Args:
        target: As in `load_run`.
        split: Such as `"test[:50%]"`; the recipe's test split if `None`.
        arrays: `(images, labels)` to evaluate on in place of the recipe's data; needed for a run on arrays, and for a
            `.keras` file outside a run directory.

    Returns:
        A dictionary from files to dictionaries from the recipe's `metrics`, such as `"accuracy"`, to numbers. Each
        export runs in its own runtime.

    Raises:
        ValueError, FileNotFoundError: As `load_run`, and for data that is missing or has other classes.
    """
    need_tensorflow("Evaluation of a recipe")
    from keras_vit.training import evaluation

    found = find(target)
    model, recipe = found.trained.model, found.recipe
    source = source_of(found, split, arrays)
    measured = {found.file: evaluation.measure_model(model, recipe, source)}
    artifacts = dict.fromkeys(found.home.glob(rundir.SAVED_MODEL), runtimes.saved_model)
    artifacts |= dict.fromkeys(sorted(found.home.glob("model*.tflite")), runtimes.tflite)
    artifacts |= dict.fromkeys(found.home.glob("model.onnx"), runtimes.onnx)
    for path, load in artifacts.items():
        run, _ = load(path)
        outputs = evaluation.logits_of(run, recipe, source, model.input_shape[1:])
        measured[str(path)] = evaluation.measure(recipe.metrics, *outputs)
    return measured


def export(target, folder=None, *, quantize=(), onnx=False, overwrite=False):
    """Exports a trained model as SavedModel and TFLite, and on request in smaller formats and as ONNX.

    Formats that need calibration use 256 images of the recipe's training split. They are compared with the model on
    1,000 images of its test split, by accuracy too.

    Args:
        target: As in `load_run`.
        folder: Where to write `saved_model/` and `model.tflite`. If `None`: the run's directory; `NAME/` next to a file
            `NAME.keras`; `exports/NAME` for weights that ship with the package.
        quantize: Formats of `export_tflite`, each also written as `model-FORMAT.tflite`. An existing SavedModel and
            `model.tflite` are then kept.
        onnx: Whether to write `model.onnx` too; existing ones are then kept likewise.
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
    more = {"labels": class_names, "overwrite": overwrite}
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
        calibration, _ = some_images(model, recipe, recipe.data.train, 256)
        more["images"], more["classes"] = some_images(model, recipe, recipe.data.test, 1000)
    reports = []
    for path, (write, settings) in planned.items():
        given = {"calibration": calibration} if settings.get("quantize") in CALIBRATED else {}
        reports.append(write(model, path, **settings, **given, **more))
    return reports


def explain(target, files=(), folder=None):
    """Draws what a trained model attends to, and the training curves of its run.

    Args:
        target: As in `load_run`.
        files: Image files; the first eight images of the test split if empty.
        folder: Where to write `attention.png` and `curves.png`; as in `export` if `None`.

    Returns:
        The paths of the pictures.
    """
    found = find(target)
    model, _, class_names = found.trained
    if not files:
        _need_data(found, "image files")
    images = read(found, files) if files else some_images(model, found.recipe, found.recipe.data.test, 8)[0]
    from keras_vit import plots
    from keras_vit.training import history

    titles = [f"{class_names[p.argmax()]} ({p.max():.0%})" for p in _probabilities(model, images)]
    folder = pathlib.Path(folder or found.home)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"attention.png": plots.plot_attention(model, images, titles)}
    if found.run and (found.run / rundir.HISTORY).exists():
        figures["curves.png"] = plots.plot_history(history.read(found.run))
    for name, figure in figures.items():
        figure.savefig(folder / name)
    return [folder / name for name in figures]


def predict(target, files, top=3):
    """Classifies image files, in batches.

    Args:
        target: As in `load_run`.
        files: Paths of images, and of folders, which are searched with all their subfolders.
        top: Number of classes per image.

    Returns:
        A list of `(class name, probability)` per image, most likely first.

    Raises:
        ValueError: As `load_run`, and for a file that cannot be read or a folder without images.
        FileNotFoundError: As `load_run`, and for a file that does not exist.
    """
    found = []
    for _, classes, error in predictions(target, image_files(files), top):
        if error:
            raise error
        found.append(classes)
    return found


def predictions(target, files, top=3):
    """Yields the predictions of `predict` image by image, and goes past unreadable files.

    Args:
        target: As in `load_run`.
        files: Paths of images.
        top: As in `predict`.

    Yields:
        The path, its list of `(class name, probability)` and `None`; or the path, `None` and the reading error.
    """
    checks.positive(top=top)
    found = find(target)
    model, _, class_names = found.trained
    count = max(min(IMAGES, VALUES // math.prod(model.input_shape[1:])), 1)
    for first in range(0, len(files), count):
        images, errors = {}, {}
        for path in files[first : first + count]:
            try:
                images[path] = read(found, [path])[0]
            except (ValueError, OSError) as error:
                errors[path] = error
        predicted = dict(zip(images, _probabilities(model, np.stack([*images.values()])))) if images else {}
        for path in files[first : first + count]:
            p = predicted.get(path)
            classes = None if p is None else [(class_names[i], float(p[i])) for i in np.argsort(-p)[:top]]
            yield path, classes, errors.get(path)


def image_files(paths):
    """Returns a list of files: those among the paths, and the images inside the folders among them.

    Raises:
        FileNotFoundError: For a path that does not exist.
        ValueError: For a folder without images, or no path.
    """
    files = []
    for path in map(pathlib.Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"There is no file {str(path)!r}.")
        files += _in_folder(path) if path.is_dir() else [path]
    if not files:
        raise ValueError("At least one image file is needed. Received: none")
    return files


def _in_folder(folder):
    need_tensorflow("Reading folders of images")
    from keras_vit.data.sources import IMAGE_ENDINGS

    parts = lambda path: path.relative_to(folder).parts  # noqa: E731
    images = [path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_ENDINGS and path.is_file()]
    images = sorted(path for path in images if not any(part.startswith(".") for part in parts(path)))
    if not images:
        raise ValueError(f"There is no image in the folder {str(folder)!r}. Known endings: {', '.join(IMAGE_ENDINGS)}.")
    return images


def source_of(found, split, arrays):
    """Returns the source of images that a trained model is evaluated on, checked against it.

    Args:
        found: The `Found` of `trained.find`.
        split: As in `evaluate`.
        arrays: As in `evaluate`.
    """
    from keras_vit.data import sources

    (model, _, class_names), recipe = found.trained, found.recipe
    shape = model.input_shape[1:]
    if arrays is not None:
        return sources.from_arrays(*checks.pair_of(arrays), shape, len(class_names))
    _need_data(found, "`arrays`, (images, labels)")
    source = sources.check_fits(sources.load(recipe.data, split or recipe.data.test), shape, len(class_names))
    sources.same_classes(class_names, source.class_names)
    return source


def _need_data(found, instead):
    """Raises ValueError, with what to pass instead, if a trained model has no recipe with data."""
    if found.alone:
        raise ValueError(
            f"{found.file!r} has no data: it is outside a run directory. Pass a run directory, or {instead}."
        )
    if found.on_arrays:
        raise ValueError(f"The run in {str(found.run)!r} was trained on arrays. Pass {instead}.")


def _probabilities(model, images):
    return probabilities(model, model(images, training=False))


def read(found, files):
    """Returns the pixels of image files, resized as in evaluation."""
    model = found.trained.model
    if found.alone:
        return preprocess(model, files)
    need_tensorflow("Reading image files")
    from keras_vit.data import pipeline

    return pipeline.read_files(files, model.input_shape[1:], found.recipe.data)


def some_images(model, recipe, split, count):
    """Returns the first images of a split, resized as in evaluation, and their class indices."""
    need_tensorflow("Reading a recipe's data")
    from keras_vit.data import pipeline, sources

    source = sources.load(recipe.data, split).take(slice(count))
    batches = pipeline.evaluation_arrays(source, recipe, model.input_shape[1:])
    images, labels = (np.concatenate(parts) for parts in zip(*batches))
    return images, labels.argmax(-1)

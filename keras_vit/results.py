"""What is done with a trained model: measure, export, look, predict."""

import pathlib

import keras
import numpy as np

from keras_vit import checks, rundir
from keras_vit.cookbook import from_recipe, list_recipes, load_recipe, weights_path
from keras_vit.export import export_onnx, export_saved_model, export_tflite, runtimes
from keras_vit.export.prepare import check_free, need
from keras_vit.export.quantize import CALIBRATED, FORMATS
from keras_vit.runs import need_tensorflow, pair_of


def load_run(target, file=rundir.MODEL):
    """Loads what was trained: a run of yours, or a recipe's weights that ship with the package.

    Args:
        target: Directory of a run, or the name of a recipe with trained weights.
        file: `"model.keras"` (the last epoch) or `"best.keras"`; of a run only.

    Returns:
        The model, its `Recipe` and the tuple of class names.

    Raises:
        ValueError: If `target` is neither, or a file is damaged.
        FileNotFoundError: If the run has not come to its end.
    """
    return load_whole(target, file)[:3]


def evaluate(target, split=None, *, arrays=None):
    """Measures a trained model, and what was exported beside it, by the recipe's metrics.

    Args:
        target: As in `load_run`.
        split: Such as `"test[:50%]"`; the recipe's test split if `None`.
        arrays: `(images, labels)` to measure on in place of the recipe's data; needed for a run on arrays.

    Returns:
        A dictionary from files to dictionaries from the recipe's `metrics`, such as `"accuracy"`, to numbers; the
        artifacts are run in their own runtimes.

    Raises:
        ValueError, FileNotFoundError: As `load_run`, and for data that is not there or has other classes.
    """
    need_tensorflow("Evaluation of a recipe")
    from keras_vit import training

    loaded = model, recipe, *_ = load_whole(target)
    shape = model.input_shape[1:]
    source = source_of(target, split, arrays, loaded)
    folder = pathlib.Path(home(target, recipe))
    own = folder / rundir.MODEL if rundir.is_run(target) else recipe.weights.file
    found = {str(own): training.evaluate(model, recipe, source)}
    artifacts = dict.fromkeys(folder.glob(rundir.SAVED_MODEL), runtimes.saved_model)
    artifacts |= dict.fromkeys(sorted(folder.glob("model*.tflite")), runtimes.tflite)
    artifacts |= dict.fromkeys(folder.glob("model.onnx"), runtimes.onnx)
    for path, load in artifacts.items():
        run, _ = load(path)
        found[str(path)] = training.measure(recipe.metrics, *training.outputs(run, recipe, source, shape))
    return found


def export(target, folder=None, *, quantize=(), onnx=False, overwrite=False):
    """Exports a trained model as SavedModel and TFLite, and if asked in smaller formats and as ONNX.

    Formats that need calibration take 256 images of the recipe's training split, and are compared on a thousand of its
    test split, by accuracy too.

    Args:
        target: As in `load_run`.
        folder: Where to write `saved_model/` and `model.tflite`; the run's directory, or `exports/NAME`, if `None`.
        quantize: Formats of `export_tflite`, each written besides as `model-FORMAT.tflite`; the first two are then left
            as they are where they are there.
        onnx: Whether to write `model.onnx` too; likewise.
        overwrite: Whether to replace what is there.

    Returns:
        A list of reports; see `export_tflite`.

    Raises:
        ValueError: For an unknown format, or calibration for a run on arrays: call `export_tflite` for that one.
    """
    for name in quantize:
        checks.one_of("quantize", name, FORMATS[1:])
    model, recipe, class_names, data = load_whole(target)
    folder = pathlib.Path(folder or home(target, recipe))
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
        if data.get("arrays"):
            raise ValueError(
                f"The run in {str(target)!r} was made on arrays. Pass its model, and `calibration`, to export_tflite."
            )
        calibration, _ = some_images(model, recipe, recipe.data.train, 256)
        more["images"], more["classes"] = some_images(model, recipe, recipe.data.test, 1000)
    reports = []
    for path, (write, settings) in planned.items():
        given = {"calibration": calibration} if settings.get("quantize") in CALIBRATED else {}
        reports.append(write(model, path, **settings, **given, **more))
    return reports


def explain(target, files=(), folder=None):
    """Draws what a trained model attends to, and the run's training curves if it has any.

    Args:
        target: As in `load_run`.
        files: Image files; the first eight images of the test split if empty.
        folder: Where to write `attention.png` and `curves.png`; as in `export` if `None`.

    Returns:
        The paths of the pictures.
    """
    model, recipe, class_names, data = load_whole(target)
    if data.get("arrays") and not files:
        raise ValueError(f"The run in {str(target)!r} was made on arrays. Pass image files to look at.")
    images = _images(model, recipe, files)
    from keras_vit import plots, training

    titles = [f"{class_names[p.argmax()]} ({p.max():.0%})" for p in _probabilities(model, images)]
    folder = pathlib.Path(folder or home(target, recipe))
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"attention.png": plots.plot_attention(model, images, titles)}
    if (pathlib.Path(target) / rundir.HISTORY).exists():
        figures["curves.png"] = plots.plot_history(training.read_history(target))
    for name, figure in figures.items():
        figure.savefig(folder / name)
    return [folder / name for name in figures]


def predict(target, files, top=3):
    """Classifies image files.

    Args:
        target: As in `load_run`.
        files: Paths of images.
        top: How many classes to name.

    Returns:
        For each file a list of `(class name, probability)`, likeliest first.
    """
    model, recipe, class_names = load_run(target)
    found = _probabilities(model, _images(model, recipe, files))
    return [[(class_names[i], float(p[i])) for i in np.argsort(-p)[:top]] for p in found]


def source_of(target, split, arrays, loaded):
    """Returns the images that a target is measured on, found to fit it.

    Args:
        target: As in `load_run`.
        split: As in `evaluate`.
        arrays: As in `evaluate`.
        loaded: What `load_whole` returns for it.
    """
    from keras_vit.data import sources

    model, recipe, class_names, data = loaded
    shape = model.input_shape[1:]
    if arrays is not None:
        return sources.from_arrays(*pair_of(arrays), shape, len(class_names))
    if data.get("arrays"):
        raise ValueError(
            f"The run in {str(target)!r} was made on arrays. Pass `arrays`, (images, labels), to measure on."
        )
    source = sources.check(sources.load(recipe.data, split or recipe.data.test), shape, len(class_names))
    sources.same_classes(class_names, source.class_names)
    return source


def load_whole(target, file=rundir.MODEL):
    """Returns what `load_run` does, and the data's dictionary of a run."""
    if rundir.is_run(target):
        return rundir.load(target, file)
    if pathlib.Path(target).exists() and str(target) not in list_recipes():
        raise ValueError(f"{str(target)!r} holds no run: it has no {rundir.RECIPE}.")
    recipe = load_recipe(target)
    labels = weights_path(recipe).with_suffix(".labels.txt")
    return from_recipe(recipe, pretrained=True), recipe, rundir.read_labels(labels), {}


def _probabilities(model, images):
    return keras.ops.convert_to_numpy(keras.ops.softmax(model(images, training=False)))


def _images(model, recipe, files):
    """Returns the pixels of image files, or of the first eight test images."""
    need_tensorflow("Reading image files")
    from keras_vit.data import pipeline

    if files:
        return pipeline.read_files(files, model.input_shape[1:], recipe.data)
    return some_images(model, recipe, recipe.data.test, 8)[0]


def some_images(model, recipe, split, count):
    """Returns the first images of a split as evaluation sees them, and their classes."""
    need_tensorflow("Reading a recipe's data")
    from keras_vit.data import pipeline, sources

    source = sources.load(recipe.data, split).take(slice(count))
    batches = pipeline.evaluation_arrays(source, recipe, model.input_shape[1:])
    images, labels = (np.concatenate(parts) for parts in zip(*batches))
    return images, labels.argmax(-1)


def home(target, recipe):
    """Returns the folder that what is made of a target goes to: a run's own, or one for exports."""
    return target if rundir.is_run(target) else f"exports/{recipe.name}"

"""What is done with a trained model: measure, export, look, predict."""

import pathlib

import keras
import numpy as np

from keras_vit import rundir
from keras_vit.cookbook import from_recipe, list_recipes, load_recipe, weights_path
from keras_vit.export import export_saved_model, export_tflite
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
    return _load(target, file)[:3]


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
    from keras_vit.data import sources
    from keras_vit.export import check as artifact

    model, recipe, class_names, data = _load(target)
    shape = model.input_shape[1:]
    if arrays is not None:
        source = sources.from_arrays(*pair_of(arrays), shape, len(class_names))
    elif data.get("arrays"):
        raise ValueError(
            f"The run in {str(target)!r} was made on arrays. Pass `arrays`, (images, labels), to measure on."
        )
    else:
        source = sources.check(sources.load(recipe.data, split or recipe.data.test), shape, len(class_names))
        sources.same_classes(class_names, source.class_names)
    folder = pathlib.Path(target)
    own = folder / rundir.MODEL if rundir.is_run(folder) else recipe.weights.file
    found = {str(own): training.evaluate(model, recipe, source)}
    for name, load in ((rundir.SAVED_MODEL, artifact.saved_model), (rundir.TFLITE, artifact.tflite)):
        if (folder / name).exists():
            run, _ = load(folder / name)
            logits = training.outputs(run, recipe, source, shape)
            found[str(folder / name)] = training.measure(recipe.metrics, *logits)
    return found


def export(target, folder=None, *, overwrite=False):
    """Exports a trained model as SavedModel and TFLite.

    Args:
        target: As in `load_run`.
        folder: Where to write `saved_model/` and `model.tflite`; the run's directory, or `exports/NAME`, if `None`.
        overwrite: Whether to replace what is there.

    Returns:
        A list of two reports; see `export_tflite`.
    """
    model, recipe, _ = load_run(target)
    folder = pathlib.Path(folder or _home(target, recipe))
    return [
        export_saved_model(model, folder / rundir.SAVED_MODEL, overwrite=overwrite),
        export_tflite(model, folder / rundir.TFLITE, overwrite=overwrite),
    ]


def explain(target, files=(), folder=None):
    """Draws what a trained model attends to, and the run's training curves if it has any.

    Args:
        target: As in `load_run`.
        files: Image files; the first eight images of the test split if empty.
        folder: Where to write `attention.png` and `curves.png`; as in `export` if `None`.

    Returns:
        The paths of the pictures.
    """
    model, recipe, class_names, data = _load(target)
    if data.get("arrays") and not files:
        raise ValueError(f"The run in {str(target)!r} was made on arrays. Pass image files to look at.")
    images = _images(model, recipe, files)
    from keras_vit import plots, training

    titles = [f"{class_names[p.argmax()]} ({p.max():.0%})" for p in _probabilities(model, images)]
    folder = pathlib.Path(folder or _home(target, recipe))
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


def _load(target, file=rundir.MODEL):
    """Returns what `load_run` does, and the data's dictionary of a run."""
    if rundir.is_run(target):
        return rundir.load(target, file)
    if pathlib.Path(target).exists() and str(target) not in list_recipes():
        raise ValueError(f"{str(target)!r} holds no run: it has no {rundir.RECIPE}.")
    recipe = load_recipe(target)
    labels = weights_path(recipe).with_suffix(".labels.txt")
    return from_recipe(recipe, pretrained=True), recipe, tuple(labels.read_text().splitlines()), {}


def _probabilities(model, images):
    return keras.ops.convert_to_numpy(keras.ops.softmax(model(images, training=False)))


def _images(model, recipe, files):
    """Returns the pixels of image files, or of the first eight test images."""
    need_tensorflow("Reading image files")
    from keras_vit.data import pipeline, sources

    if files:
        return pipeline.read_files(files, model.input_shape[1:], recipe.data)
    source = sources.load(recipe.data, recipe.data.test).take(slice(8))
    return next(pipeline.evaluation_batches(source, recipe, model.input_shape[1:], 8).as_numpy_iterator())[0]


def _home(target, recipe):
    return target if rundir.is_run(target) else f"exports/{recipe.name}"

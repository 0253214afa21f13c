"""A run of a recipe: its data, its directory, and what is done with it afterwards."""

import importlib
import inspect
import json
import pathlib

import keras
import numpy as np

from keras_vit import checks, config
from keras_vit.cookbook import check, from_recipe, load_recipe, weights_path
from keras_vit.export import export_saved_model, export_tflite
from keras_vit.models import vit

RECIPE, LABELS = "recipe.json", "labels.txt"
MODEL, SAVED_MODEL, TFLITE = "model.keras", "saved_model", "model.tflite"


def datasets(recipe, *, train=None, validation=None):
    """Returns the training and the validation data of a recipe.

    Each pass over the training data is one epoch, shuffled and augmented anew.

    Args:
        recipe: A `Recipe`, or a name.
        train: `(images, labels)` arrays to use in place of the recipe's data.
        validation: Likewise.

    Returns:
        Two `tf.data.Dataset`s of `(images, one-hot labels)`.

    Raises:
        ValueError, FileNotFoundError: For data that is not there or does not fit.
    """
    _need_tensorflow("Data pipelines")
    from keras_vit.data import pipeline

    recipe, size, (train, validation) = _sources(recipe, train, validation)
    return pipeline.training_batches(train, recipe, size), pipeline.evaluation_batches(validation, recipe, size)


def fit(recipe, workdir=None, *, train=None, validation=None, verbose="auto"):
    """Trains the model of a recipe, or goes on where the run in the directory stopped.

    Sets the random seed of Python, NumPy and the backend to the recipe's.

    Args:
        recipe: A `Recipe`, or a name.
        workdir: Directory of the run; `runs/NAME` if `None`. Gets `recipe.json`, `history.csv`, `labels.txt`,
            `best.keras` and `last.keras` after each epoch, and `model.keras` (the last epoch, without the
            optimizer) at the end.
        train: `(images, labels)` arrays to use in place of the recipe's data.
        validation: Likewise.
        verbose: As in `keras.Model.fit`.

    Returns:
        The model, with the weights of the last epoch, and the history: a dictionary of lists, one value an epoch.

    Raises:
        ValueError, FileNotFoundError: For data that is not there or does not fit, or a directory that holds
            another recipe's run.
        RuntimeError: When the loss becomes NaN or infinite.
    """
    _need_tensorflow("Training from a recipe")
    from keras_vit import training

    recipe, _, sources = _sources(recipe, train, validation)
    workdir = pathlib.Path(workdir or f"runs/{recipe.name}")
    _claim(workdir, recipe, sources[0].class_names)
    model = from_recipe(recipe)
    history = training.fit(model, recipe, *sources, workdir, verbose)
    if not (workdir / MODEL).exists():
        training.save_trained(model, workdir / MODEL)
    return model, history


def load_run(target, file=MODEL):
    """Loads what was trained: a run of yours, or a recipe's weights that ship with the package.

    Args:
        target: Directory of a run, or the name of a recipe with trained weights.
        file: `"model.keras"`, `"best.keras"` or `"last.keras"`; of a run only.

    Returns:
        The model, its `Recipe` and the tuple of class names.

    Raises:
        ValueError: If `target` is neither.
        FileNotFoundError: If the run has not come to its end.
    """
    folder = pathlib.Path(target)
    if not (folder / RECIPE).exists():
        if folder.exists():
            raise ValueError(f"{str(target)!r} holds no run: it has no {RECIPE}.")
        recipe = load_recipe(target)
        labels = weights_path(recipe).with_suffix(".labels.txt")
        return from_recipe(recipe, pretrained=True), recipe, tuple(labels.read_text().splitlines())
    if not (folder / file).exists():
        raise FileNotFoundError(f"The run in {str(target)!r} has no {file} yet: call fit again, and it goes on.")
    recipe = config.from_dict(json.loads((folder / RECIPE).read_text()))
    return keras.models.load_model(folder / file), recipe, tuple((folder / LABELS).read_text().splitlines())


def evaluate(target, split=None, *, arrays=None):
    """Measures top-1 accuracy of a trained model, and of what was exported beside it.

    Args:
        target: As in `load_run`.
        split: Such as `"test[:50%]"`; the recipe's test split if `None`.
        arrays: `(images, labels)` to measure on in place of the recipe's data.

    Returns:
        A dictionary from files to accuracies, 0 to 1; the artifacts are run in their own runtimes.
    """
    _need_tensorflow("Evaluation of a recipe")
    from keras_vit import training
    from keras_vit.data import sources
    from keras_vit.export import check

    model, recipe, class_names = load_run(target)
    if arrays is None:
        source = sources.load(recipe.data, split or recipe.data.test)
    else:
        source = sources.from_arrays(*arrays, model.input_shape[1:], len(class_names))
    folder = pathlib.Path(target)
    accuracies = {
        str(folder / MODEL) if folder.is_dir() else recipe.weights.file: training.evaluate(model, recipe, source)
    }
    for name, load in ((SAVED_MODEL, check.saved_model), (TFLITE, check.tflite)):
        if (folder / name).exists():
            run, _ = load(folder / name)
            accuracies[str(folder / name)] = training.accuracy(run, recipe, source, model.input_shape[1:])
    return accuracies


def export(target, folder=None, *, overwrite=False):
    """Exports a trained model as SavedModel and TFLite.

    Args:
        target: As in `load_run`.
        folder: Where to write `saved_model/` and `model.tflite`; the run's directory, or `runs/NAME`, if `None`.
        overwrite: Whether to replace what is there.

    Returns:
        A list of two reports; see `export_tflite`.
    """
    model, recipe, _ = load_run(target)
    folder = pathlib.Path(folder or _home(target, recipe))
    return [
        export_saved_model(model, folder / SAVED_MODEL, overwrite=overwrite),
        export_tflite(model, folder / TFLITE, overwrite=overwrite),
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
    from keras_vit import plots, training

    model, recipe, class_names = load_run(target)
    images = _images(model, recipe, files)
    titles = [f"{class_names[p.argmax()]} ({p.max():.0%})" for p in probabilities(model, images)]
    folder = pathlib.Path(folder or _home(target, recipe))
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"attention.png": plots.plot_attention(model, images, titles)}
    if (pathlib.Path(target) / training.HISTORY).exists():
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
    found = probabilities(model, _images(model, recipe, files))
    return [[(class_names[i], float(p[i])) for i in np.argsort(-p)[:top]] for p in found]


def probabilities(model, images):
    """Returns the soft-max of a model's logits, `(batch, classes)`."""
    return keras.ops.convert_to_numpy(keras.ops.softmax(model(checks.images(images).astype("float32"), training=False)))


def _images(model, recipe, files):
    """Returns the pixels of image files, or of the first eight test images."""
    _need_tensorflow("Reading image files")
    from keras_vit.data import pipeline, sources

    if files:
        return pipeline.read_files(files, model.input_shape[1:])
    source = sources.load(recipe.data, recipe.data.test).take(slice(8))
    return next(pipeline.evaluation_batches(source, recipe, model.input_shape[1:]).as_numpy_iterator())[0]


def _home(target, recipe):
    return target if pathlib.Path(target).is_dir() else f"runs/{recipe.name}"


def _sources(recipe, train, validation):
    """Returns the recipe and its two sources, read as it says or made of the caller's arrays, all checked."""
    from keras_vit.data import pipeline, sources

    recipe = check(recipe) if isinstance(recipe, config.Recipe) else load_recipe(recipe)
    arguments = inspect.signature(vit).bind(**recipe.model)
    arguments.apply_defaults()
    arguments = arguments.arguments
    shape = (*checks.pair("image_size", arguments["image_size"]), arguments["channels"])
    num_classes = arguments["num_classes"]
    if (train is None) != (validation is None):
        raise ValueError("Arrays are given for both, `train` and `validation`, or for neither.")
    if train is None:
        splits = (recipe.data.train, recipe.data.validation)
        found = [sources.check(sources.load(recipe.data, split), shape, num_classes) for split in splits]
    else:
        found = [sources.from_arrays(*arrays, shape, num_classes) for arrays in (train, validation)]
    pipeline.steps_per_epoch(found[0], recipe)
    return recipe, shape, found


def _claim(workdir, recipe, class_names):
    """Writes the recipe into the directory, or raises if another recipe's run is there."""
    text = json.dumps(config.to_dict(recipe), indent=2)
    file = workdir / RECIPE
    if file.exists() and (was := json.loads(file.read_text())) != (now := json.loads(text)):
        different = [f"{k}: {was.get(k)!r} there, {now.get(k)!r} here" for k in now if was.get(k) != now.get(k)]
        raise ValueError(
            f"{str(workdir)!r} holds the run of another recipe. Choose another directory, or remove that one. "
            f"Different: {'; '.join(different)}"
        )
    if not file.exists() and workdir.exists() and any(workdir.iterdir()):
        raise ValueError(f"{str(workdir)!r} is not empty and holds no run. Choose another directory.")
    workdir.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    (workdir / LABELS).write_text("\n".join(class_names) + "\n")


def _need_tensorflow(what):
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        raise ImportError(
            f"{what} needs TensorFlow, which is not installed: pip install tensorflow. "
            "On arrays, `model.fit(images, labels)` needs none."
        ) from None

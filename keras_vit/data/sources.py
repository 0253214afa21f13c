"""Images and targets by the name of their source, through a table with one reader for each kind of source."""

import dataclasses
import os

import numpy as np

from keras_vit.data import deep_source, folds
from keras_vit.data.memory import Source, lacks
from keras_vit.data.readers import clip_folder, datasets, examples, folder, text_table, tfds
from keras_vit.data.readers.arrays import from_arrays as from_arrays
from keras_vit.data.readers.arrays import names_in
from keras_vit.data.targets import KINDS
from keras_vit.utils import checks


def load(data, split, targets=("labels",), extras=(), columns=None, clips=None):
    """Reads one split of a data set.

    Args:
        data: A `keras_vit.config.Data`.
        split: Such as `"train"`, `"train[:90%]"` or `"all[80%:]"`.
        targets: Names of the targets to read with the images, of `targets.KINDS`.
        extras: Names of targets to read where the data has them.
        columns: Columns of a table that have them, where `data.columns` does not say it: a dictionary by target.
        clips: How frames are sampled, if clips are read in place of images; see `Task.clips`.

    Returns:
        A `memory.Source`; a `records.Stream` for a tensorflow-datasets set that does not fit into memory.

    Raises:
        ValueError: For an unknown source or split, targets that the data lacks, a folder that is empty or contains one
            class only, or an image that cannot be read (unless `data.bad_images` is `"skip"`).
        FileNotFoundError: If the folder does not exist, or the data is neither prepared nor downloadable.
    """
    kind, _, rest = data.source.partition(":")
    if kind not in READERS and _is_path(data.source):
        raise ValueError(
            f"A folder of images must be written 'folder:PATH'. Received: data.source={data.source!r}; did you mean "
            f"{'folder:' + data.source!r}?"
        )
    if kind not in READERS or (kind == "digits") == bool(rest):
        raise ValueError(
            "`data.source` must be 'digits', 'tfds:NAME' or 'folder:PATH', which may have a table, metadata.csv; "
            "'table:PATH' of texts alone. "
            f"Other data are passed to `fit` as `train` and `validation`. Received: data.source={data.source!r}"
        )
    if data.columns and kind not in ("folder", "table"):
        raise ValueError(
            f"`data.columns` is for a folder with a table. Received: data.columns={checks.shown(data.columns)} with "
            f"data.source={data.source!r}"
        )
    if data.fold and split in (data.train, data.validation):
        train, validation = both(data, targets, extras, columns, clips)
        return validation if split == data.validation else train
    data = dataclasses.replace(data, columns={**(columns or {}), **(data.columns or {})})
    arguments = (rest, split, data, tuple(targets), tuple(extras))
    source = READERS[kind](*arguments) if clips is None else clip_folder.READERS[kind](*arguments, clips)
    if not len(source):
        raise ValueError(f"Split {split!r} of {data.source!r} is empty.")
    source = _with_bands(source, data, kind, clips)
    return source if data.limit is None else source.take(slice(data.limit))


def _with_bands(source, data, kind, clips):
    """Returns a source, of pictures of any bands and depth with their number; raises where they are not read."""
    options = deep_source.options_of(data)
    if clips is None and kind == "folder":
        return deep_source.of_files(source, data) if deep_source.is_deep(source, data) else source
    if options:
        raise ValueError(
            f"data.{next(iter(options))} is for folders of pictures, and arrays of them. Received: "
            f"data.source={data.source!r}{'' if clips is None else ' of clips'}"
        )
    return source


def both(data, *arguments):
    """Returns the training and the validation source of a recipe's data, of its fold if it has one.

    Args:
        data: A `keras_vit.config.Data`.
        *arguments: `targets`, `extras`, `columns` and `clips`, as in `load`.
    """
    whole = dataclasses.replace(data, fold=None)
    train, validation = (load(whole, split, *arguments) for split in (data.train, data.validation))
    pair = [train, aligned(validation, train.class_names)]
    return folds.fold(*pair, data.fold, *arguments[:1]) if data.fold else pair


def given(train, validation, recipe, shape, otherwise):
    """Returns the training and the validation source of the caller's own data, of the recipe's fold if it has one.

    Args:
        train, validation: What `of_caller` takes; `validation` may be `None`.
        recipe: A `Recipe`.
        shape, otherwise: As in `of_caller`.
    """
    data, task = recipe.data, recipe.task
    pair, names = [], task.classes
    for value in (train, validation):
        if value is not None:
            pair.append(of_caller(value, data, task, shape, names, otherwise))
            names = pair[0].class_names
    folded = data.fold and not isinstance(train, Source)  # a source is one already
    return folds.fold(*pair, data.fold, task.targets) if folded else pair


def of_caller(value, data, task, shape, names=(), otherwise=tuple, value_range=checks.BYTES):
    """Returns the source of the caller's own data.

    Args:
        value: Arrays, as in `from_arrays`; a dataset, as in `datasets.read`; or a source, which is returned as it is.
        data: The recipe's `Data`.
        task: The recipe's task.
        shape: `(height, width, channels)` of the images that the task takes.
        names: Names of the classes, where the data do not state them.
        otherwise: Function that returns them where neither does.
        value_range: The lowest and the highest pixel of arrays of images; `None` for any finite numbers.
    """
    if isinstance(value, Source):
        return value
    own = task.of_texts or task.clips is not None or examples.is_dataset(value)
    if own and (options := deep_source.options_of(data)):
        raise ValueError(f"data.{next(iter(options))} is for folders of pictures, and arrays of them. Received: others")
    if task.of_texts:
        source = text_table.from_arrays(value)
    elif task.clips is not None:
        names = names or names_in(value, task.targets) or otherwise()
        source = clip_folder.from_arrays(value, task.clips, shape, names, task.targets)
    elif examples.is_dataset(value):
        source = datasets.read(value, task, data, shape, names, otherwise)
    elif isinstance(value, dict) and any(map(examples.is_dataset, value.values())):
        raise ValueError(f"Pass one split of a dictionary of datasets. Received: a dictionary of {', '.join(value)}")
    else:
        wanted = (None, None, shape[2]) if task.whole or data.crops_per_image else shape
        names = names or names_in(value, task.targets) or otherwise()
        deep = data if deep_source.options_of(data) else None
        source = from_arrays(value, task.targets, wanted, names, value_range, deep)
    return dataclasses.replace(source, given=True)


def digits(_, split, data, targets, extras):
    """Returns scikit-learn's digits: 1,797 gray images of 8 x 8 pixels, which need no network."""
    from sklearn.datasets import load_digits

    missing = next((name for name in targets if name != "labels"), None)
    if missing:
        raise lacks("digits", missing, ["images", "labels"])
    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels.reshape(-1, 8, 8, 1) * (255 / 16)).astype("uint8")
    if "labels" not in (*targets, *extras):
        return Source(images, {}).part(split, "all")
    return Source(images, {"labels": labels.astype("int32")}, tuple("0123456789")).part(split, "all")


def check_channels(source, shape):
    """Returns the source. Raises ValueError unless a model of that image shape can take its images."""
    if len(shape) > 1 and isinstance(source, Source) and isinstance(source.images[0], tuple):
        raise ValueError(
            "A table of texts, 'table:PATH', is for Translate: other tasks need images. Received: texts alone"
        )
    if len(shape) > 1 and shape[-1] not in source.channels:
        channels = " or ".join(map(str, source.channels))
        raise ValueError(
            f"The model must have as many channels as the images, {channels}. Received: {shape[-1]} channels"
        )
    return source


def aligned(source, names):
    """Returns a source with the classes of another, by their names: it may lack some, or have them in another order.

    Args:
        source: A `Source`; one that names no classes, or a `Stream`, is returned as it is.
        names: Names of the other's classes.
    """
    order, targets = tuple(names), getattr(source, "targets", {})
    lacking = set(source.class_names) - set(order) or len(set(order)) < len(order)
    moving = [name for name in targets if KINDS[name].renamed]
    if source.class_names in ((), order) or lacking or not moving:
        return source
    place = {name: i for i, name in enumerate(order)}
    places = np.array([place[name] for name in source.class_names])
    moved = {name: KINDS[name].renamed(targets[name], places, len(order)) for name in moving}
    return dataclasses.replace(source, targets={**targets, **moved}, class_names=order)


def same_classes(first, second):
    """Raises ValueError unless two data sets have the same classes in the same order."""
    if tuple(first) != tuple(second):
        only = ", ".join(f"{name!r} only in one of them" for name in sorted(set(first) ^ set(second))[:10])
        raise ValueError(
            f"Both data sets must have the same classes in the same order. Received: {only or 'another order'}"
        )


def _is_path(text):
    return "/" in text or os.sep in text or text.startswith(("~", ".")) or os.path.isdir(text)


READERS = {"digits": digits, "tfds": tfds.read, "folder": folder.read, "table": text_table.read}

"""The examples of a caller's dataset, one by one, whatever library it is of.

Libraries that are no dependency are recognized by what their objects have.
"""

import itertools
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

KINDS = "a tf.data.Dataset, a Hugging Face Dataset, a keras.utils.PyDataset, or a list of dictionaries"
AT_ONCE = 256  # examples that tf.data hands over
MOST_CHANNELS = 4  # of an image `(height, width, channels)` that is not taken for a batch of gray ones


def is_dataset(value):
    """Returns whether a value is a dataset, not arrays: also anything with a length whose items are examples."""
    if isinstance(value, (tf.data.Dataset, keras.utils.PyDataset)) or is_hugging_face(value):
        return True
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) for item in value)
    indexed = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return indexed and not isinstance(value, (tuple, Mapping, str, bytes)) and not hasattr(value, "shape")


def is_hugging_face(value):
    """Returns whether a value is a `datasets.Dataset` or `datasets.IterableDataset`."""
    return hasattr(value, "features") and hasattr(value, "column_names")


def header(dataset):
    """Returns the names of a dataset's columns, a tuple; `None` if its examples are tuples, or images alone."""
    if is_hugging_face(dataset):
        return tuple(dataset.column_names or dataset.features or _first(dataset))
    if isinstance(dataset, tf.data.Dataset):
        first = dataset.element_spec
    else:
        first = dataset[0] if isinstance(dataset, keras.utils.PyDataset) or len(dataset) else None
    return tuple(first) if isinstance(first, dict) else None


def _first(dataset):
    """Returns the first example of a Hugging Face dataset that states no columns, a dictionary."""
    first = next(iter(dataset), None)
    if not isinstance(first, dict):
        received = "an empty dataset" if first is None else f"a {type(first).__name__} as the first example"
        raise ValueError(f"A Hugging Face dataset must have examples, dictionaries. Received: {received}")
    return first


def only(dataset, name):
    """Returns the column of a Hugging Face dataset that must be a target's, by its type, or `None`."""
    kind = {"images": "Image", "labels": "ClassLabel"}.get(name)
    features = (dataset.features or {}) if is_hugging_face(dataset) else {}
    fitting = [column for column, feature in features.items() if type(feature).__name__ == kind]
    return fitting[0] if len(fitting) == 1 else None


def class_names(dataset, column):
    """Returns the names of the classes that a dataset states, a tuple, or an empty one.

    They are of a column of `ClassLabel`, alone or in a list, or what Keras and torchvision note with the images.
    """
    if is_hugging_face(dataset):
        candidates = [getattr(_label_of((dataset.features or {}).get(column)), "names", None)]
    else:
        candidates = [getattr(dataset, "class_names", None), getattr(dataset, "classes", None)]
    texts = (
        names for names in candidates if isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names)
    )
    return tuple(next(texts, ()))


def has_indices(dataset, column):
    """Returns whether a column of a Hugging Face dataset is a list of `ClassLabel`, so of indices."""
    feature = (dataset.features or {}).get(column) if is_hugging_face(dataset) else None
    return feature is not None and not hasattr(feature, "names") and _label_of(feature) is not None


def _label_of(feature):
    """Returns the `ClassLabel` in a feature of Hugging Face, or `None`."""
    if hasattr(feature, "names"):
        return feature
    inside = getattr(feature, "feature", feature)  # of a list
    parts = inside.values() if isinstance(inside, dict) else inside if isinstance(inside, list) else ()
    parts = [inside] if inside is not feature and not parts else parts
    return next(filter(None, map(_label_of, parts)), None)


def examples(dataset, image, columns=None):
    """Yields examples as the dataset has them: dictionaries, tuples or images. Batches are taken apart.

    Args:
        dataset: What `is_dataset` is true for.
        image: Name of the column of images, or `None`.
        columns: Names of the columns that are wanted of a dataset of dictionaries, `None` for all.

    Raises:
        ValueError: If the dataset has no end, or comes from `keras_vit.augment`.
    """
    if hasattr(dataset, "augmented_with"):
        raise ValueError(
            "A dataset is read once, so what `keras_vit.augment` draws would be the same in each epoch: pass the "
            "dataset itself, and put the Augment into the recipe, `augment=`. "
            "Received: a dataset of `keras_vit.augment`"
        )
    count = _count
    if isinstance(dataset, tf.data.Dataset):
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise _endless("a tf.data.Dataset that repeats")
        elements, count = _of_tensorflow(dataset, image), _count_of_batch
    elif isinstance(dataset, keras.utils.PyDataset):
        if dataset.num_batches is None:
            raise _endless("a PyDataset whose `num_batches` is None")
        elements, count = (dataset[i] for i in range(dataset.num_batches)), _count_of_batch
    elif is_hugging_face(dataset):
        elements = iter(_undecoded(dataset, columns))
    else:
        elements = (dataset[i] for i in range(len(dataset)))
    for element in _told(iter(elements)):
        yield from _apart(element, count(element, image))


def _told(elements):
    """Yields the elements of a dataset; raises ValueError, with its place, for one that the dataset does not give."""
    for number in itertools.count():
        try:
            element = next(elements)
        except StopIteration:
            return
        except Exception as error:  # the dataset's own code may raise any
            reason = (str(error).strip().splitlines() or ["no message"])[0]
            raise ValueError(
                f"A dataset must give each of its examples. Received: {type(error).__name__} at element {number}: "
                f"{reason:.200}"
            ) from error
        yield element


def _of_tensorflow(dataset, image):
    """Yields examples or batches as NumPy has them."""
    specs = tf.nest.flatten(dataset.element_spec)
    batched = _batched(_image(dataset.element_spec, image))
    if batched and any(isinstance(spec, tf.RaggedTensorSpec) for spec in specs):
        dataset = dataset.unbatch()
    elif not batched and all(isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined() for spec in specs):
        for batch in dataset.batch(AT_ONCE).as_numpy_iterator():  # which is quicker than one by one
            yield from _apart(batch, len(tf.nest.flatten(batch)[0]))
        return
    yield from dataset.as_numpy_iterator()


def _batched(spec):
    """Returns whether what tf.data says of images is of a batch: pixels `(batch, ...)`, or a vector of files."""
    if not isinstance(spec, tf.TensorSpec):
        return isinstance(spec, tf.RaggedTensorSpec)
    return spec.shape.rank == 4 or (spec.dtype == tf.string and spec.shape.rank == 1)


def _endless(what):
    return ValueError(
        f"A dataset must have an end: a run shuffles and repeats it. Received: {what}; leave out `.repeat()`, or add "
        "`.take(count)`"
    )


def _undecoded(dataset, columns):
    """Returns a Hugging Face dataset whose image columns are files; `Image(decode=False)` of its own library."""
    form = getattr(dataset, "format", None) or {}
    if form.get("type") == "custom":  # the caller's function makes the examples
        return dataset
    dataset = dataset.with_format(None) if form.get("type") else dataset
    dataset = dataset.select_columns(list(columns)) if columns else dataset
    for name, feature in (dataset.features or {}).items():
        if type(feature).__name__ == "Image" and getattr(feature, "decode", False):
            dataset = dataset.cast_column(name, type(feature)(decode=False))
    return dataset


def _apart(element, count):
    """Yields the examples of a batch; one example, of `None`, as it is."""
    if count is None:
        yield element
    else:
        yield from (_row(element, i) for i in range(count))


def _image(element, name):
    """Returns the image of an example, or those of a batch."""
    if isinstance(element, dict):
        return element.get(name)
    return next(iter(element), None) if isinstance(element, (tuple, list)) else element


def _count_of_batch(element, image):
    """Returns what `_count` does, of what may be a batch of gray images, `(batch, height, width)`, and numbers."""
    count, images = _count(element, image), np.shape(_image(element, image))
    if len(images) == 3 and images[-1] > MOST_CHANNELS:
        shapes = [np.shape(part) for part in tf.nest.flatten(element)]
        count = images[0] if shapes.count(images[:1]) == len(shapes) - 1 > 0 else None
    return count


def _count(element, image):
    """Returns how many images are in a batch of pixels or of files, `None` for a single one."""
    images = _image(element, image)
    array = isinstance(images, np.ndarray) or hasattr(images, "shape")
    rank, kind = (len(images.shape), str(images.dtype)) if array else (0, "")
    files = kind.startswith(("object", "<U", "|S")) or kind.endswith("string'>")
    return images.shape[0] if rank == 4 or (files and rank == 1) else None


def _row(element, i):
    if isinstance(element, dict):
        return {name: _row(value, i) for name, value in element.items()}
    return tuple(_row(value, i) for value in element) if isinstance(element, (tuple, list)) else element[i]

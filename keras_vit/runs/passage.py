"""What a trained model returns for image files, which are read ahead of it and computed in batches."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from keras_vit.inference.depth import own_aspect
from keras_vit.models.inputs import fed
from keras_vit.preparing.by_windows import NotReadError
from keras_vit.runs import whole_pictures
from keras_vit.runs.trained import Trained
from keras_vit.tasks.clip_task import averaged_views
from keras_vit.training.devices import need_tensorflow
from keras_vit.utils import bands, deep_files, reading
from keras_vit.utils.images import encoded
from keras_vit.utils.tiles import LargeMask

IMAGES, VALUES = 64, 2**24  # files per batch, and pixel values per batch, at most
TRACED = 512  # images from which on a graph of the model, which takes half a second or more to trace, is quicker


class Output(NamedTuple):
    """What a model returned for a file."""

    path: Any
    output: np.ndarray | None  # `None` after an error
    source: Any  # what `keeps` kept of the file
    error: Exception | None


class Passage(NamedTuple):
    """How files pass through a model."""

    read: Callable  # from a path to the pixels that the model sees
    run: Callable  # from inputs to outputs, an array with an entry an image
    count: int = 1  # files in a batch
    least: int = 1  # images that `run` gets at least: a graph is traced for each number
    ahead: int = reading.AHEAD


def outputs(trained: Trained, files: list, ids: dict, keeps: Callable | None, finish: Callable | None) -> Iterator:
    """Yields an `Output` for each file, in order.

    Args:
        trained: A `Trained`.
        files: Paths.
        ids: As `Trained.ids_of` returns them.
        keeps: Function from the bytes of a file, or the path of a clip, to what is kept of it, such as its size; or
            `None`.
        finish: Of a `whole` task: what to make of each few rows of the outputs, such as bytes; or `None`.

    Raises:
        ValueError: For outputs that are not finite.
    """
    passage, first, clips = _passage(trained, len(files), finish), 0, trained.task.clips is not None

    def read(path):
        pixels = passage.read(path)
        return pixels, keeps and (pixels.shape[:2] if hasattr(pixels, "read") else _kept(path, keeps, clips))

    for batch in reading.batches(read, files, passage.count, ahead=passage.ahead):
        sources = {i: source for i, (_, source) in batch.pixels.items()}
        examples = {"images": [pixels for pixels, _ in batch.pixels.values()]}
        examples |= {name: [rows[first + i] for i in sources] for name, rows in ids.items()}
        batch.pixels.clear()  # they may be large: nothing holds them twice
        try:
            results = dict(zip(sources, _run(passage, examples, trained.task.inputs, batch.images) if sources else ()))
        except NotReadError as error:  # of a picture, alone in its batch
            results, batch.errors[0] = {}, error
        for i, path in enumerate(batch.images):
            if i in results and not _is_finite(results[i]):
                raise ValueError(_infinite(path))
            yield Output(path, results.get(i), sources.get(i), batch.errors.get(i))
        first += len(batch)
        sources.clear()
        results.clear()  # before the next batch is read


def read(trained, files):
    """Returns the pixels of image files, resized as in evaluation, float32 `(files, height, width, channels)`."""
    return np.stack([*map(reader(trained), files)])


def reader(trained, several=False):
    """Returns the function from an image file to its pixels in `read`, which several threads may call.

    With `several`, it reads all views of a clip of whose views the task makes its answer, an axis more.
    """
    if trained.alone:
        return lambda file: trained.about.preparation(file)[0]
    if several and averaged_views(trained.task) > 1:
        from keras_vit.data import views

        return views.reader(trained.size, trained.recipe.data, trained.task.clips)
    if trained.task.clips is not None:
        from keras_vit.data.readers import clip_folder

        return clip_folder.reader(trained.size, trained.recipe.data, trained.task.clips)
    need_tensorflow("Reading image files")
    from keras_vit.data.readers import image_files

    return image_files.reader(trained.size, trained.recipe.data)


def _kept(path, keeps, clips):
    """Returns what `keeps` keeps of a file; of a picture of bands it is the size."""
    if clips:
        return keeps(path)
    return bands.size_of(path) if deep_files.is_named(path) else keeps(encoded(path))


def _passage(trained, count, finish):
    """Returns the `Passage` of `count` files: at each image's own aspect ratio, whole, or at the model's size."""
    aspect = own_aspect(trained.about) if trained.alone else None  # a recipe's model sees what it was trained on
    if aspect is not None:
        return Passage(lambda path: aspect.read(path)[1], aspect)
    if trained.task.whole:
        run = trained.viewer(finish and (lambda rows: finish(_finite(rows))), eager=False)
        return Passage(whole_pictures.reader(trained), run, ahead=1)
    values = math.prod(trained.size) * averaged_views(trained.task)
    together = max(min(IMAGES, VALUES // values), 1)
    traced = count >= TRACED
    run = trained.viewer(eager=not traced)
    return Passage(reader(trained, several=True), run, together, least=together if traced else 1)


def _run(passage, examples, inputs, paths):
    """Returns the outputs for lists of examples; fewer than the least are filled up with the last one."""
    arrays = {name: _batch(rows, passage.least) for name, rows in examples.items()}
    examples.clear()
    try:
        return passage.run(fed(arrays, inputs))
    except FloatingPointError:
        raise ValueError(_infinite(paths[0])) from None


def _batch(rows, least):
    if hasattr(rows[0], "read"):
        return rows
    if len(rows) == 1 and least == 1:
        return rows[0][None]  # it may be large: not copied
    return np.stack([*rows, *rows[-1:] * (least - len(rows))])


def _finite(rows):
    """Returns rows of an output, float32; raises FloatingPointError if a number is NaN or infinite."""
    if not _is_finite(rows):
        raise FloatingPointError
    return rows


def _is_finite(output):
    if isinstance(output, LargeMask):  # which is not computed yet
        return True
    return np.issubdtype(output.dtype, np.integer) or np.isfinite(output).all()


def _infinite(path):
    return f"The model must return finite numbers. Received: NaN or infinity for {str(path)!r}"

"""The contents of a report as plain values and arrays."""

import math
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np

from keras_vit import explain
from keras_vit.explain.queries import has_queries
from keras_vit.explain.reading import doubt
from keras_vit.models import anatomy
from keras_vit.models.inputs import fed
from keras_vit.models.metadata import metadata
from keras_vit.plots import canvas, lettering
from keras_vit.reporting import counts
from keras_vit.runs import looking, results, trained
from keras_vit.runs.translated import check_images
from keras_vit.tasks.clip_task import averaged_views
from keras_vit.training import rundir
from keras_vit.training.devices import need_tensorflow
from keras_vit.utils import bands, checks
from keras_vit.utils.metrics import worded
from keras_vit.utils.warned import warn

SHOWN = 8  # images in the gallery, and among the best and the worst
MIDDLE = "Each is the middle of its picture."
PLACED, VALUES = 1000, 2**26  # largest number of images on the map of embeddings, and of their pixel values


class Example(NamedTuple):
    """An example in the report."""

    image: np.ndarray  # (height, width, channels)
    picture: np.ndarray  # with the prediction drawn, uint8
    caption: str
    support: np.ndarray | None  # (rows, columns), relevance of each patch for the prediction
    parts: tuple  # names of the picture's parts, left to right; empty for one part


class Facts(NamedTuple):
    """The contents of the page, except for some figures."""

    name: str
    model: keras.Model
    seen: object  # model whose attention maps are drawn, or `None`
    recipe: object  # `None` for a model, and for a `.keras` file outside a run
    class_names: tuple
    split: str  # name of the split for scores
    whole: bool  # whether all images of the split were scored
    images: int  # number of images that were scored
    measured: str  # description of these images
    one: str  # "image" or "clip"
    cut: str  # a sentence for images that are shown in part, or ""
    worded: Callable  # function from a score's name to its title and unit
    numbers: dict  # scores by name
    intervals: dict  # 95 % confidence intervals, (low, high), by score
    figures: dict  # matplotlib figures of the task, by caption
    shown: np.ndarray  # (SHOWN, height, width, channels), the first images
    examples: dict  # lists of `Example` by heading
    points: np.ndarray  # (up to PLACED, 2), map of the first images; empty without embeddings or labels
    labels: np.ndarray  # (points,)
    hints: dict  # by gid of a class: a text for each of its points
    history: dict  # history of a run, else empty
    machine: dict  # machine that trained a run, else empty
    shipped: bool  # whether the weights come with the package
    exports: list  # dictionaries from the JSON files of exports
    home: pathlib.Path  # the folder for the model's reports and exports


def gather(target, arrays=None, most=10_000):
    """Scores a trained model, and collects the contents of its report.

    Args:
        target: As in `keras_vit.load_run`.
        arrays: `(images, labels)`, or images and the task's other targets, to score instead of the recipe's test split:
            images `(n, height, width, channels)`, and labels, `(n, ...)`, as in `keras_vit.evaluate`. A run on arrays,
            a model, and a `.keras` file outside a run need them.
        most: Largest number of images to score, the first of the split.

    Returns:
        `Facts`.

    Raises:
        ValueError, FileNotFoundError: As in `keras_vit.evaluate`, and for `most` below 1.
    """
    need_tensorflow("A report")
    checks.positive(most=most)
    from keras_vit.data import pipeline, views
    from keras_vit.training import evaluation, history

    loaded = trained.load_run(target)
    check_images(loaded, "A report")
    model, class_names, recipe, task = loaded.model, loaded.class_names, loaded.bound, loaded.task
    seen = loaded.about.image_model
    if seen and has_queries(seen):
        seen = None  # its last blocks see other tokens than the first
    if seen:
        anatomy.blocks(seen)  # fails early for a model without attention blocks
        if (why := doubt(seen)) is not None:
            warn(f"The report has no maps of attention. {why}")
            seen = None
    source = results.source_of(loaded, None, arrays)
    some, size, run = source.take(slice(most)), loaded.size, loaded.answering()
    tally, scores = evaluation.tally_of(run, recipe, some, size, keep=True)
    best, worst = _extremes(None if task.whole else scores)  # full-size images are too large for the gallery
    view, first = loaded.viewer(), () if best else range(min(SHOWN, len(some)))
    placed = min(PLACED, len(some), max(VALUES // math.prod(size), SHOWN))
    chosen = _examples(pipeline.evaluation_arrays, some, recipe, size, {*range(placed), *best, *worst})
    viewed = (
        _examples(views.view_arrays, some, recipe, size, {*best, *worst, *first})
        if averaged_views(task) > 1
        else chosen
    )
    images = np.stack([chosen[i]["images"] for i in range(placed)])
    outputs = (
        _in_batches(view, images) if not task.whole and len(model.output_shape) == 2 and len(task.inputs) == 1 else None
    )
    labels = np.array([chosen[i].get("labels", -1) for i in range(placed)])
    named = not class_names or labels.max(initial=0) < len(class_names)  # else task and data have different classes
    mapped = outputs is not None and placed > 3 and labels.min() >= 0 and named
    return Facts(
        name=recipe.name,
        model=model,
        seen=seen,
        recipe=loaded.recipe,
        class_names=class_names,
        split="images from arrays" if arrays is not None else recipe.data.test,
        whole=len(some) == len(source),
        images=len(some),
        measured=counts.told(some, task, arrays is not None, len(some) == len(source)),
        one="clip" if task.clips else "image",
        cut=MIDDLE if task.whole and task.gives == "image" else bands.drawn(metadata(model), size[-1]),
        worded=lambda name: worded(task.titled(name)),
        numbers=(numbers := tally.result()),
        intervals=counts.intervals(numbers, counts.pictures(some, task)) if "labels" in task.targets else {},
        figures=tally.figures(),
        shown=images[:SHOWN],
        examples={
            heading: _shown(loaded, view, *([those[i] for i in indices] for those in (chosen, viewed)))
            for heading, indices in {"Worst": worst, "Best": best, "First": first}.items()
            if indices
        },
        points=explain.project(explain.embed(model, images), "tsne") if mapped else np.empty((0, 2)),
        labels=labels,
        hints=_hints(task, outputs, chosen, labels) if mapped else {},
        history=history.read(loaded.run) if loaded.run and (loaded.run / rundir.HISTORY).exists() else {},
        machine=rundir.trained_on(loaded.run) if loaded.run else {},
        shipped=loaded.shipped,
        exports=[] if loaded.in_memory else _exports(loaded.home),
        home=loaded.home,
    )


def _in_batches(run, images, size=64):
    return np.concatenate([run(images[i : i + size]) for i in range(0, len(images), size)])


def _extremes(scores):
    """Returns the indices of images with the highest and the lowest scores, from a list of arrays, `(batch,)`."""
    if not scores or scores[0] is None:
        return [], []
    order = np.argsort(-np.concatenate(scores), kind="stable")
    worst = min(SHOWN, len(order) // 2)  # with few images, none is in both
    return order[: min(SHOWN, len(order) - worst)].tolist(), order[::-1][:worst].tolist()


def _examples(arrays, source, recipe, size, indices):
    """Returns examples as in evaluation: a dictionary from indices to dictionaries of images and targets."""
    examples, first = {}, 0
    for batch in arrays(source, recipe, size):
        count = len(batch["images"])
        here = {i for i in indices if first <= i < first + count}
        examples |= {i: {name: values[i - first] for name, values in batch.items()} for i in here}
        first += count
        if first > max(indices, default=-1):
            break
    return examples


def _shown(loaded, view, examples, viewed):
    """Returns `Example`s of images; `viewed` are the same images with all views, as they are scored."""
    task, support = loaded.task, looking.support_of(loaded.about)
    inputs = {name: np.stack([one[name] for one in examples]) for name in task.inputs}
    outputs = [view(fed({name: each[name][None] for name in task.inputs}, task.inputs))[0] for each in viewed]
    maps = support(inputs) if support else [None] * len(examples)
    drawn = [canvas.as_bytes(one["images"], loaded.about.range) for one in examples]
    return [
        Example(image, task.picture(image, output, one), task.caption(output, one), heat, task.parts)
        for image, one, output, heat in zip(drawn, examples, outputs, maps)
    ]


def _hints(task, outputs, chosen, labels):
    """Returns texts for the points on the map of embeddings: a list for each class, by its gid."""
    hints = {}
    for i, (output, label) in enumerate(zip(outputs, labels)):
        text = f"{'clip' if task.clips else 'image'} {i}: {task.caption(output, chosen[i])}"
        hints.setdefault(f"class_{label}", []).append(lettering.printable(text))
    return hints


def _exports(folder):
    """Returns the JSON metadata of each export in a folder, with the name of the `"file"`."""
    paths = {rundir.SAVED_MODEL: folder / rundir.SAVED_MODEL / "assets.extra" / "keras_vit.json"}
    exported = [*folder.glob("model*.tflite.json"), *folder.glob("model.onnx.json")]
    paths |= {path.stem: path for path in sorted(exported)}
    return [{"file": name, **rundir.read_json(path)} for name, path in paths.items() if path.is_file()]

"""The report of an export: the written file is run and compared with the Keras model."""

import dataclasses
import json
import math

import keras
import numpy as np

from keras_vit.export import prepare
from keras_vit.export.examples import sample
from keras_vit.export.forms import copied, float32
from keras_vit.export.runtimes import median_ms
from keras_vit.models.inputs import count, first
from keras_vit.utils import checks, files
from keras_vit.utils.metrics import written
from keras_vit.utils.warned import warn

LARGEST = {None: 1e-3, "float16": 1e-2}  # largest difference of logits allowed, as a share of their range
COPIED = 0.1  # of a copy in the model's own precision, whose LoRA is merged, as a share of the range
FINE = 1e-3  # of a number's size: the least range that is expected of it
MEAN = 0.3  # for all formats: mean difference allowed, as a share of the mean deviation of an image's logits


WHERE = {"float16": "a phone's GPU computes", "bfloat16": "OpenVINO computes by default here"}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A further comparison of a file that matched its model: in another precision, or on a GPU; see `Report`."""

    on: str  # "float16", "bfloat16", or "GPU" for LiteRT's accelerator
    images: int = 0  # number of images computed; 0 if it was not run
    max_abs_diff: float | None = None  # in logits (or probabilities)
    agreement: float | None = None  # like that of `Report`
    accuracy: float | None = None  # like that of `Report`
    ms: float | None = None  # of one call
    share: str | None = None  # of the file that the GPU computes: "all" or "part"
    note: str | None = None  # the name of the GPU, or why the file was not run on one

    def told(self, report):
        """Returns a line about it, for the `Report` that it belongs to."""
        if not self.images:
            return f"{self.on}: not run, {self.note}"
        count = f"on {self.images} {report.given}"
        same = f"largest difference {self.max_abs_diff:.1e}; same {report.same} {self.agreement:.2%}"
        if self.share:
            return f"{self.on} ({self.note}): computes {self.share} of it; from the CPU, {count}: {same}"
        scored = "" if self.accuracy is None else f"; {report.score} {written(report.score, self.accuracy)}"
        timed = "" if self.ms is None else f"; {self.ms:.2f} ms"
        return f"in {self.on}, as {WHERE[self.on]}, {count}: {same}{scored}{timed}"


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of an export. Times are the median of one call, on the machine that wrote the file."""

    path: str
    quantize: str | None
    bytes: int
    operators: dict[str, int]
    max_abs_diff: float  # from the Keras model, in logits (or probabilities)
    mean_abs_diff: float
    range: float  # of the Keras model's logits: the scale for the differences
    agreement: float  # share of images with the same top-1 class, or of what `same` says
    images: int  # number of images compared
    ms: dict[str, float]  # by the number of threads; "all" for a runtime's own choice
    same: str = "top-1 class"  # or "pixel values", after rounding, of a model that returns images
    own_diff: float | None = None  # of numbers, the largest difference of one, as a share of its own range
    given: str = "images"  # what the model takes: "texts" or "images and texts" too; what is said of `images` holds
    accuracy: dict[str, float] | None = None  # of the file and of the model, if classes or a score were passed
    score: str = "top-1"  # what `accuracy` is, such as "mean_iou"
    partitions: int | None = None  # parts that XNNPACK cuts the graph into; 1 is best
    outside: dict[str, int] | None = None  # operators that XNNPACK leaves to slower code
    outside_time: float | None = None  # their share of the time on one thread, measured alone
    memory_mb: float | None = None  # growth of a process that loads the file and runs it once
    comparisons: tuple["Comparison", ...] = ()  # of what else may compute it

    def on(self, name):
        """Returns the `Comparison` on `"float16"`, `"bfloat16"` or `"GPU"`; `None` if there is none."""
        return next((one for one in self.comparisons if one.on == name), None)

    def __str__(self):
        kinds = [f"{name} {count}" for name, count in self.operators.items()]
        if len(kinds) > 6:
            kinds = [*kinds[:6], f"and {len(kinds) - 6} more kinds"]
        most = ", ".join(kinds)
        threads = ", ".join(
            f"{ms:.2f} ms" + ("" if n == "all" else f" on {n} thread{'s' * (n != '1')}") for n, ms in self.ms.items()
        )
        own = "" if self.own_diff is None else f", and {self.own_diff:.1%} of a number's own range"
        lines = [
            f"{self.path}: {self.quantize or 'float32'}, {self.bytes / 1e6:.2f} MB; {threads}",
            f"  from Keras, on {self.images} {self.given}: largest difference {self.max_abs_diff:.1e}, mean "
            f"{self.mean_abs_diff:.1e}, of a range of {self.range:.3g}{own}; same {self.same} {self.agreement:.2%}",
            f"  {sum(self.operators.values())} operators: {most}",
        ]
        if self.accuracy:
            lines.append(
                f"  {self.score} "
                + ", ".join(f"{k} {written(self.score, value)}" for k, value in self.accuracy.items())
            )
        if self.partitions is not None:
            memory = "" if self.memory_mb is None else f"; {self.memory_mb:.0f} MB of memory"
            lines.append(
                f"  XNNPACK runs it in {self.partitions} part{'s' * (self.partitions != 1)}; operators outside: "
                f"{_counts(self.outside)} "
                f"({self.outside_time:.0%} of the time){memory}"
            )
        lines += [f"  {one.told(self)}" for one in self.comparisons]
        return "\n".join(lines)


def scorer(about, images, classes, score):
    """Returns the function from outputs to a dictionary with a score, or `None` without `classes` and `score`.

    Raises:
        ValueError: If there are no images to score, or not one class of the model per image; for both, or classes of a
            model whose outputs are not (batch, classes).
    """
    if classes is None and score is None:
        return None
    model = about.model
    if classes is not None and score is not None:
        raise ValueError("Pass `classes`, to report the top-1 accuracy, or a `score` of your own. Received: both")
    if classes is not None and (len(model.output_shape) != 2 or model.output_shape[-1] == 1):
        raise ValueError(
            "`classes` are for classifiers of two classes or more; pass `score` for others. "
            f"Received: {model.name!r}, output shape {model.output_shape}"
        )
    if images is None:
        raise ValueError("`classes` and `score` need the `images` that they are of. Received: images=None")
    if classes is None:
        return score
    labels = checks.class_indices(classes, model.output_shape[-1], count(sample(about, images)), "classes")
    return lambda outputs: {"top-1": (outputs.argmax(-1) == labels).mean()}


def compare_with_model(
    path, about, images, run, operators, *, quantize=None, probabilities=False, score=None, cost=None
):
    """Compares `run(images)` with the Keras model's outputs.

    Args:
        path: The exported file or folder.
        about: The Keras model's `Traits`.
        images: float32 pixels, or what else the model is called with; see `models.inputs.fed`.
        run: Function from these to logits, in the file's own runtime.
        operators: Dictionary from operator names to counts.
        quantize: Name of the format, which sets the allowed difference.
        probabilities: Whether the file returns probabilities.
        score: Function from outputs to a dictionary, whose first entry is reported, or `None`.
        cost: More fields of the report, from `runtimes.profile`.

    Returns:
        A `Report`.

    Raises:
        RuntimeError: If an operator is not built in, or outputs differ by more than `LARGEST` or `MEAN`.
    """
    flex = [name for name in operators if name.startswith("Flex")]
    if flex:
        raise RuntimeError(f"{path.name!r} must have built-in operators only. Received: {', '.join(flex)}")
    plain, kind = float32_of(about, first(images, 8)), about.kind
    expected = model_outputs(plain, images)
    expected = np.asarray(kind.probabilities(expected)) if probabilities else expected
    outputs = run(images)
    computed, reference = kind.aligned(outputs, expected)
    span, difference = float(reference.max() - reference.min()), np.abs(reference - computed)
    if span == 0:
        warn("The model returns the same output for every image, so the comparison shows nothing.")
    own = _own(computed, reference) if kind.own else None
    value = kind.largest(computed, reference) / max(span, 1e-3) if own is None else own[0]
    allowed, apart = LARGEST.get(quantize, np.inf), _distance(computed, reference) if own is None else own[1]
    if not (value <= allowed and apart <= MEAN):  # written so that NaN fails too
        raise RuntimeError(
            f"The exported file {path.name!r} does not match the model: outputs differ by up to {value:.3g} of the "
            f"range, on average by {apart:.3g} of the mean deviation. The file was deleted."
        )
    scores = {}
    if score is not None:
        measured = {"of this file": score(outputs), "of the model": score(expected)}
        for name in [*measured["of the model"]][:1]:  # none without targets
            scores = {"score": name, "accuracy": {key: float(values[name]) for key, values in measured.items()}}
    return Report(
        path=str(path),
        quantize=quantize,
        bytes=sum(file.stat().st_size for file in [*prepare.parts(path), *path.rglob("*")] if file.is_file()),
        operators=operators,
        max_abs_diff=float(difference.max()),
        mean_abs_diff=float(difference.mean()),
        range=span,
        agreement=kind.agreement(computed, reference),
        same=kind.counted,
        own_diff=own and own[0],
        images=count(images),
        given=" and ".join(", ".join(about.inputs).rsplit(", ", 1)),
        **scores,
        **(cost or {"ms": {"all": median_ms(lambda: run(first(images, 1)))}}),
    )


def float32_of(about, images):
    """Returns a model's copy in float32, or itself; RuntimeError if such copies compute something else.

    Rounding hides what a copy in another precision computes, so a copy in the model's own is compared with it.

    Args:
        about: The model's `Traits`.
        images: A few of its inputs.
    """
    model = about.model
    plain = float32(model)
    if plain is not model:
        twin = copied(model, None)
        where = "on a copy by its layers' `get_config`"
        close(flat_outputs(twin, images), flat_outputs(model, images), about, where, COPIED, True)
    return plain


def flat_outputs(model, images):
    """Returns a model's outputs for a few images, as a list of arrays."""
    return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(model(images, training=False))]


def close(outputs, expected, about, where, allowed, coarse=False):
    """Raises RuntimeError if outputs differ from the model's by more than a share of their range.

    Args:
        outputs: A list of arrays.
        expected: The model's.
        about: The model's `Traits`, for its kind and name.
        where: What computed `outputs`, for the error.
        allowed: The share.
        coarse: Whether the largest value counts as the range where that is smaller, as rounding to bfloat16 asks.
    """
    kind = about.kind if len(expected) == 1 else None
    pairs = [[np.asarray(one, "float32") for one in pair] for pair in zip(outputs, expected, strict=True)]
    pairs = [kind.aligned(*pair) if kind else pair for pair in pairs]
    if kind and kind.own:
        pairs = [pair for predictions, target in pairs for pair in zip(predictions.T, target.T)]
    for predictions, target in pairs:
        largest, sizes = float(np.abs(predictions - target).max()), float(np.abs(target).max())
        scale = max(float(np.ptp(target)), sizes if coarse else sizes / 100, 1e-3)
        if not largest <= allowed * scale:  # written so that NaN fails too
            raise RuntimeError(
                f"The outputs of {about.model.name!r} {where} differ from the model's by up to {largest:.3g}, "
                f"of a range of {scale:.3g}."
            )


def _counts(operators):
    return ", ".join(f"{name} {count}" for name, count in operators.items()) or "none"


def _own(outputs, expected):
    """Returns the largest difference as a share of a number's own range, and the mean one of its mean deviation.

    Both are of the number for which they are largest. Ranges are not below what float32 and few images can show.
    """
    difference, least = np.abs(outputs - expected), np.maximum(FINE * np.abs(expected).max(0), 1e-6)
    spread = np.maximum(np.ptp(expected, axis=0), least)
    deviation = np.maximum(np.abs(expected - expected.mean(0)).mean(0), least)
    return float((difference.max(0) / spread).max()), float((difference.mean(0) / deviation).max())


def _distance(outputs, expected):
    """Returns the mean difference, relative to the mean deviation of an image's logits from their mean.

    For a single logit, the deviation is taken over the images.
    """
    single = expected.shape[-1] == 1
    center = expected.mean(axis=None if single else -1, keepdims=True)
    least = 0.01 * np.abs(expected).max() if single else 0.0
    return float(np.abs(outputs - expected).mean() / max(np.abs(expected - center).mean(), least, 1e-6))


def model_outputs(model, images, batch=64):
    """Returns the Keras model's outputs; a single batch is not worth tracing a graph."""
    if count(images) > batch:
        return model.predict(images, batch_size=batch, verbose=0)
    return np.asarray(keras.ops.convert_to_numpy(model(images, training=False)), "float32")


def write_json(path, report, **facts):
    """Writes a report, and the facts that a user of the file needs. What is not finite is `null`, as JSON asks."""
    with files.replacing(path) as temporary:
        temporary.write_text(
            json.dumps({**facts, "report": _finite(dataclasses.asdict(report))}, indent=2, allow_nan=False) + "\n"
        )


def _finite(value):
    """Returns a value of JSON without numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

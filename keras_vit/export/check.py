"""What an export came to: the artifact is run, and compared with the Keras model, before it is called done."""

import dataclasses
import json
import pathlib
import warnings

import keras
import numpy as np

from keras_vit import checks, files
from keras_vit.export.forms import float32
from keras_vit.export.runtimes import median_ms

LARGEST = {None: 1e-3, "float16": 1e-2}  # difference of logits that is let through, of their range
MEAN = 0.3  # of other formats: the mean difference, of the mean distance of an image's logits from their mean


@dataclasses.dataclass(frozen=True)
class Report:
    """What an export came to. Times are medians on the machine that wrote it, of one call."""

    path: str
    quantize: str | None
    bytes: int
    operators: dict[str, int]
    max_abs_diff: float  # of logits (or probabilities), from the Keras model's
    mean_abs_diff: float
    range: float  # of the Keras model's logits, which differences are to be seen against
    agreement: float  # share of images with the same top-1 class
    images: int  # on how many
    ms: dict[str, float]  # by the number of threads; "all" for a runtime's own choice
    accuracy: dict[str, float] | None = None  # of the artifact and of the model, where classes were given
    partitions: int | None = None  # of the XNNPACK delegate; 1 is best
    outside: dict[str, int] | None = None  # operators that it left to slower code
    outside_time: float | None = None  # their share of the time on one thread, each measured without the others
    memory_mb: float | None = None  # by which a process grows that loads and runs it
    gpu: str | None = None  # how much of it LiteRT's GPU accelerator computes: "all" or "part"; or "not run"
    gpu_note: str | None = None  # the GPU, or why it was not run
    gpu_images: int | None = None
    gpu_max_abs_diff: float | None = None  # of logits (or probabilities), from this file's on the CPU
    gpu_agreement: float | None = None  # share of these images with the same top-1 class

    def __str__(self):
        kinds = [f"{name} {count}" for name, count in self.operators.items()]
        most = ", ".join(kinds[:6] + [f"and {len(kinds) - 6} more kinds"] * (len(kinds) > 6))
        threads = ", ".join(
            f"{ms:.2f} ms" + ("" if n == "all" else f" on {n} thread{'s' * (n != '1')}") for n, ms in self.ms.items()
        )
        lines = [
            f"{self.path}: {self.quantize or 'float32'}, {self.bytes / 1e6:.2f} MB; {threads}",
            f"  from Keras, on {self.images} images: largest difference {self.max_abs_diff:.1e}, mean "
            f"{self.mean_abs_diff:.1e}, of a range of {self.range:.3g}; same top-1 class {self.agreement:.2%}",
            f"  {sum(self.operators.values())} operators: {most}",
        ]
        if self.accuracy:
            lines.append("  top-1 " + ", ".join(f"{name} {value:.2%}" for name, value in self.accuracy.items()))
        if self.partitions is not None:
            left = ", ".join(f"{name} {count}" for name, count in self.outside.items()) or "none"
            memory = "" if self.memory_mb is None else f"; {self.memory_mb:.0f} MB of memory"
            lines.append(
                f"  XNNPACK runs it in {self.partitions} part{'s' * (self.partitions != 1)}; operators outside: {left} "
                f"({self.outside_time:.0%} of the time){memory}"
            )
        if self.gpu == "not run":
            lines.append(f"  GPU: not run, {self.gpu_note}")
        elif self.gpu:
            lines.append(
                f"  GPU ({self.gpu_note}): computes {self.gpu} of it; from the CPU, on {self.gpu_images} images: "
                f"largest difference {self.gpu_max_abs_diff:.1e}; same top-1 class {self.gpu_agreement:.2%}"
            )
        return "\n".join(lines)


def sample(model, images):
    """Returns the caller's images, or eight of random pixels, as float32."""
    if images is not None:
        return checks.pixels(images, model.input_shape[1:]).astype("float32")
    return np.random.default_rng(0).integers(0, 256, (8, *model.input_shape[1:])).astype("float32")


def check_classes(model, images, classes):
    """Raises ValueError unless the right classes, if there are any, are those of the images."""
    if classes is not None:
        if images is None:
            raise ValueError("`classes` are those of `images`. Received: images=None")
        count = len(checks.pixels(images, model.input_shape[1:]))
        checks.class_indices(classes, model.output_shape[-1], count, "classes")


def report(path, model, images, run, operators, *, quantize=None, probabilities=False, classes=None, cost=None):
    """Compares `run(images)` with the Keras model.

    Args:
        path: The exported file or folder.
        model: The Keras model.
        images: float32 pixels.
        run: Function from images to logits, in the artifact's own runtime.
        operators: Dictionary from operator names to counts.
        quantize: The format's name; it says how much may differ.
        probabilities: Whether the artifact gives probabilities.
        classes: Right classes of the images, as integers, or `None`.
        cost: Fields of the report beside, from `runtimes.profile`.

    Returns:
        A `Report`.

    Raises:
        RuntimeError: If an operator is not built in, or outputs differ by more than `LARGEST` and `MEAN` say.
    """
    flex = [name for name in operators if name.startswith("Flex")]
    if flex:
        raise RuntimeError(f"{path.name!r} needs operators outside the runtime's own: {', '.join(flex)}.")
    plain = float32(model)
    expected = outputs(plain, images)
    if plain is not model and not _apart(outputs(model, images[:8]), expected[:8]) <= MEAN:
        raise RuntimeError(f"The copy of {model.name!r} in float32 gives something else than the model.")
    expected = np.asarray(keras.ops.softmax(expected)) if probabilities else expected
    found = run(images)
    span, difference = float(expected.max() - expected.min()), np.abs(expected - found)
    if span == 0:
        warnings.warn("The model gives the same for every image: there was nothing to compare.", stacklevel=3)
    value, allowed = float(difference.max()) / max(span, 1e-3), LARGEST.get(quantize, np.inf)
    if not (value <= allowed and _apart(found, expected) <= MEAN):  # written so that NaN fails too
        raise RuntimeError(
            f"{path.name!r} gives something else than the model: largest difference {value:.3g} of the range, mean "
            f"{_apart(found, expected):.3g} of the mean deviation. Nothing was kept."
        )
    accuracy = None
    if classes is not None:
        scores = {"of this file": found, "of the model": expected}
        accuracy = {name: float((score.argmax(-1) == np.ravel(classes)).mean()) for name, score in scores.items()}
    return Report(
        path=str(path),
        quantize=quantize,
        bytes=sum(file.stat().st_size for file in [path, *pathlib.Path(path).rglob("*")] if file.is_file()),
        operators=operators,
        max_abs_diff=float(difference.max()),
        mean_abs_diff=float(difference.mean()),
        range=span,
        agreement=float((expected.argmax(-1) == found.argmax(-1)).mean()),
        images=len(images),
        accuracy=accuracy,
        **(cost or {"ms": {"all": median_ms(lambda: run(images[:1]))}}),
    )


def _apart(found, expected):
    """Returns the mean difference, relative to how far the logits of an image lie from their mean.

    Of a single logit it is how far the images lie from theirs.
    """
    single = expected.shape[-1] == 1
    centre = expected.mean(axis=None if single else -1, keepdims=True)
    least = 0.01 * np.abs(expected).max() if single else 0.0
    return float(np.abs(found - expected).mean() / max(np.abs(expected - centre).mean(), least, 1e-6))


def outputs(model, images, batch=64):
    """Returns what the Keras model gives; one batch is not worth tracing a graph for."""
    if len(images) > batch:
        return model.predict(images, batch_size=batch, verbose=0)
    return np.asarray(keras.ops.convert_to_numpy(model(images, training=False)), "float32")


def write_json(path, report, **facts):
    """Writes a report, and what a user of the artifact has to know."""
    with files.replacing(path) as temporary:
        temporary.write_text(json.dumps({**facts, "report": dataclasses.asdict(report)}, indent=2) + "\n")

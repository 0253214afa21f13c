"""What the exports have in common: check everything, write, run, compare, describe."""

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Callable

import numpy as np

from keras_vit.export import comparison, prepare
from keras_vit.export.examples import sample
from keras_vit.traits import Traits
from keras_vit.utils import checks, files

OURS = (ValueError, TypeError, RuntimeError, OSError, ImportError, MemoryError)  # with one line each
OPENVINO_ERRORS = ("Exception from", "Check '")  # its errors begin so, and end with the reason
NOISE = ("Exception encountered when calling", "in user code:", "File ", "Arguments received", "Call arguments")
IN_FOLDER = "assets.extra/keras_vit.json"  # of a SavedModel; a file has its JSON next to it


@dataclasses.dataclass(frozen=True)
class Export:
    """A checked export that is not written yet."""

    about: Traits
    path: pathlib.Path
    images: np.ndarray | dict  # what the model is called with, to compare on
    score: Callable | None
    probabilities: bool
    facts: dict  # what a user of the file needs
    overwrite: bool

    @property
    def model(self):
        return self.about.model


def checked(what, model, path, ending, compared, labels, probabilities, overwrite, limit=prepare.LIMIT, **facts):
    """Checks the arguments that all exports share; nothing is written.

    Args:
        what: What is written, for the error on another backend, such as `"A TFLite file"`.
        model: As in `export_tflite`.
        path: What to write.
        ending: Ending of a file, such as `".tflite"`; `None` for a folder.
        compared: `(images, classes, score)` of `export_tflite`.
        labels: As in `export_tflite`.
        probabilities: As in `export_tflite`.
        overwrite: As in `export_tflite`.
        limit: Bytes of weights, at most.
        **facts: More of what a user of the file needs.

    Returns:
        An `Export`.
    """
    images, classes, score = compared
    prepare.need_tensorflow_backend(what)
    path = checks.path("path", path)
    if ending and path.suffix != ending:
        raise ValueError(f"`path` must end in {ending}. Received: path={str(path)!r}")
    about = Traits(model)
    prepare.check_model(about, limit)
    prepare.check_labels(about, labels)
    if probabilities:
        prepare.check_probabilities(about)
    prepare.check_parts_free(path, overwrite, folder=not ending)
    score = comparison.scorer(about, images, classes, score)
    images = sample(about, images)
    facts = {**prepare.facts(about, labels, probabilities), **facts}
    return Export(about, path, images, score, probabilities, facts, overwrite)


def written(export, write, load, then=None, *, quantize=None, cost=None):
    """Writes a file, runs it, compares it with the model, and describes it in JSON; after an error nothing is kept.

    Args:
        export: An `Export`.
        write: Function that writes the model to a path.
        load: Function from the path to a function from images to outputs, in the file's own runtime, and its operators.
        then: Function `(path, run, report)` for what else is done with a file that matches the model; returns a list
            of `Comparison`.
        quantize: Name of the format.
        cost: Function from the path to fields of the report, in place of the time of a call.

    Returns:
        A `Report`.
    """
    with files.destination(export.path, export.overwrite) as temporary, _one_sentence(export):
        write(temporary)
        run, operators = load(temporary)
        report = comparison.compare_with_model(
            temporary,
            export.about,
            export.images,
            run,
            operators,
            quantize=quantize,
            probabilities=export.probabilities,
            score=export.score,
            cost=cost and cost(temporary),
        )
        comparisons = tuple(then(temporary, run, report)) if then else ()
        report = dataclasses.replace(report, path=str(export.path), comparisons=comparisons)
        beside = temporary / IN_FOLDER if temporary.is_dir() else f"{temporary}.json"
        comparison.write_json(beside, report, **export.facts)
    return report


@contextlib.contextmanager
def _one_sentence(export):
    """Turns what a converter or a runtime raises, in many lines or by its own class, into one clear RuntimeError."""
    try:
        yield
    except Exception as error:
        clear = isinstance(error, OURS) and "\n" not in str(error).strip()
        if clear or files.FULL in str(error):  # the latter is told by `destination`
            raise
        raise _failed(export, error) from error


def _failed(export, error):
    lines = [line.strip() for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(NOISE)] or [type(error).__name__]
    missing = [line.removeprefix("-- ") for line in lines if "No conversion rule" in line]
    line = (missing or [causes[-1 if lines[0].startswith(OPENVINO_ERRORS) else 0]])[0].rstrip(".")
    format = f"a {export.path.suffix} file" if export.path.suffix else "a SavedModel"
    return RuntimeError(f"{export.model.name!r} cannot be exported as {format}: {line:.300}. Nothing was kept.")

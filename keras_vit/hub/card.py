"""The card of a published model: what it does, how to use it, what it was trained on, and how well it does it."""

import re

import keras

from keras_vit import __version__
from keras_vit.utils.value_range import ends

LIBRARY, TAGS = "keras", ("keras_vit", "vision-transformer")
PIPELINES = {  # the hub's names of jobs, https://huggingface.co/tasks, by what a task gives
    "classes": "image-classification",
    "labels": "image-classification",
    "answers": "visual-question-answering",
    "boxes": "object-detection",
    "masks": "image-segmentation",
    "label_masks": "image-segmentation",
    "segments": "image-segmentation",
    "instances": "image-segmentation",
    "depth": "depth-estimation",
    "image": "image-to-image",
    "pairs": "zero-shot-image-classification",
    "words": "image-to-text",
    "velocity": "unconditional-image-generation",
}
FEATURES = "image-feature-extraction"  # of an encoder without a task
OF_CLIPS = {"classes": "video-classification", "boxes": None}  # there is no job of boxes in clips
OF_TEXTS = {"classes": "visual-question-answering", "velocity": "text-to-image", "words": "translation"}

LISTED = 50  # classes that the card names, at most
CURVES = "curves.png"
ENCODER = """```py
import keras_vit

model = keras_vit.from_pretrained("hf://{repository}")
```"""
USE = """```bash
python -m keras_vit predict hf://{repository} {words}
```

```py
import keras_vit

trained = keras_vit.load_run("hf://{repository}")  # the model, its recipe and the names of its classes
```"""


def pipeline_of(gives, clips=False, texts=False):
    """Returns the hub's name of a job; `None` where it has none, such as of numbers.

    Args:
        gives: Kind of a model's output, a key of `models.kinds.KINDS`; `None` of an encoder without a head.
        clips: Whether it takes clips.
        texts: Whether it takes texts.
    """
    if texts and gives in OF_TEXTS:
        return OF_TEXTS[gives]
    if clips and gives in OF_CLIPS:
        return OF_CLIPS[gives]
    return FEATURES if gives is None else PIPELINES.get(gives)


def card(content, repository, license=None, files=()):
    """Returns the text of a README.md, with the front matter that the hub's search reads.

    Args:
        content: A `Content`.
        repository: `"owner/name"`.
        license: An identifier of the hub, such as `"apache-2.0"`.
        files: Names of the other files.
    """
    from huggingface_hub import EvalResult, ModelCardData

    pipeline = pipeline_of(content.gives, content.clips, content.texts)
    kind, _, data = content.recipe.data.source.partition(":") if content.recipe else ("", "", "")
    data = data.partition("/")[0] if kind == "tfds" else re.split(r"[\\/]", data.rstrip("\\/"))[-1] or "its own data"
    of_data = {"task_type": pipeline or "other", "dataset_type": data, "dataset_name": f"{data}, validation split"}
    results = [EvalResult(**of_data, metric_type=name, metric_value=value) for name, value in content.scores.items()]
    matter = ModelCardData(
        library_name=LIBRARY,
        pipeline_tag=pipeline,
        license=license,
        tags=list(TAGS),
        datasets=[data] if kind == "tfds" else None,
        metrics=list(content.scores) or None,
        model_name=repository.rpartition("/")[2] if results else None,
        eval_results=results or None,
    )
    return f"---\n{matter.to_yaml()}\n---\n\n{_body(content, repository, files)}"


def _body(content, repository, files):
    name, job = repository.rpartition("/")[2], f"a model of the task `{content.task}`" if content.task else "a model"
    lines = [
        f"# {name}",
        f"Made with keras_vit {__version__} and Keras {keras.__version__}: {job} with {content.weights:,} weights. "
        f"It takes {_taken(content)}.",
        (USE if content.task and content.gives else ENCODER).format(repository=repository, words=_words(content)),
    ]
    if names := content.names:
        more = "" if len(names) <= LISTED else f" and {len(names) - LISTED:,} more, in `labels.txt`"
        lines += ["## Classes", ", ".join(f"`{name}`" for name in names[:LISTED]) + more]
    if content.scores:
        rows = [f"| {name} | {value:.4g} |" for name, value in content.scores.items()]
        lines += ["## Scores of the validation split", "\n".join(["| score | value |", "|---|---|", *rows])]
    if content.recipe:
        lines += ["The whole recipe is in `recipe.json`."]
    if files:
        lines += ["## Other files", "\n".join(f"- `{name}`" for name in files)]
    if CURVES in files:
        lines += [f"![Training curves]({CURVES})"]
    return "\n\n".join(lines) + "\n"


def _taken(content):
    """Returns what a model takes, in words."""
    if content.of_texts:
        return f"texts of {content.shape[0]} ids"
    *_, height, width, channels = content.shape
    pixels = f"{height} x {width} pixels and {channels} {'channel' if channels == 1 else 'channels'}"
    span = ""
    if content.range:
        low, high = ends(content.range)
        span = f", from {low.min():g} to {high.max():g}" + (", in a range of its own for each band" if low.ndim else "")
    of = "of any size, in tiles of" if content.whole else "of"
    return f"{'clips' if content.clips else 'images'} {of} {pixels}{span}"


def _words(content):
    """Returns what follows the repository on the command line of `predict`."""
    if content.gives == "velocity":
        return '--text "TEXT" --to drawn' if content.texts else "--class NAME --to drawn"
    if content.of_texts:
        return '"TEXT"'
    words = ["CLIPS" if content.clips else "IMAGES"]
    words += ['--text "TEXT"'] if content.texts else []
    words += ["--reference SHARP"] if content.references else []
    words += ["--job NAME"] if content.jobs else []
    return " ".join(words)

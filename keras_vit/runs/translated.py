"""Applies a trained model of `Translate` to texts."""

from collections.abc import Iterator

from keras_vit.runs import tables
from keras_vit.runs.trained import Trained
from keras_vit.utils import checks

AT_ONCE = 64  # texts
COLUMNS = ("text", "name", "value")


def check_images(trained: Trained, what: str) -> None:
    """Raises ValueError for a model of texts alone, where something is about images; `what` begins the sentence."""
    if trained.task.of_texts:
        raise ValueError(f"{what} needs a model of images. Received: {type(trained.task).__name__}, of texts alone")


def translations(trained: Trained, texts: list[str], top: int, paths: dict) -> Iterator[tuple]:
    """Yields each text, its answer, a list of `(name, value)`, and `None`, as `predictions` does for image files.

    Args:
        trained: A `Trained`.
        texts: Strings.
        top: As in `predict`.
        paths: Tables to write, as in `tables.written`.

    Raises:
        ValueError: For a text without a word, or one that is too long.
    """
    task, answers_of = trained.task, trained.viewer()
    ids = ids_of_texts(task, texts)
    with tables.written(paths, COLUMNS) as add:
        for first in range(0, len(texts), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            for text, output in zip(texts[part], answers_of(ids[part])):
                answer = task.listed(output, top)
                add([dict(zip(COLUMNS, (text, *pair))) for pair in answer])
                yield text, answer, None


def ids_of_texts(task, texts):
    """Returns the ids of texts, and warns of unknown words.

    Raises:
        ValueError: For a text without a word, or one that is too long.
    """
    wrong = next((each for each in texts if not (isinstance(each, str) and each.strip())), None)
    if wrong is not None or not texts:
        raise ValueError(f"Each text must have a word. Received: {'none' if wrong is None else checks.shown(wrong)}")
    ids = task.ids_of("raise")(texts)
    task.warn_of_unknown(ids, texts)
    return ids

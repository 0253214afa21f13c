"""The number of images, clips or questions behind a report's scores, and confidence intervals."""

import numpy as np


def what_is_counted(task):
    """Returns the word for the rows of a task's data: images, clips or questions."""
    if task.clips:
        return "clips"
    return "questions" if {"texts", "labels"} <= {*task.targets} else "images"


def pictures(source, task):
    """Returns the number of different images in a `Source`; with texts, an image may be in many rows."""
    if "texts" not in task.targets:
        return len(source)
    images = source.images
    return len({image.tobytes() for image in images} if images.dtype.kind in "uif" else {*images.tolist()})


def told(source, task, from_arrays, whole):
    """Describes the test data: "9,673 questions about 1,000 pictures, kept for testing".

    Args:
        source: The `Source` on which the model was scored.
        task: A `Task`.
        from_arrays: Whether the data are arrays from the caller.
        whole: Whether the source is the whole split, not its first images.
    """
    count, different, what = len(source), pictures(source, task), what_is_counted(task)
    what = "texts" if what == "images" and different < count else what
    text = f"{'' if whole else 'the first '}{_number(count, what)}"
    if what in ("questions", "texts"):
        text += f" about {_number(different, 'pictures')},"
    return f"{text} from arrays" if from_arrays else f"{text} kept for testing"


def _number(count, what):
    return f"{count:,} {what if count != 1 else what[:-1]}"


def intervals(numbers, count):
    """Returns the 95 % confidence interval (Wilson) of the accuracy, `{"accuracy": (low, high)}`; `{}` without it.

    Args:
        numbers: Scores by name.
        count: Number of different images: answers about the same image are not independent.
    """
    from scipy.stats import binomtest

    share = numbers.get("accuracy")
    if share is None or not np.isfinite(share):
        return {}
    interval = binomtest(round(share * count), count).proportion_ci(method="wilson")
    return {"accuracy": (interval.low, interval.high)}

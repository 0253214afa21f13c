"""How many images, clips or questions a report's scores are of, in words, and how sure they are of it."""

import numpy as np


def what_is_counted(task):
    """Returns the word for the rows of a task's data: images, clips or questions."""
    if task.clips:
        return "clips"
    return "questions" if {"texts", "labels"} <= {*task.targets} else "images"


def pictures(source, task):
    """Returns the number of different images in a `Source`: with a text each, one may be in many rows."""
    if "texts" not in task.targets:
        return len(source)
    images = source.images
    return len({image.tobytes() for image in images} if images.dtype.kind in "uif" else {*images.tolist()})


def told(source, task, from_arrays, whole):
    """Returns what was measured, for people: "9,673 questions about 1,000 pictures, kept for testing".

    Args:
        source: The `Source` that was measured.
        task: The task.
        from_arrays: Whether the caller gave the data.
        whole: Whether it is all there is, not the first of it.
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
    """Returns the 95 % interval (Wilson) of the accuracy by its name: what other pictures, the same number, might give.

    Args:
        numbers: Scores by name.
        count: Number of different pictures: answers about one picture are right or wrong together.
    """
    from scipy.stats import binomtest

    share = numbers.get("accuracy")
    if share is None or not np.isfinite(share):
        return {}
    interval = binomtest(round(share * count), count).proportion_ci(method="wilson")
    return {"accuracy": (interval.low, interval.high)}

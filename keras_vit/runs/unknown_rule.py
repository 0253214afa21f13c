"""Sets the rule by which a classifier says "none of these": by energy, or by vectors of training images."""

import numpy as np

from keras_vit.explain.embedding import unit
from keras_vit.models.metadata import metadata
from keras_vit.models.outputs import NONE, check_known
from keras_vit.models.unknown import ENERGY, NEIGHBOURS
from keras_vit.runs import passage, results
from keras_vit.runs.predictions import image_files
from keras_vit.runs.unknown import digest, with_vectors
from keras_vit.tasks import Classify
from keras_vit.tasks.classify import unknown as rules
from keras_vit.utils import checks

MOST = 5000  # vectors of training images that are kept, at most: 15 MB of a width of 768
BATCH = 64  # images at once
EVERY = 1000  # of so many kept vectors one neighbour counts: k = 50 for 50,000, as in Sun et al.
ONE_LABEL = "Unknown images are told by classifiers of images with one label for each."


def check(model, task, classes, what):
    """Raises ValueError for anything but a classifier of images with one label for each, of two logits or more."""
    if not isinstance(task, Classify) or task.multilabel or task.clips is not None or model.output_shape[-1] < 2:
        single = model.output_shape[-1] < 2
        kind = "one logit" if isinstance(task, Classify) and single else type(task).__name__
        kind = "several labels" if getattr(task, "multilabel", False) else kind
        raise ValueError(f"{ONE_LABEL} Received: {what!r}, of {kind}")
    check_known(classes)


def check_rate(rate):
    """Raises ValueError unless a rate of false alarms is above 0 and below 1."""
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < 1:
        raise ValueError(
            f"`unknown` must be the share of known images that may be called {NONE!r}, above 0 and below 1, such "
            f"as 0.05. Received: unknown={checks.shown(rate)}"
        )


def by_energy(model, logits, rate):
    """Returns the rule of energy, from the logits of images that were not trained on, as the model gives them."""
    temperature = inverse_temperature(model)
    fitted = rules.fitted(rules.energies(logits, temperature), rate)
    return {"rule": ENERGY, "temperature": temperature, **fitted}


def inverse_temperature(model):
    """Returns the temperature by which energies are those of the logits before calibration, times a constant."""
    return 1 / float(metadata(model).get("temperature", 1.0))


def chosen(trained, logits, rate, folder):
    """Chooses between the two rules by pictures of unknown things, and sets the threshold of the better one.

    Args:
        trained: A `Trained` with data.
        logits: Of the validation split, `(n, classes)`.
        rate: Of false alarms on it.
        folder: Of the pictures.

    Returns:
        A rule, the vectors that it needs or `None`, and the area under the ROC curve of each rule, a dictionary.
    """
    from keras_vit.data import pipeline

    bound, size, run, read = trained.bound, trained.size, with_vectors(trained.model), passage.reader(trained)
    files = image_files([folder])
    others = [run(np.stack([read(file) for file in files[i : i + BATCH]])) for i in range(0, len(files), BATCH)]
    train, known = (results.source_of(trained, split, None) for split in (bound.data.train, bound.data.validation))
    kept = kept_of(train, bound, size, run)
    k = neighbour(len(kept))
    distances = rules.distance_to(kept, k)
    vectors = np.concatenate([run(each["images"])[1] for each in pipeline.evaluation_arrays(known, bound, size)])
    temperature = inverse_temperature(trained.model)
    values = {
        ENERGY: (
            rules.energies(logits, temperature),
            np.concatenate([rules.energies(z, temperature) for z, _ in others]),
        ),
        NEIGHBOURS: (
            distances(vectors),
            np.concatenate([distances(v) for _, v in others]),
        ),
    }
    areas = {name: rules.area(*pair) for name, pair in values.items()}
    if areas[NEIGHBOURS] <= areas[ENERGY]:
        return by_energy(trained.model, logits, rate), None, areas
    rule = {"rule": NEIGHBOURS, "k": k, "sha256": digest(kept), **rules.fitted(values[NEIGHBOURS][0], rate)}
    return rule, kept, areas


def kept_of(source, bound, size, run):
    """Returns vectors of training images to keep, float32 of length 1: of `MOST` images at most, always the same."""
    from keras_vit.data import pipeline

    parts = [run(batch["images"])[1] for batch in pipeline.evaluation_arrays(source.sample(MOST), bound, size)]
    return unit(np.concatenate(parts).astype("float64")).astype("float32")


def neighbour(count):
    """Returns which neighbour's distance counts among a number of kept vectors."""
    return max(1, round(count / EVERY))

"""Temperature scaling: a classifier that is right as often as it says."""

import math
import os
from typing import NamedTuple

import keras
import numpy as np

from keras_vit.explain import answers
from keras_vit.models.backbone import HEADS
from keras_vit.models.metadata import keep, keeper, metadata
from keras_vit.models.outputs import count_classes, logits_of
from keras_vit.models.unknown import ENERGY, mark, stated_unknown
from keras_vit.preparing import pixel_range
from keras_vit.runs import results, unknown_rule
from keras_vit.runs import unknown as unknown_images
from keras_vit.runs.predictions import image_files
from keras_vit.runs.trained import Trained, forward, load_run
from keras_vit.tasks import Classify
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.feeding import predict
from keras_vit.utils.warned import warn

ONE_LABEL = "Calibration is for classifiers with one label for each image."
MOST = 20.0  # temperatures are from 1 / MOST to MOST


class Calibrated(NamedTuple):
    """A calibrated classifier, and what calibration changed on the images that it was fitted to."""

    model: keras.Model
    temperature: float  # by which the logits are divided
    error: tuple[float, float]  # expected calibration error, before and after
    loss: tuple[float, float]  # mean cross-entropy, before and after
    unknown: dict | None = None  # the rule by which an image is of none of the classes
    vectors: np.ndarray | None = None  # of training images, `(n, width)`, that the rule needs
    areas: dict | None = None  # area under the ROC curve of each rule that was compared

    def save(self, path: os.PathLike | str):
        """Writes the model as a `.keras` file, and next to it the vectors that it needs, if any."""
        unknown_images.save(self.model, self.vectors, path)


def calibrate(
    target: os.PathLike | str | keras.Model | Trained,
    *,
    arrays: tuple | None = None,
    unknown: float | None = None,
    unknown_pictures: os.PathLike | str | None = None,
) -> Calibrated:
    """Divides a classifier's logits by one temperature, so that its probabilities fit its accuracy.

    Guo et al. 2017 (arXiv:1706.04599), section 4.2: the temperature with the least cross-entropy on images that were
    not trained on. The most likely class of an image stays the same. The weights of the head are divided, so nothing
    is added to the model, and every file that is saved or exported from it is calibrated.

    Args:
        target: As in `load_run`; or a model from `keras_vit.vit`, whose head is changed in place. One logit is of the
            second of two classes.
        arrays: `(images, labels)` to fit to, prepared as for training; by default the validation split of the recipe. A
            model, a run on arrays and a `.keras` file outside a run directory need them.
        unknown: Share of these images that may be called "none of these", such as 0.05: sets the threshold from which
            on an image is of none of the classes. Its energy says how strange it is (Liu et al. 2020,
            arXiv:2010.03759).
        unknown_pictures: Folder of pictures of other things. The rule is then the energy or the distance to the k-th
            nearest vector of at most 5,000 training images (Sun et al. 2022, arXiv:2204.06507), whichever has the
            larger area under the ROC curve on them.

    Returns:
        A `Calibrated` named tuple. `model.get_layer("rescale").metadata["temperature"]` keeps the temperature, the
        product of all where a model was calibrated more than once; `metadata["unknown"]` the rule. A rule of vectors
        needs them next to the model's file: write it with `save` of what is returned.

    Raises:
        ValueError, FileNotFoundError: As `evaluate`; for a model that does not end in a linear layer `head`, or images
            to which no temperature fits, such as too few; with `unknown` the temperature then stays.

    Example:

    >>> calibrate("runs/pictures").model.save("calibrated.keras")  # doctest: +SKIP
    """
    _check_unknown(target, arrays, unknown, unknown_pictures)
    trained = None
    if isinstance(target, keras.Model):
        model, task, (logits, labels) = target, Classify(), _of_arrays(target, arrays)
    else:
        trained = load_run(target)
        model, task, (logits, labels) = _of_run(trained, arrays, unknown, unknown_pictures)
    if unknown is not None:
        unknown_rule.check(model, task, task.classes, model.name)
    temperature = _fitted(task, logits, labels, unknown is not None)
    rule, vectors, areas = _rule(trained, model, logits, unknown, unknown_pictures)
    for layer in _heads(model):
        layer.set_weights([weight / temperature for weight in layer.get_weights()])
    rule = _cooled(rule, temperature)
    rule = rule and {**rule, "mark": mark(model)}
    kept = {"temperature": temperature * metadata(model).get("temperature", 1.0)} | ({"unknown": rule} if rule else {})
    keep(model, without=("unknown",), **kept)
    both = logits, logits / temperature
    errors = tuple(answers.binned(labels, task.probabilities(x)).error for x in both)
    losses = tuple(_loss(task, x, labels) for x in both)
    return Calibrated(model, temperature, errors, losses, rule, vectors, areas)


def _rule(trained, model, logits, rate, pictures):
    """Returns the rule for unknown images, a new one or the model's, its vectors and the areas that chose it."""
    if rate is None:
        return stated_unknown(model), unknown_images.vectors_of(trained) if trained else None, None
    if pictures is None:
        return unknown_rule.by_energy(model, logits, rate), None, None
    return unknown_rule.chosen(trained, logits, rate, pictures)


def _check_unknown(target, arrays, unknown, pictures):
    """Raises ValueError for arguments about unknown images that contradict each other."""
    if unknown is not None:
        unknown_rule.check_rate(unknown)
    if pictures is None:
        return
    checks.path("unknown_pictures", pictures)
    if unknown is None:
        raise ValueError(
            "`unknown_pictures` choose the rule of `unknown`, the share of false alarms, such as 0.05. Received: "
            f"unknown_pictures={str(pictures)!r} and unknown=None"
        )
    if arrays is not None or isinstance(target, keras.Model):
        raise ValueError(
            "`unknown_pictures` compare energy with the vectors of a run's training images. Received: "
            f"unknown_pictures={str(pictures)!r} with {'arrays' if arrays is not None else 'a model'}"
        )


def _cooled(rule, temperature):
    """Returns the rule for unknown images of a model whose logits were divided; `None` stays.

    Energies of the divided logits, at the divided temperature, are divided too; distances stay.
    """
    if rule is None or rule["rule"] != ENERGY:
        return rule
    numbers = {name: rule[name] / temperature for name in ("temperature", "threshold")}
    return {**rule, **numbers, "quantiles": [each / temperature for each in rule["quantiles"]]}


def _of_arrays(model, arrays):
    if arrays is None:
        raise ValueError(f"A model needs `arrays`, (images, labels). Received: {model.name!r} and arrays=None")
    if Traits(model).gives == "labels":
        raise ValueError(f"{ONE_LABEL} Received: {model.name!r}, of several labels")
    _heads(model)
    images, labels = checks.pair_of(arrays)
    images = pixel_range.checked(model, images, model.input_shape[1:])
    labels = checks.class_indices(labels, count_classes(model), len(images))
    return logits_of(model, predict(model, images)), labels


def _of_run(trained, arrays, unknown=None, pictures=None):
    """Returns the model and task of a `Trained`, and its logits and labels on the validation split, or on arrays."""
    from keras_vit.data import pipeline

    model, task = trained.model, trained.task
    if unknown is not None:
        unknown_rule.check(model, task, task.classes, trained.file)
    if not isinstance(task, Classify) or task.multilabel:
        what = "several labels" if isinstance(task, Classify) else type(task).__name__
        raise ValueError(f"{ONE_LABEL} Received: {trained.file!r}, for {what}")
    _heads(model)
    if pictures is not None:
        results.need_data(trained, "it without unknown_pictures")
        image_files([pictures])
    split = trained.bound.data.validation if arrays is None else None
    source, run = results.source_of(trained, split, arrays), forward(model)
    parts = [
        (run(examples["images"]), examples["labels"])
        for examples in pipeline.evaluation_arrays(source, trained.bound, trained.size)
    ]
    logits, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return model, task, (logits.astype("float64"), labels)


def _heads(model):
    """Returns the layers whose logits the model returns, or averages."""
    end = model.layers[-1]
    heads = [layer for layer in model.layers if layer.name in HEADS and isinstance(layer, keras.layers.Dense)]
    if not heads and isinstance(end, keras.layers.Dense):  # of a model that was put together by hand
        heads = [end]
    last = end in heads or len(heads) == len(HEADS)
    if not last or keeper(model) is None or any(layer.activation is not keras.activations.linear for layer in heads):
        raise ValueError(f"The model must end in a linear layer, such as `vit`'s head. Received: {model.name!r}")
    return heads


def _loss(task, logits, labels):
    from scipy.special import log_expit, log_softmax

    if task.loss == "sigmoid":
        true = np.arange(logits.shape[-1]) == labels[:, None]
        return float(-log_expit(np.where(true, logits, -logits)).sum(-1).mean())
    return float(-np.take_along_axis(log_softmax(logits, -1), labels[:, None], 1).mean())


def _fitted(task, logits, labels, stays=False):
    """Returns the temperature with the least cross-entropy, which is convex in its inverse.

    Where none fits, it is 1 and a warning says so if it `stays`, else an error.
    """
    from scipy.optimize import minimize_scalar

    bound = math.log(MOST)
    minimum = minimize_scalar(
        lambda x: _loss(task, logits * math.exp(-x), labels), bounds=(-bound, bound), method="bounded"
    )
    right = float((logits.argmax(-1) == labels).mean())
    if right == 1 or abs(minimum.x) > bound - 0.01:  # all right: the lower, the better
        said = (
            f"No temperature from {1 / MOST} to {MOST:g} fits these images: take more of them, which were not trained "
            f"on. Received: {len(labels)} images, {right:.1%} of them right"
        )
        if not stays:
            raise ValueError(said)
        warn(f"{said}. The temperature stays")
        return 1.0
    return math.exp(minimum.x)

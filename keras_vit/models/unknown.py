"""The rule by which images are of none of a classifier's classes: what a model states, if it is of this model."""

import hashlib
import math

from keras_vit.models import kinds
from keras_vit.models.inputs import image_shape
from keras_vit.models.metadata import metadata
from keras_vit.utils.losses import end_of
from keras_vit.utils.warned import warn
from keras_vit.utils.weights_digest import weights_digest

ENERGY, NEIGHBOURS = RULES = ("energy", "neighbours")


def stated_unknown(model):
    """Returns the rule by which images are of none of a classifier's classes, a dictionary; `None` without one.

    See `tasks.classify.unknown`. `None` also for metadata that are no such rule; and, with a warning, for the rule of
    other weights or of another image size, and for a model that gives probabilities, which have lost the energy.
    """
    rule = metadata(model).get("unknown") if kinds.name_of(model) == "classes" else None
    if not isinstance(rule, dict) or not isinstance(rule.get("quantiles"), (list, tuple)):
        return None
    scale = {ENERGY: "temperature", NEIGHBOURS: "k"}.get(rule.get("rule"))
    numbers = [rule.get("threshold"), rule.get(scale), rule.get("rate"), *rule["quantiles"]]
    fit = all(isinstance(each, (int, float)) and math.isfinite(each) for each in numbers)
    if not fit or rule[scale] <= 0 or len(rule["quantiles"]) < 2:
        return None
    if rule["rule"] == ENERGY and end_of(model) is not None:
        return _left_out(model, "it needs logits, and the model gives probabilities")
    if "mark" in rule and rule["mark"] != mark(model):
        return _left_out(model, "it is of other weights, or of another image size. Calibrate the model again")
    return rule


def _left_out(model, why):
    warn(f"The rule for unknown images is left out: {why}. Received: {model.name!r}")


def mark(model):
    """Returns a hash of a model's image size and weights, by which a rule knows the model that it was set for."""
    return hashlib.sha256(f"{image_shape(model)} {weights_digest(model)}".encode()).hexdigest()

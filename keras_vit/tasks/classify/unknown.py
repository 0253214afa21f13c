"""Images of none of a classifier's classes: how strange an image is, by two rules, and from where on it is of none.

A rule is a dictionary, which a model keeps in its metadata as `"unknown"`:

- `rule`: `"energy"` or `"neighbours"`;
- `temperature`: of the energy, see `energies`; or `k`: which neighbour's distance counts, see `distances`;
- `threshold`: an image whose strangeness is above it is of none of the classes;
- `rate`: the share of validation images that were to be above it, at most;
- `quantiles`: the strangeness of validation images, from the least to the largest in equal steps of their share;
- `mark`: of the model that it was set for, see `models.unknown.mark`.
"""

import numpy as np

from keras_vit.models.unknown import ENERGY

STEPS = 100  # between the quantiles
BLOCK = 1024  # vectors that are compared at once: 40 MB of distances to 5,000


def energies(logits, temperature=1.0):
    """Returns the free energy of images, float64 `(...,)`: the higher, the stranger.

    Liu et al. 2020 (arXiv:2010.03759), equation 4: `-T log(sum(exp(logits / T)))`.

    Args:
        logits: `(..., classes)`.
        temperature: `T`. Of logits that were divided by a number, the inverse of it gives the energies of before,
            divided by that number.
    """
    scaled = np.asarray(logits, "float64") / temperature
    top = scaled.max(axis=-1)
    return -temperature * (top + np.log(np.exp(scaled - top[..., None]).sum(axis=-1)))


def distances(vectors, kept, k):
    """Returns the distance of each vector to its k-th nearest one of those that are kept, float64 `(batch,)`.

    Sun et al. 2022 (arXiv:2204.06507), section 3: Euclidean, of vectors of length 1. All are compared, in float64:
    `sqrt(2 - 2 cos)`.

    Args:
        vectors: `(batch, width)`, of any length.
        kept: `(n, width)`, of any length.
        k: From 1 to `n`.
    """
    return distance_to(kept, k)(vectors)


def distance_to(kept, k):
    """Returns the function from vectors to their distances, as `distances`, a block of them at once."""
    from keras_vit.explain.embedding import unit

    kept = unit(np.asarray(kept, "float64")).T

    def nearest(vectors):
        cosines = unit(np.asarray(vectors, "float64")) @ kept  # (block, n)
        return -np.partition(-cosines, k - 1, axis=-1)[:, k - 1]

    def run(vectors):
        blocks = [nearest(vectors[i : i + BLOCK]) for i in range(0, len(vectors), BLOCK)]
        return np.sqrt(np.maximum(2 - 2 * np.concatenate(blocks), 0))

    return run


def strangeness(rule, outputs, classes):
    """Returns the strangeness of images, `(...,)`, by a rule; `None` if their outputs do not show it.

    Args:
        rule: As above.
        outputs: Logits, `(..., classes)`; with a column more, the distances of `distances`.
        classes: Number of classes.
    """
    outputs = np.asarray(outputs)
    if rule["rule"] == ENERGY:
        return energies(outputs[..., :classes], rule["temperature"])
    return outputs[..., classes].astype("float64") if outputs.shape[-1] > classes else None


def fitted(values, rate):
    """Returns threshold, rate and quantiles of a rule, a dictionary, from the strangeness of validation images.

    Raises:
        ValueError: For too few images.
    """
    if len(values) * rate < 1:
        raise ValueError(
            f"A rate of {rate:g} needs {int(np.ceil(1 / rate)):,} validation images or more. Received: {len(values):,}"
        )
    values = np.sort(values)
    above = len(values) - int(len(values) * rate + 1e-9)  # the first that is
    threshold = float(values[above - 1 : above + 1].mean())  # between two images: rounding moves none across
    return {
        "threshold": threshold,
        "rate": float(rate),
        "quantiles": np.quantile(values, np.linspace(0, 1, STEPS + 1)).tolist(),
    }


def share_below(rule, value):
    """Returns the share of validation images that are less strange, 0..1, linear between the quantiles."""
    return float(np.interp(value, rule["quantiles"], np.linspace(0, 1, len(rule["quantiles"]))))


def area(known, others):
    """Returns the area under the ROC curve of strangeness: how often an unknown image is stranger than a known one."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(np.repeat([0, 1], [len(known), len(others)]), np.concatenate([known, others])))

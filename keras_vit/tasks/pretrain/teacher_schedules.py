"""What changes in the course of self-distillation: the teacher's momentum and its temperature."""

import math

from keras import ops


def momentum(step, steps, start):
    """Returns the share of itself that the teacher keeps in a step: from `start` to 1, by a cosine.

    Caron et al. 2021 (arXiv:2104.14294), section 3.1.

    Args:
        step: Steps done, a tensor.
        steps: Steps of the whole run, a tensor.
        start: Number from 0 to 1.
    """
    progress = ops.clip(_share(step, steps), 0.0, 1.0)
    return 1 - (1 - start) * (1 + ops.cos(math.pi * progress)) / 2


def temperature(step, steps, start, end):
    """Returns the teacher's temperature: from `start` to `end` in the first steps, linearly.

    Caron et al. 2021, section 3.2.

    Args:
        step: Steps done, a tensor.
        steps: Steps in which it changes, a tensor; 0 for `end` from the first on.
        start: Number above 0.
        end: Number above 0.
    """
    grown = ops.where(ops.cast(steps, "float32") > 0, ops.clip(_share(step, steps), 0.0, 1.0), 1.0)
    return start + (end - start) * grown


def _share(step, steps):
    return ops.cast(step, "float32") / ops.maximum(ops.cast(steps, "float32"), 1.0)

"""Settings that train, but hardly as they were meant: a warning for each."""

import math

import keras

from keras_vit.utils import machine
from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.warned import warn

LAG = 0.05  # of the initial weights in the EMA weights, at most, at the end of a run


def warm_up(optim):
    """Warns if a run ends before its warm-up does."""
    if optim.warmup_epochs > optim.epochs:
        warn(
            f"The learning rate never reaches its peak: optim.warmup_epochs={optim.warmup_epochs} is longer than "
            f"optim.epochs={optim.epochs}."
        )


def lag(optim, steps):
    """Warns if a run is too short for its EMA, which begins with the initial weights; `steps` are of an epoch."""
    updates = max(optim.epochs * steps // optim.accumulate, 1)
    share = (optim.ema or 0.0) ** updates
    if share > LAG:
        better = math.floor(1e4 * LAG ** (1 / updates)) / 1e4
        warn(
            f"At the end of {updates:,} updates, the EMA weights, which are evaluated and saved, are still {share:.0%} "
            f"the initial ones: optim.ema={optim.ema} is for longer runs. Take {better} or less."
        )


def precision(model, jit_compile):
    """Warns if a model trains in half precision more slowly here than in float32.

    Args:
        model: The model; the policy that it was built with counts.
        jit_compile: Whether XLA compiles the step.
    """
    dtypes = {layer.compute_dtype for layer in sublayers(model)}
    half = next((dtype for dtype in ("float16", "bfloat16") if dtype in dtypes), None)
    if half is None or machine.accelerators():
        return
    lacking = machine.lacks_bfloat16()
    if half == "float16":
        why = "a CPU has no fast products of float16"
    elif jit_compile:
        why = "XLA computes bfloat16 no faster on a CPU"
    elif lacking:
        why = "this processor has no instructions for bfloat16"
    else:
        return
    helps = keras.backend.backend() == "tensorflow" and not lacking  # JAX has no step without XLA
    instead = "model.dtype=mixed_bfloat16 and optim.xla=False" if helps else "no model.dtype"
    warn(f"Training in {half} takes as long as in float32 here, or several times as long: {why}. Pass {instead}")

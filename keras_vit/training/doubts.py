"""Settings that train, but hardly as they were meant: a warning for each."""

import math
import pathlib
import re

import keras

from keras_vit.utils.keras_private import sublayers
from keras_vit.utils.warned import warn

LAG = 0.05  # of the initial weights in the EMA weights, at most, at the end of a run
HALF = ("float16", "bfloat16")
CPUINFO = pathlib.Path("/proc/cpuinfo")  # of Linux
INSTRUCTIONS = r"\b(avx512_bf16|amx_bf16|bf16)\b"  # Intel's and AMD's; ARM's


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
    half = next((one for one in HALF if any(layer.compute_dtype == one for layer in sublayers(model))), None)
    if half is None or not keras.distribution.list_devices()[0].startswith("cpu"):
        return
    if half == "float16":
        why = "a CPU has no fast products of float16"
    elif jit_compile:
        why = "XLA computes bfloat16 no faster on a CPU"
    elif _without_instructions():
        why = "this processor has no instructions for bfloat16"
    else:
        return
    fast = keras.backend.backend() == "tensorflow" and not _without_instructions()  # JAX has no step without XLA
    instead = "model.dtype=mixed_bfloat16 and optim.xla=False" if fast else "no model.dtype"
    warn(f"Training in {half} takes as long as in float32 here, or several times as long: {why}. Pass {instead}")


def _without_instructions():
    """Whether Linux lists the processor's abilities, and bfloat16 is not one of them."""
    try:
        text = CPUINFO.read_text()
    except OSError:
        return False
    listed = re.search(r"^(flags|Features)\s*:.*", text, re.MULTILINE)
    return listed is not None and re.search(INSTRUCTIONS, listed[0]) is None

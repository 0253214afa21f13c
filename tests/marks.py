"""What several tests use to be quick."""

import os

import keras
import pytest

QUICKLY = "KERAS_VIT_SLOW" not in os.environ
slow = pytest.mark.skipif(QUICKLY, reason="slow: set KERAS_VIT_SLOW=1")
few = pytest.mark.few  # of the cases of a test, as many as it says; the others are slow
once = pytest.mark.skipif("KERAS_VIT_HIDE_TENSORFLOW" in os.environ, reason="one backend is enough")
slow_on_jax = pytest.mark.skipif(QUICKLY and keras.backend.backend() == "jax", reason="slow: set KERAS_VIT_SLOW=1")
# Whether a few training steps are quickest so: TensorFlow takes longer to trace, JAX compiles each operation alone.
EAGERLY = keras.backend.backend() != "jax"


def first_everywhere(case, *cases):
    """Returns the cases of a test: the first on every backend, the others on one."""
    return [case, *(pytest.param(one, marks=once) for one in cases)]


def how(compiled):
    """Returns how a step runs: on TensorFlow eagerly, unless it is to be compiled."""
    compiled = compiled or not EAGERLY
    return dict(jit_compile=compiled, run_eagerly=not compiled)

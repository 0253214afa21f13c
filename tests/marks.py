"""What several tests use to be quick.

Without KERAS_VIT_SLOW the quick tests run. KERAS_VIT_SLOW=1 runs all, and KERAS_VIT_SLOW=3/8 what the quick ones leave
out, of which every eighth test from the third on: `.ci/run` takes another slice each time.
"""

import os

import keras
import pytest

WHICH = os.environ.get("KERAS_VIT_SLOW", "")
QUICKLY = not WHICH
slow = pytest.mark.slow
fuller = pytest.mark.fuller  # a quick test that does more with KERAS_VIT_SLOW
few = pytest.mark.few  # of the cases of a test, as many as it says; the others are slow
once = pytest.mark.skipif("KERAS_VIT_HIDE_TENSORFLOW" in os.environ, reason="one backend is enough")
slow_on_jax = pytest.mark.slow_on_jax
# Whether a few training steps are quickest so: TensorFlow takes longer to trace, JAX compiles each operation alone.
EAGERLY = keras.backend.backend() != "jax"


def sliced(items, which):
    """Returns the tests of one slice, such as "3/8", of those that the quick tests leave out or cut short."""
    place, count = map(int, which.split("/"))
    if not 1 <= place <= count:
        raise ValueError(f"KERAS_VIT_SLOW must be 1, or a slice such as 3/8. Received: {which}")
    items = [item for item in items if is_slow(item) or item.get_closest_marker("fuller")]
    return sorted(items, key=lambda item: item.nodeid)[place - 1 :: count]


def is_slow(item):
    on_jax = keras.backend.backend() == "jax" and item.get_closest_marker("slow_on_jax")
    return bool(item.get_closest_marker("slow") or on_jax)


def first_everywhere(case, *cases):
    """Returns the cases of a test: the first on every backend, the others on one."""
    return [case, *(pytest.param(one, marks=once) for one in cases)]


def how(compiled):
    """Returns how a step runs: on TensorFlow eagerly, unless it is to be compiled."""
    compiled = compiled or not EAGERLY
    return dict(jit_compile=compiled, run_eagerly=not compiled)

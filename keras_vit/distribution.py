"""Training on several devices: by `keras.distribution` on JAX, by MirroredStrategy on TensorFlow."""

import contextlib
import dataclasses


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a run trains.

    `scope` makes a context in which the model is built and fitted; `share` is this process's `(index, count)` of every
    batch; `jit_compile` says whether XLA can be used; `writes` whether this process writes the run's files.
    """

    scope: object = contextlib.nullcontext
    share: tuple[int, int] = (0, 1)
    jit_compile: bool = True
    writes: bool = True


ALONE = Place()


def start(recipe):
    """Returns the `Place` of a recipe's training; see `docs/scaling.md`.

    Args:
        recipe: A `Recipe`; its `distribute`, `data` and `optim` are read.

    Raises:
        ValueError: For a way that does not train right on this backend, with the one that does.
    """
    if recipe.distribute is None:
        return ALONE
    raise NotImplementedError

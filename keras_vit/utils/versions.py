"""Whether the installed Keras is new enough."""

import importlib.metadata
import re

KERAS = "3.15.1"  # as in `pyproject.toml`


def check_keras():
    """Raises ImportError with one sentence for a Keras that is older than `KERAS`, which `pip` does not prevent later.

    A package without a version, such as another distribution of Keras, is left to its import.
    """
    try:
        version = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        return
    if _numbers(version) < _numbers(KERAS):
        raise ImportError(
            f"keras_vit needs Keras {KERAS} or newer: pip install -U 'keras>={KERAS}', then start Python again. "
            f"Received: Keras {version}"
        )


def _numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)[:3]]

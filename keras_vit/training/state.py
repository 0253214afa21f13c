"""The training state on disk: every number that the next step depends on.

A training state is one safetensors file, `state-STEP-HASH.safetensors`, with an array per variable and notes as JSON.
It is written under another name, forced to the disk and renamed. Its name contains the start of its SHA-256, which
tells a damaged one. The last two are kept.
"""

import hashlib
import json
import pathlib
import re
import shutil
import time
import warnings

import keras
import ml_dtypes  # noqa: F401 - NumPy's bfloat16
import numpy as np
import safetensors
import safetensors.numpy

from keras_vit.utils import files, together

KEPT = 2
VISIBLE_SECONDS = 60  # in which a new file is seen by all machines that share a directory
_NUMBER = re.compile(r"_\d+(?=[/_]|$)")
_OWN_NUMBER = re.compile(r"(?<=seed_generator)_\d+")  # Keras numbers them over all models of a process
_NAME = re.compile(r"state-(\d{10})-([0-9a-f]{16})\.safetensors")


def save(folder, step, arrays, notes):
    """Writes a training state and removes all but the newest two.

    Args:
        folder: Directory of the run.
        step: Number of training steps done, by which training states are ordered.
        arrays: Dictionary from names to arrays; see `values`.
        notes: Dictionary for JSON.

    Returns:
        The path.

    Raises:
        OSError: If it cannot be written, such as on a full disk. Earlier training states are left untouched.
    """
    folder = pathlib.Path(folder)
    place = folder / f"{files.UNFINISHED}state"  # safetensors has a temporary file of its own next to what it writes
    temporary = place / "state"
    try:
        place.mkdir(exist_ok=True)
        safetensors.numpy.save_file(arrays, temporary, metadata={"keras_vit": json.dumps(notes)})
        path = folder / f"state-{step:010d}-{_digest(temporary)}.safetensors"
        together.commit(temporary, path)
    except (OSError, safetensors.SafetensorError) as error:
        newest = next(iter(_all(folder)), None)
        room = f"has {shutil.disk_usage(folder).free / 1e6:,.0f} MB free" if folder.is_dir() else "is not there"
        raise OSError(
            f"The training state after step {step} could not be written to {str(folder)!r}, which {room} "
            f"({error}). {f'The last good one is {newest.name}.' if newest else 'There is no earlier one.'}"
        ) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    later = [
        p for p in _all(folder) if p != path and int(_NAME.fullmatch(p.name)[1]) >= step
    ]  # damaged, or to be retrained
    for old in later + [p for p in _all(folder) if p not in later][KEPT:]:
        old.unlink(missing_ok=True)
    return path


def newest(folder):
    """Returns `(arrays, notes, path)` of the newest undamaged training state, or `None` if there is no state at all.

    Warns of each damaged one that it skips.

    Raises:
        ValueError: If all training states are damaged, or a directory has the name of one.
    """
    paths = _all(folder)
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{str(path)!r} must be a training state. Received: a directory")
        try:
            if _digest(path) != _NAME.fullmatch(path.name)[2]:
                raise ValueError("its SHA-256 differs from the one in its name")
            with safetensors.safe_open(path, "np") as file:
                return {k: file.get_tensor(k) for k in file.keys()}, json.loads(file.metadata()["keras_vit"]), path  # noqa: SIM118
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            warnings.warn(f"{str(path)!r} is damaged ({error}); using the one before it.", stacklevel=2)
    if paths:
        raise ValueError(
            f"Every training state in {str(folder)!r} is damaged: {', '.join(path.name for path in paths)}. "
            "Delete them to start over, or choose another directory."
        )
    return None


def newest_for_all(folder, place):
    """Returns what `newest` does; several processes wait until all of them see the same.

    Raises:
        ValueError: As `newest`, and if the processes see different training states for a minute.
    """
    for _ in range(VISIBLE_SECONDS):
        place.agree([0])  # the process that writes may not be done
        state = newest(folder)
        mark = int(state[2].stem.split("-")[2][:7], 16) if state else 0
        if place.agree([mark, -mark]) == [mark, -mark]:
            return state
        time.sleep(1)
    raise ValueError(
        "The processes of a group must share one run directory. "
        f"Received: {str(folder)!r}, in which they see different training states"
    )


def exists(folder):
    """Returns whether a directory contains a training state, damaged or not."""
    return bool(_all(folder))


def assign(variables, arrays):
    """Assigns the arrays of a training state to variables.

    Raises:
        ValueError: If names or shapes differ. Numbers in names may: Keras counts layers over a process.
    """
    variables, arrays = ({_NUMBER.sub("", k): v for k, v in group.items()} for group in (variables, arrays))
    different = sorted(set(variables) ^ set(arrays))
    different += [k for k in set(variables) & set(arrays) if tuple(variables[k].shape) != arrays[k].shape]
    if different:
        raise ValueError(
            f"The training state does not fit this model and optimizer. Different: {', '.join(different[:5])}"
        )
    for name, variable in variables.items():
        variable.assign(arrays[name])


def named(**groups):
    """Returns one dictionary of all variables, with keys made of group, index in the group and path."""
    return {
        f"{group}/{i}/{_OWN_NUMBER.sub('', variable.path)}": variable
        for group, variables in groups.items()
        for i, variable in enumerate(variables)
    }


def values(variables):
    """Returns a dictionary of variables as arrays. All processes must call it where variables are sharded over them."""
    return {name: to_numpy(variable.value) for name, variable in variables.items()}


def to_numpy(value):
    """Returns a tensor as an array. All processes must call it if the tensor is sharded over them."""
    if not getattr(value, "is_fully_addressable", True) and not value.is_fully_replicated:
        from jax.experimental import multihost_utils

        return np.asarray(multihost_utils.process_allgather(value, tiled=True), order="C")
    if hasattr(value, "values"):  # one per TensorFlow device; NumPy cannot read those of counters
        value = keras.ops.copy(value)
    return np.asarray(keras.ops.convert_to_numpy(value), order="C")


def _all(folder):
    return sorted((p for p in pathlib.Path(folder).glob("state-*") if _NAME.fullmatch(p.name)), reverse=True)


def _digest(path):
    with open(files.regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]

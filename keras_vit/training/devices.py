"""Training on several devices: by `keras.distribution` on JAX, by MirroredStrategy on TensorFlow."""

import atexit
import contextlib
import dataclasses
import functools
import json
import os
import re
import sys

import keras
import numpy as np

AXES = ("batch", "model")  # of the mesh of devices
TOGETHER = 10  # steps after which processes agree on what to do, which takes about a millisecond
LAYOUT = {
    # The first product of a pair is split by columns, the second by rows: what lies between stays where it is.
    r".*/attention/qkv/kernel": (None, "model"),
    r".*/attention/qkv/bias": ("model",),
    r".*/attention/proj/kernel": ("model", None),
    r".*/mlp/fc1/kernel": (None, "model"),
    r".*/mlp/fc1/bias": ("model",),
    r".*/mlp/fc2/kernel": ("model", None),
}
SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")  # what JAX reads
LOST = "gloo|nccl|coordination service|heartbeat|unavailable:|aborted:"  # in what JAX says when a process is gone


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a run trains.

    `scope` makes a context in which the model is built and fitted; `share` is this process's `(index, count)` of every
    batch; `jit_compile` says whether XLA can be used; `writes` whether this process writes the run's files; `even`
    whether all batches have to be full; `processes` counts them. `agree` takes integers and returns the largest of each
    over all processes, which wait for each other.
    """

    scope: object = contextlib.nullcontext
    share: tuple[int, int] = (0, 1)
    jit_compile: bool = True
    writes: bool = True
    even: bool = False
    processes: int = 1
    agree: object = list


ALONE = Place()


def start(recipe):
    """Returns the `Place` of a recipe's training; see `docs/scaling.md`.

    Args:
        recipe: A `Recipe`; its `distribute`, `model_parallel`, `data` and `optim` are read.

    Raises:
        ValueError: For a way that does not train right on this backend, with the one that does.
        RuntimeError: If this is one of several processes, and JAX was used before they found each other.
    """
    backend, kind = keras.backend.backend(), recipe.distribute
    if recipe.model_parallel > 1 and kind != "model":
        raise ValueError(
            f"Weights are split with distribute=model. Received: model_parallel={recipe.model_parallel}, "
            f"distribute={kind}"
        )
    if kind is None:
        return ALONE
    if backend == "jax":
        return _on_jax(kind, recipe.data.batch_size, recipe.model_parallel)
    if backend == "tensorflow":
        return _on_tensorflow(kind, recipe)
    raise ValueError(f"Several devices train on KERAS_BACKEND=jax. Received: distribute={kind} on {backend}")


def leave_devices_to_jax():
    """Keeps TensorFlow, which reads the data, from taking the memory of GPUs that another backend computes on."""
    if keras.backend.backend() != "tensorflow":
        import tensorflow as tf

        with contextlib.suppress(RuntimeError):  # it was used already
            tf.config.set_visible_devices([], "GPU")


@contextlib.contextmanager
def apart():
    """A block in which what is built on JAX belongs to this process alone, and lies in the host's memory."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        yield
        return
    import jax

    keras.distribution.set_distribution(None)
    try:
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            yield
    finally:
        keras.distribution.set_distribution(distribution)


def _on_jax(kind, batch_size, split):
    import jax

    _join(jax)
    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    processes, replicas = jax.process_count(), len(devices) // split
    each = len(devices) // processes
    if len(devices) % split or (each % split and split % each):
        raise ValueError(
            f"model_parallel divides the {len(devices)} devices, {each} in each process, evenly. "
            f"Received: model_parallel={split}"
        )
    _check_batch(batch_size, replicas)
    if len(devices) == 1:
        return ALONE
    if kind == "data":
        mesh = keras.distribution.DeviceMesh((len(devices),), AXES[:1], devices)
        distribution = keras.distribution.DataParallel(device_mesh=mesh, auto_shard_dataset=False)
    else:
        layout = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((replicas, split), AXES, devices))
        layout.update(LAYOUT)
        distribution = _Split(layout_map=layout, batch_dim_name=AXES[0], auto_shard_dataset=False)
    if processes == 1:
        return Place(distribution.scope, even=True)
    shares = min(processes, replicas)
    return Place(
        functools.partial(_group, distribution, processes),
        share=(jax.process_index() * shares // processes, shares),
        writes=jax.process_index() == 0,
        even=True,
        processes=processes,
        agree=_agree,
    )


class _Split(keras.distribution.ModelParallel):
    """Splits weights as `LAYOUT` says, if they can be split evenly."""

    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        parts = self.device_mesh.shape[1]
        for size, axis in zip(variable.shape, layout.axes):
            if axis == "model" and size % parts:
                raise ValueError(
                    f"{variable.path} of shape {tuple(variable.shape)} cannot be split evenly: model_parallel divides "
                    f"the model's width and mlp_dim. Received: model_parallel={parts}"
                )
        return layout


def _join(jax):
    """Makes this process one of a group, if `keras.distribution`'s variables or Slurm say that there is one."""
    told = any(name.startswith("KERAS_DISTRIBUTION_") for name in os.environ)
    by_slurm = all(name in os.environ for name in SLURM) and int(os.environ["SLURM_NTASKS"]) > 1
    if jax.distributed.is_initialized() or not (told or by_slurm):
        return
    try:
        keras.distribution.initialize()
    except RuntimeError as error:
        if "before any JAX calls" not in str(error):
            raise
        raise RuntimeError(
            "The processes of a group find each other before JAX is used: build no model and no layer before `fit`, or "
            "call keras.distribution.initialize() first."
        ) from None


def _agree(numbers):
    from jax.experimental import multihost_utils

    return np.max(multihost_utils.process_allgather(np.asarray(numbers, "int32")), axis=0).tolist()


@contextlib.contextmanager
def _group(distribution, processes):
    """The scope of one of several processes. None outlives the others: an error ends it at once, and so the others."""
    try:
        with distribution.scope():
            yield
    except Exception as error:
        # JAX would wait for the group at the end, in vain; what is registered last is called first.
        atexit.register(_end)
        if re.search(LOST, str(error), re.IGNORECASE) and not isinstance(error, OSError):
            raise RuntimeError(
                f"Of the {processes} processes that train together one was lost ({str(error).splitlines()[0]:.200}). "
                "The same command, started again for all of them, goes on from the last state that was saved."
            ) from error
        raise


def _end():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _on_tensorflow(kind, recipe):
    import tensorflow as tf

    optim, policy = recipe.optim, keras.dtype_policies.get(recipe.model.get("dtype") or keras.config.dtype_policy())
    if kind == "model":
        raise ValueError("Weights are split on KERAS_BACKEND=jax. Received: distribute=model, KERAS_BACKEND=tensorflow")
    workers = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    workers = sum(len(addresses) for task, addresses in workers.items() if task in ("chief", "worker"))
    if workers > 1:
        raise ValueError(
            f"Several processes train on KERAS_BACKEND=jax: Keras cannot on TensorFlow. Received: {workers} workers in "
            "TF_CONFIG, KERAS_BACKEND=tensorflow"
        )
    if os.environ.get("TPU_NAME") or tf.config.list_physical_devices("TPU"):
        raise ValueError(
            "TPUs train on KERAS_BACKEND=jax: TensorFlow has no TPU package from 2.21 on. Received: "
            "KERAS_BACKEND=tensorflow"
        )
    devices = [d.name for d in tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")]
    _check_batch(recipe.data.batch_size, len(devices))
    if len(devices) == 1:
        return ALONE
    if policy.name == "mixed_float16":  # Keras looks for overflow on the first device alone
        raise ValueError(
            f"Several devices train with dtype=mixed_bfloat16 or float32. Received: mixed_float16, {len(devices)} "
            "devices, KERAS_BACKEND=tensorflow"
        )
    if optim.accumulate > 1 or optim.distill:  # the one fails, of the other every device would count all
        raise ValueError(
            "Several devices accumulate gradients, or learn from a teacher, on KERAS_BACKEND=jax. Received: "
            f"optim.accumulate={optim.accumulate}, optim.distill={optim.distill}, {len(devices)} devices, "
            "KERAS_BACKEND=tensorflow"
        )
    return Place(_mirrored(tuple(devices)).scope, jit_compile=False, even=True)


@functools.cache
def _mirrored(devices):
    """Returns the strategy of some devices: one for all trainings, for two would number their sums alike."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(devices)


def _check_batch(batch_size, replicas):
    if batch_size % replicas:
        raise ValueError(
            f"data.batch_size is divided evenly among {replicas} copies of the model. "
            f"Received: data.batch_size={batch_size}"
        )

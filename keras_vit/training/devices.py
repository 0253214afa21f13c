"""Training on several devices: `keras.distribution` on JAX, MirroredStrategy on TensorFlow."""

import atexit
import contextlib
import dataclasses
import functools
import importlib
import json
import os
import re
import sys

import keras
import numpy as np

from keras_vit.models.backbone import fill
from keras_vit.utils.keras_private import sublayers

AXES = ("batch", "model")  # of the mesh of devices
TOGETHER = 10  # steps after which processes agree on what to do, which takes about a millisecond
LAYOUT = {
    # The first matrix of a pair is split by columns and the second by rows: the tensor between them stays sharded.
    r".*/attention/qkv/kernel": (None, "model"),
    r".*/attention/qkv/bias": ("model",),
    r".*/attention/proj/kernel": ("model", None),
    r".*/mlp/fc1/kernel": (None, "model"),
    r".*/mlp/fc1/bias": ("model",),
    r".*/mlp/fc2/kernel": ("model", None),
}
SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")  # what JAX reads
LOST = "gloo|nccl|coordination service|heartbeat|unavailable:|aborted:"  # in JAX's errors when a process is lost


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a run trains: one device, several, or several processes.

    Args:
        scope: Function that returns the context in which the model is built and fitted.
        share: `(index, count)`: this process's part of every batch.
        jit_compile: Whether XLA can be used.
        writes: Whether this process writes the files of the run.
        even: Whether all batches must be full.
        processes: Number of processes.
        agree: Function from integers to the maximum of each over all processes, which wait for each other.
    """

    scope: object = contextlib.nullcontext
    share: tuple[int, int] = (0, 1)
    jit_compile: bool = True
    writes: bool = True
    even: bool = False
    processes: int = 1
    agree: object = list

    def compiles(self, optim):
        """Returns whether XLA compiles the step of a recipe's `optim`. JAX has no other way to compile one."""
        return self.jit_compile and (optim.xla or keras.backend.backend() == "jax")

    def check(self, model):
        """Raises ValueError for a model that cannot be trained here."""
        if not self.even or keras.backend.backend() != "tensorflow":
            return
        for layer in sublayers(model):
            if isinstance(layer, keras.layers.BatchNormalization):
                raise ValueError(
                    "Batch normalization on several devices needs KERAS_BACKEND=jax: on TensorFlow each device would "
                    f"have statistics of its own. Received: the layer {layer.name!r}, KERAS_BACKEND=tensorflow"
                )

    def moved(self, model):
        """Returns a copy of a model on all devices, or the model itself if there is one device."""
        if model is None or not self.even:
            return model
        return fill(keras.models.clone_model(model), model.get_weights())


ALONE = Place()


def start(recipe):
    """Returns the `Place` of a recipe's training; see `docs/scaling.md`.

    Args:
        recipe: A `Recipe`; its `distribute`, `model_parallel`, `data` and `optim` are read.

    Raises:
        ValueError: For a setup that does not train correctly on this backend, with one that does.
        RuntimeError: If JAX was used before several processes were connected, and on any other backend than TensorFlow
            and JAX.
    """
    backend, kind = keras.backend.backend(), recipe.distribute
    if backend not in ("tensorflow", "jax"):
        raise RuntimeError(
            "Recipes are trained by TensorFlow or JAX: set KERAS_BACKEND to one of them, or call `model.fit` (torch). "
            f"Received: KERAS_BACKEND={backend}"
        )
    if recipe.model_parallel > 1 and kind != "model":
        raise ValueError(
            f"model_parallel needs distribute=model. Received: model_parallel={recipe.model_parallel}, "
            f"distribute={kind}"
        )
    if kind is None:
        return ALONE
    if backend == "jax":
        return _on_jax(kind, recipe.data.batch_size, recipe.model_parallel)
    return _on_tensorflow(kind, recipe)


def need_tensorflow(what):
    """Raises ImportError, with what needs it, unless TensorFlow is installed; leaves GPUs to another backend."""
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        raise ImportError(
            f"{what} needs TensorFlow, which is not installed: pip install tensorflow. "
            "On arrays, `model.fit(images, labels)` needs none."
        ) from None
    leave_devices_to_jax()


def leave_devices_to_jax():
    """Hides the GPUs from TensorFlow, which reads the data, if another backend computes on them."""
    if keras.backend.backend() != "tensorflow":
        import tensorflow as tf

        with contextlib.suppress(RuntimeError):  # TensorFlow is already initialized
            tf.config.set_visible_devices([], "GPU")


@contextlib.contextmanager
def apart():
    """A block in which models built on JAX belong to this process alone, in host memory."""
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
            f"model_parallel must divide {len(devices)}, the number of devices ({each} per process). "
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
    """Shards weights by `LAYOUT`, if they divide evenly."""

    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        parts = self.device_mesh.shape[1]
        for size, axis in zip(variable.shape, layout.axes):
            if axis == "model" and size % parts:
                raise ValueError(
                    f"model_parallel must divide the model's width and mlp_dim: {variable.path} has the shape "
                    f"{tuple(variable.shape)}. Received: model_parallel={parts}"
                )
        return layout


def _join(jax):
    """Connects this process to its group, if the variables of `keras.distribution` or Slurm define one."""
    by_keras = any(name.startswith("KERAS_DISTRIBUTION_") for name in os.environ)
    by_slurm = all(name in os.environ for name in SLURM) and int(os.environ["SLURM_NTASKS"]) > 1
    if jax.distributed.is_initialized() or not (by_keras or by_slurm):
        return
    try:
        keras.distribution.initialize()
    except RuntimeError as error:
        if "before any JAX calls" not in str(error):
            raise
        raise RuntimeError(
            "Several processes must be connected before JAX is used: build no model and no layer before `fit`, or "
            "call keras.distribution.initialize() first."
        ) from None


def _agree(numbers):
    from jax.experimental import multihost_utils

    return np.max(multihost_utils.process_allgather(np.asarray(numbers, "int32")), axis=0).tolist()


@contextlib.contextmanager
def _group(distribution, processes):
    """The scope of one of several processes. An error ends the process at once, and thereby the others."""
    try:
        with distribution.scope():
            yield
    except Exception as error:
        # At exit JAX would wait for the group forever; what is registered last is called first.
        atexit.register(_end)
        if re.search(LOST, str(error), re.IGNORECASE) and not isinstance(error, OSError):
            raise RuntimeError(
                f"One of the {processes} processes was lost ({str(error).splitlines()[0]:.200}). "
                "Start the same command again for all of them to resume from the last training state."
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
        raise ValueError("distribute=model needs KERAS_BACKEND=jax. Received: KERAS_BACKEND=tensorflow")
    workers = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    workers = sum(len(addresses) for task, addresses in workers.items() if task in ("chief", "worker"))
    if workers > 1:
        raise ValueError(
            f"Several processes need KERAS_BACKEND=jax: Keras does not support them on TensorFlow. Received: {workers} "
            "workers in TF_CONFIG, KERAS_BACKEND=tensorflow"
        )
    if os.environ.get("TPU_NAME") or tf.config.list_physical_devices("TPU"):
        raise ValueError(
            "TPUs need KERAS_BACKEND=jax: TensorFlow 2.21 and later have no TPU package. Received: tensorflow"
        )
    devices = [d.name for d in tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")]
    _check_batch(recipe.data.batch_size, len(devices))
    if len(devices) == 1:
        return ALONE
    if policy.name == "mixed_float16":  # Keras checks for overflow on the first device only
        raise ValueError(
            f"Several devices need dtype=mixed_bfloat16 or float32 on TensorFlow. Received: mixed_float16, "
            f"{len(devices)} devices"
        )
    if recipe.task.compares:  # each device would see its own part of a batch
        raise ValueError(
            f"{type(recipe.task).__name__} compares the images of a whole batch: on several devices it needs "
            f"KERAS_BACKEND=jax. Received: {len(devices)} devices, KERAS_BACKEND=tensorflow"
        )
    distill = getattr(recipe.task, "distill", None)
    if optim.accumulate > 1 or distill:  # Keras fails at the first; the second would be counted once per device
        raise ValueError(
            "optim.accumulate and task.distill on several devices need KERAS_BACKEND=jax. Received: "
            f"optim.accumulate={optim.accumulate}, task.distill={distill}, {len(devices)} devices, "
            "KERAS_BACKEND=tensorflow"
        )
    return Place(_mirrored(tuple(devices)).scope, jit_compile=False, even=True)


@functools.cache
def _mirrored(devices):
    """Returns the strategy for some devices, the same for all runs: two would reuse the same collective keys."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(devices)


def _check_batch(batch_size, replicas):
    if batch_size % replicas:
        raise ValueError(
            f"data.batch_size must be a multiple of {replicas}, the number of replicas. "
            f"Received: data.batch_size={batch_size}"
        )

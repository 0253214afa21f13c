"""Small trainings that `training/test_devices.py` starts as processes: `python -m tests.processes CASE FOLDER`.

Backend and number of devices are fixed at import, by the environment. The last line that is printed is JSON.
"""

import json
import os
import pathlib
import signal
import sys

import keras
import numpy as np

import keras_vit
from keras_vit import config
from keras_vit.training import keep, stopping

MODEL = {"patch_size": 4, "width": 16, "depth": 1, "num_heads": 2, "mlp_dim": 32, "image_size": 8, "channels": 1}
OPTIM = config.Optim(epochs=2, learning_rate=0.01, weight_decay=0.1, clip_norm=0.05, ema=0.8, warmup_epochs=0.5)
RECIPE = config.Recipe(
    name="devices",
    model={"variant": None, "num_classes": 10, **MODEL},
    data=config.Data(batch_size=16, train="all[:6%]", validation="all[70%:72%]"),  # 6 steps, and 36 images
    augment=config.Augment(rotation=10.0),
    optim=OPTIM,
)
RANDOM = {"model.dropout": 0.1, "model.stochastic_depth": 0.2}  # on JAX drawn alike on any number of devices


def at(step, act, _end=keep.KeepState.on_train_batch_end):
    """Calls `act` once, after that step of the run."""
    left = [act]

    def on_train_batch_end(self, batch, logs=None):
        _end(self, batch, logs)
        if left and self.run.epoch * self.run.steps + self.run.step == step:
            left.pop()()

    keep.KeepState.on_train_batch_end = on_train_batch_end


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def be_stopped():
    os.kill(os.getpid(), signal.SIGTERM)


def give_up():
    raise SystemError


def fit(folder, changes=(), **more):
    return keras_vit.fit(config.override(RECIPE, dict(changes)), folder, verbose=0, save_steps=2, **more)


def refusals(folder, cases):
    """Returns what is said to each of some recipes."""
    found = {}
    for name, changes in cases.items():
        try:
            fit(folder / name.replace("/", "-"), changes)
        except ValueError as error:
            found[name] = str(error)
    return found


def jax(folder):
    """Four devices in one process."""
    fit(folder / "one", RANDOM)
    model, _ = fit(folder / "data", {**RANDOM, "distribute": "data"})
    answers = model.predict(np.zeros((3, 8, 8, 1)), verbose=0).shape
    replicated = all(v.value.sharding.is_fully_replicated for v in model.weights)
    at(4, give_up)
    split = {**RANDOM, "distribute": "model", "model_parallel": 2}
    try:
        fit(folder / "model", {**RANDOM, "distribute": "data"})
    except SystemError:
        model, _ = fit(folder / "model", split)  # the rest, with the weights split
    variables = [*model.weights, *model.optimizer.variables]
    said = refusals(
        folder,
        {
            "batch": {"distribute": "data", "data.batch_size": 18},
            "parts": {"distribute": "model", "model_parallel": 3},
            "width": {**split, "model.mlp_dim": 31},
        },
    )
    return {
        "answers": answers,
        "replicated": replicated,
        "specs": {v.path: tuple(v.value.sharding.spec) for v in variables},
        "sizes": {v.path: [v.value.addressable_shards[0].data.size, v.value.size] for v in variables},
        "said": said,
    }


def tensorflow(folder):
    """Two devices of MirroredStrategy."""
    import tensorflow as tf

    half = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [half, half])
    fit(folder / "one")
    at(9, give_up)
    try:
        fit(folder / "data", {"distribute": "data"})
    except SystemError:
        model, _ = fit(folder / "data", {"distribute": "data"})
    cases = {
        "accumulate": {"optim.accumulate": 2},
        "distill": {"task.distill": "soft"},
        "float16": {"model.dtype": "mixed_float16"},
        "batch": {"data.batch_size": 15},
    }
    said = refusals(folder, {name: {**changes, "distribute": "data"} for name, changes in cases.items()})
    return {"answers": model.predict(np.zeros((3, 8, 8, 1)), verbose=0).shape, "said": said}


def killed(folder):
    """One of two processes, of which the second dies."""
    if os.environ["KERAS_DISTRIBUTION_PROCESS_ID"] == "1":
        at(3, die)
    fit(folder / "pair", {**RANDOM, "distribute": "data"})


def again(folder):
    """One of two processes, of which the second is asked to stop; then both resume."""
    keep.TOGETHER = stopping.TOGETHER = 2
    if os.environ["KERAS_DISTRIBUTION_PROCESS_ID"] == "1":
        at(9, be_stopped)
    try:
        fit(folder / "pair", {**RANDOM, "distribute": "data"})
    except stopping.Stopped as stopped:
        said = str(stopped)
    model, history = fit(folder / "pair", {**RANDOM, "distribute": "data"})
    answers = model.predict(np.zeros((3, 8, 8, 1)), verbose=0).shape
    return {"said": said, "answers": answers, "val_loss": history["val_loss"]}


if __name__ == "__main__":
    if "KERAS_DISTRIBUTION_PROCESS_ID" in os.environ:
        import jax as library

        library.config.update("jax_cpu_collectives_implementation", "gloo")
    case = {"jax": jax, "tensorflow": tensorflow, "killed": killed, "again": again}[sys.argv[1]]
    print(json.dumps(case(pathlib.Path(sys.argv[2])) | {"backend": keras.backend.backend()}))

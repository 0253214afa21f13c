import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import types

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit import config
from keras_vit.runs import results
from keras_vit.training import devices, history, state
from keras_vit.training.devices import Place
from tests import processes
from tests.marks import slow

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def process(case, folder, **environment):
    """Starts one of `tests.processes`."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("KERAS_DISTRIBUTION", "XLA_FLAGS"))}
    quick = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    quick["CUDA_VISIBLE_DEVICES"] = "-1"  # TensorFlow would take GPUs before the devices that are made of one CPU
    words = [sys.executable, "-m", "tests.processes", case, str(folder)]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    root = pathlib.Path(__file__).parents[2]
    return subprocess.Popen(words, env={**known, **quick, **environment}, cwd=root, **pipes)


def pair(case, folder):
    """Runs one of `tests.processes` in two processes that know of each other; returns both, with what they said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    group = {"KERAS_DISTRIBUTION_JOB_ADDRESSES": address, "KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}
    both = [process(case, folder, **group, KERAS_DISTRIBUTION_PROCESS_ID=str(i)) for i in range(2)]
    try:
        return [(one, *one.communicate(timeout=600)) for one in both]
    finally:
        for one in both:
            one.kill()


def result(running):
    out, errors = running.communicate(timeout=600)
    assert running.returncode == 0, out[-3000:] + errors[-3000:]
    return json.loads(out.splitlines()[-1])


def numbers(folder):
    return {k: v for k, v in state.newest(folder)[0].items() if not k.endswith("seed_generator_state")}


def same(folder, other):
    """Whether two runs ended alike: weights, optimizer, moving average; what was measured; and what was written."""
    ours, theirs = numbers(folder), numbers(other)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=0, atol=2e-5, err_msg=name)
    first, second = history.read(folder), history.read(other)
    for name in ("loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"):
        np.testing.assert_allclose(first[name], second[name], rtol=1e-5, err_msg=name)
    for file in ("model.keras", "best.keras"):
        weights = [results.load_run(f, file).model.get_weights() for f in (folder, other)]
        for a, b in zip(*weights):
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5)
    return True


@pytest.fixture(scope="module")
def on_jax(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jax")
    return result(process("jax", folder, XLA_FLAGS="--xla_force_host_platform_device_count=4")), folder


@slow
@needs_jax
def test_on_jax_four_devices_train_as_one_does(on_jax):
    found, folder = on_jax
    assert found["replicated"] and found["answers"] == [3, 10]
    assert same(folder / "data", folder / "one")


@slow
@needs_jax
def test_on_jax_weights_are_split_and_so_is_what_the_optimizer_holds(on_jax):
    found, folder = on_jax
    assert same(folder / "model", folder / "one")  # half of it was trained with all weights everywhere
    specs = found["specs"]
    for end in ("", "_average", "_momentum", "_velocity"):
        names = [f"{'optimizer/' * bool(end)}block_0/{name}{end}" for name in (
            "attention/qkv/kernel", "attention/proj/kernel", "mlp/fc1/kernel", "mlp/fc2/kernel", "mlp/fc1/bias",
            "attention/qkv/bias", "mlp/fc2/bias")]  # fmt: skip
        names = [n.replace("/", "_").replace("optimizer_", "optimizer/") if end else n for n in names]
        wanted = [[None, "model"], ["model", None], [None, "model"], ["model", None], ["model"], ["model"], [None]]
        assert [specs[n] for n in names] == wanted
        assert [found["sizes"][n][1] // found["sizes"][n][0] for n in names] == [2] * 6 + [1]
    assert not any(axis for name, spec in specs.items() if "block" not in name for axis in spec)


@slow
@needs_jax
def test_on_jax_what_cannot_be_shared_evenly_is_refused(on_jax):
    said = on_jax[0]["said"]
    assert (
        said["batch"] == "data.batch_size must be a multiple of 4, the number of replicas. Received: data.batch_size=18"
    )
    assert said["parts"].endswith("must divide 4, the number of devices (4 per process). Received: model_parallel=3")
    assert "mlp_dim: block_0/mlp/fc1/kernel has the shape (16, 31)" in said["width"]


@slow
@needs_jax
def test_two_processes_lose_one_go_on_are_stopped_and_end_as_one_device_does(on_jax, tmp_path):
    _, folder = on_jax
    (first, _, errors), (second, *_) = pair("killed", tmp_path)
    assert second.returncode == -signal.SIGKILL
    assert first.returncode == 1  # in the end: nothing waits for the lost one
    last = errors.strip().splitlines()[-1]
    assert last.startswith("RuntimeError: One of the 2 processes was lost (")
    assert last.endswith("Start the same command again for all of them to resume from the last training state.")
    assert state.newest(tmp_path / "pair")[1]["step"] == 2

    found = []
    for one, out, errors in pair("again", tmp_path):
        assert one.returncode == 0, errors[-3000:]
        found.append(json.loads(out.splitlines()[-1]))
    assert found[0] == found[1]
    assert "Stopped after epoch 1, step 4 of 6" in found[0]["said"]  # the signal came to one of them, at step 3
    assert found[0]["answers"] == [3, 10]
    assert same(tmp_path / "pair", folder / "one")


@slow
def test_on_tensorflow_two_devices_train_as_one_does(tmp_path):
    found = result(process("tensorflow", tmp_path, KERAS_BACKEND="tensorflow"))
    assert found["backend"] == "tensorflow" and found["answers"] == [3, 10]
    assert same(tmp_path / "data", tmp_path / "one")
    for name in ("accumulate", "distill"):
        assert "need" in found["said"][name] and "2 devices" in found["said"][name]
    assert (
        "need dtype=mixed_bfloat16 or float32 on TensorFlow. Received: mixed_float16, 2 devices"
        in found["said"]["float16"]
    )
    assert "a multiple of 2, the number of replicas" in found["said"]["batch"]


@pytest.mark.skipif(not ON_TENSORFLOW, reason="what TensorFlow refuses")
@pytest.mark.parametrize(
    "changes, environment, match",
    [
        (
            {"distribute": "model", "model_parallel": 2},
            {},
            "distribute=model needs KERAS_BACKEND=jax. Received: KERAS_BACKEND=tensorflow",
        ),
        (
            {"distribute": "data"},
            {"TF_CONFIG": '{"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}}'},
            "Several processes need KERAS_BACKEND=jax.*2 workers",
        ),
        ({"distribute": "data"}, {"TPU_NAME": "local"}, "TPUs need KERAS_BACKEND=jax"),
    ],
)
def test_what_tensorflow_does_not_do_right_names_jax(changes, environment, match, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=match):
        devices.start(config.override(processes.RECIPE, changes))


def test_what_makes_no_sense_is_refused_and_one_device_just_trains(monkeypatch):
    with pytest.raises(ValueError, match="distribute=model. Received: model_parallel=2, distribute=None"):
        devices.start(config.override(processes.RECIPE, {"model_parallel": 2}))
    if not tf.config.list_physical_devices("GPU"):
        assert devices.start(config.override(processes.RECIPE, {"distribute": "data"})) is devices.ALONE
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(RuntimeError, match="trained by TensorFlow or JAX.*Received: KERAS_BACKEND=torch"):
        devices.start(config.override(processes.RECIPE, {"distribute": "data"}))


def test_the_step_is_compiled_where_it_can_be(monkeypatch):
    optim = config.Optim(xla=False)
    assert Place().compiles(config.Optim()) and not Place(jit_compile=False).compiles(config.Optim())
    assert Place().compiles(optim) is not ON_TENSORFLOW
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    assert Place().compiles(optim)


@pytest.mark.skipif(not ON_TENSORFLOW, reason="what TensorFlow does not do right")
def test_batch_norm_on_several_devices_names_jax():
    plain, stem = keras_vit.vit("mu/4", image_size=8), keras_vit.vit("mu/4", image_size=8, stem="conv", patch_size=1)
    Place(even=True).check(plain), Place().check(stem)
    with pytest.raises(
        ValueError, match="Batch normalization on several devices needs KERAS_BACKEND=jax.*the layer 'norm"
    ):
        Place(even=True).check(stem)


SLURM = dict.fromkeys(devices.SLURM, "4")


@pytest.mark.parametrize(
    "environment, initialized, joins",
    [
        ({}, False, False),
        ({"KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}, False, True),
        ({"KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}, True, False),
        (SLURM, False, True),
        ({**SLURM, "SLURM_NTASKS": "1"}, False, False),
        ({"SLURM_NTASKS": "4"}, False, False),  # in the batch script, of which there is one
    ],
)
def test_when_processes_look_for_each_other(environment, initialized, joins, monkeypatch):
    for name in (*devices.SLURM, "KERAS_DISTRIBUTION_NUM_PROCESSES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    calls = []
    monkeypatch.setattr(keras.distribution, "initialize", lambda: calls.append(1))
    devices._join(types.SimpleNamespace(distributed=types.SimpleNamespace(is_initialized=lambda: initialized)))
    assert bool(calls) == joins


def test_processes_that_used_jax_before_they_met_are_told_so(monkeypatch):
    def initialize():
        raise RuntimeError("jax.distributed.initialize() must be called before any JAX calls that ...")

    monkeypatch.setenv("KERAS_DISTRIBUTION_NUM_PROCESSES", "2")
    monkeypatch.setattr(keras.distribution, "initialize", initialize)
    with pytest.raises(RuntimeError, match="must be connected before JAX is used"):
        devices._join(types.SimpleNamespace(distributed=types.SimpleNamespace(is_initialized=lambda: False)))


def test_processes_that_see_other_states_are_told_to_share_a_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "VISIBLE_SECONDS", 2)
    monkeypatch.setattr(state.time, "sleep", lambda seconds: None)
    with pytest.raises(ValueError, match="share one run directory. Received: .*different training states"):
        state.newest_for_all(tmp_path, Place(agree=lambda numbers: [n + 1 for n in numbers]))

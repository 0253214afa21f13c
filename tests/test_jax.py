"""The core on JAX, in a process where TensorFlow cannot be imported."""

import importlib.util
import os
import re
import subprocess
import sys

import keras
import pytest

pytestmark = pytest.mark.skipif(
    keras.backend.backend() == "jax" or importlib.util.find_spec("jax") is None, reason="runs JAX from TensorFlow's run"
)


ELSEWHERE = (  # slow here, and of files, sizes and processes rather than of a backend's arithmetic
    "checkpoints/test_arguments.py",
    "checkpoints/test_load.py::test_logits_are_the_originals[google_r50ish]",  # google_r_ti is of its kind
    "checkpoints/test_published.py",
    "checkpoints/test_save.py",
    "layers/test_resnet_stem.py::test_layer[stages1-shape1]",
    "test_cookbook.py::test_shipped_weights_load_and_are_small",
    "test_counting.py",
    "test_models.py::test_a_keras_network_up_to_a_layer_is_a_stem",
    "test_rundir.py",
)


def run(*words):
    quick = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # of compiling
    environment = {**os.environ, **quick, "KERAS_BACKEND": "jax", "KERAS_VIT_HIDE_TENSORFLOW": "1"}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_marked_tests_pass():
    folder = os.path.dirname(__file__)
    left_out = [f"--deselect=tests/{name}" for name in ELSEWHERE]
    out = run("-m", "pytest", "-q", "-m", "backend", "-p", "no:cacheprovider", "-n", "0", folder, *left_out)
    assert re.search(r"\d{3} passed", out.splitlines()[-1])


def test_what_needs_tensorflow_says_so():
    out = run(
        "-c",
        "import tests.conftest, keras, numpy as np, keras_vit\n"
        "model = keras_vit.from_recipe('digits')\n"
        "model.compile('adamw', keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)\n"
        "model.fit(np.zeros((8, 8, 8, 1), 'uint8'), np.zeros(8, 'int32'), verbose=0)\n"
        "for call in (lambda: keras_vit.fit('digits'), lambda: keras_vit.datasets('digits'),\n"
        "             lambda: keras_vit.evaluate('digits'), lambda: keras_vit.export_saved_model(model, 'x'),\n"
        "             lambda: keras_vit.export_tflite(model, 'x.tflite')):\n"
        "    try:\n"
        "        call()\n"
        "    except (ImportError, RuntimeError) as error:\n"
        "        print(error)\n",
    )
    lines = out.strip().splitlines()
    assert len(lines) == 5 and all("TensorFlow" in line for line in lines), out

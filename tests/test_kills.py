"""A run that is killed again and again ends where a run ends that is left alone, bit for bit."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.runs import results
from keras_vit.training import state
from tests.marks import slow

KILLS = int(os.environ.get("KERAS_VIT_KILLS", "4"))
pytestmark = slow
RUN = """
import os, signal, sys, threading
import keras, numpy as np
import keras_vit
from keras_vit import config
from sklearn.datasets import load_digits
from keras_vit.utils import files
from keras_vit.training import devices, rundir, state

folder, how, when, task = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
count = 0

class Clock(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        if how == "any moment":
            threading.Timer(when, die).start()

def counted(function, before):
    def call(*arguments, **more):
        global count
        count += 1
        if count == int(when):
            before(*arguments)
            die()
        return function(*arguments, **more)
    return call

def half(arrays, path, **more):
    open(path, "wb").write(b"half a file")

def done(old, new):
    rename(old, new)

rename = os.replace
if how == "while writing":
    state.safetensors.numpy.save_file = counted(state.safetensors.numpy.save_file, half)
if how == "before renaming":
    files.os.replace = counted(os.replace, lambda *_: None)
if how == "after renaming":
    files.os.replace = counted(os.replace, done)

devices.ALONE = devices.Place(jit_compile=False)  # compiling takes longer than this training
recipe = keras_vit.load_recipe("digits", {
    "optim.epochs": 3, "data.limit": 160, "model.depth": 1, "model.width": 32, "model.mlp_dim": 32,
    "model.dropout": 0.1, "model.stochastic_depth": 0.2, "optim.ema": 0.9, "optim.accumulate": 2, "augment.mixup": 0.2,
    "augment.randaugment": 1})
if task == "pretrain":  # its loss, its decoder and its masks too
    model = {**recipe.model, "num_classes": 0}
    decoder = config.Pretrain(decoder_width=16, decoder_depth=1, decoder_heads=2)
    recipe = config.Recipe("pretrain", model, task=decoder, data=recipe.data, optim=recipe.optim,
                           augment=config.Augment(rotation=10.0))
if task == "dino":  # its teacher, its center, its schedules and its crops too
    model = {**recipe.model, "num_classes": 0}
    own = config.Pretrain(method="dino", prototypes=16, head_width=16, local_crops=2, temperature_epochs=2.0)
    recipe = config.Recipe("dino", model, task=own, data=recipe.data, augment=config.Augment(flip=True),
                           optim=config.Optim(epochs=3))
arrays = {}
if task == "crops":  # which are drawn anew in each epoch
    model = dict(image_size=8, patch_size=4, channels=1, depth=1, width=32, num_heads=2, mlp_dim=32)
    recipe = config.Recipe("crops", model, task=config.Segment(classes=("paper", "ink")),
                           data=config.Data(batch_size=8, crops_per_image=5, crops_balanced=True),
                           augment=config.Augment(flip=True), optim=config.Optim(epochs=3))
    images = np.tile(load_digits().images[:16, :, :, None], (1, 3, 4, 1)) * (255 / 16)
    arrays = dict.fromkeys(("train", "validation"), (images, (images[..., 0] > 127).astype("uint8")))
keras_vit.fit(recipe, folder, verbose=0, save_steps=1, callbacks=[Clock()], **arrays)
print("ended")
"""


def start(folder, task, how="not", when=0.0):
    words = [sys.executable, "-c", RUN, str(folder), how, str(when), task]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode in (0, -9), done.stderr[-3000:]
    return done.returncode == 0


@pytest.mark.parametrize("task", ["classify", "pretrain", "dino", "crops"])
def test_killed_at_any_moment_nothing_is_lost(tmp_path, task):
    assert start(tmp_path / "whole", task)
    rng = random.Random(int(os.environ.get("KERAS_VIT_SEED", "0")))
    ways = ["while writing", "before renaming", "after renaming", "any moment"]
    killed, ended = 0, False
    for i in range(KILLS if task == "classify" else max(KILLS // 4, 1)):
        how = ways[i % len(ways)]
        when = rng.uniform(0.0, 3.0) if how == "any moment" else rng.randint(1, 4)
        ended = start(tmp_path / "killed", task, how, when)
        killed += not ended
    assert killed
    assert ended or start(tmp_path / "killed", task)
    ours, theirs = (state.newest(tmp_path / name) for name in ("killed", "whole"))
    assert ours[0].keys() == theirs[0].keys()
    for name, array in theirs[0].items():
        np.testing.assert_array_equal(ours[0][name], array, err_msg=name)
    timing = ("images_per_second", "minutes_left")
    rows = [[{k: v for k, v in row.items() if k not in timing} for row in s[1]["history"]] for s in (ours, theirs)]
    assert rows[0] == rows[1]
    models = [results.load_run(tmp_path / name).model.get_weights() for name in ("killed", "whole")]
    for a, b in zip(*models):
        np.testing.assert_array_equal(a, b)
    assert (tmp_path / "killed" / "learner.keras").exists() == (task == "pretrain")
    left = {path.name for path in (tmp_path / "killed").iterdir() if not path.name.startswith("state-")}
    assert left <= {
        "recipe.json",
        "machine.json",
        "data.json",
        "labels.txt",
        "history.csv",
        "best.keras",
        "model.keras",
        "learner.keras",
        ".lock",
    }

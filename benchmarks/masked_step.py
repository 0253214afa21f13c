"""Time of a step of masked pre-training, compared with a full-token step of its encoder: in turns, in one process.

python benchmarks/masked_step.py > benchmarks/results/masked_step.json

Beside the measured ratio stands that of the multiply-adds.
"""

import json
import math
import os
import platform
import statistics
import sys
import time

import keras
import tensorflow as tf
from checkout import commit

import keras_vit
from keras_vit.tasks.pretrain.encoder import visible_patches

ROUNDS = 9
CASES = {  # arguments of `vit`, of `Pretrain`, and images per step
    "cifar10_mae": ({"variant": None, "patch_size": 4, "width": 128, "depth": 6, "num_heads": 4, "mlp_dim": 512,
                     "image_size": 32, "pooling": "gap", "position": "sincos2d"},
                    {"decoder_width": 96, "decoder_depth": 1, "decoder_heads": 3}, 128),
    "S/16": ({"variant": "S/16"}, {"decoder_width": 256, "decoder_depth": 4, "decoder_heads": 8}, 16),
    "B/16": ({"variant": "B/16"}, {}, 4),
}  # fmt: skip


def macs(tokens, width, depth, mlp):
    """Returns the multiply-adds of encoder blocks."""
    return depth * (tokens * (4 * width**2 + 2 * width * mlp) + 2 * tokens**2 * width)


def measured(arguments, settings, batch):
    """Returns seconds of both steps, their ratio, and that of the multiply-adds."""
    keras.utils.set_random_seed(0)
    task = keras_vit.Pretrain(**settings)
    encoder = keras_vit.vit(**{**arguments, "num_classes": 0})
    learner = task.learner(encoder)
    full = keras_vit.vit(**{**arguments, "num_classes": 0})
    learner.compile("adamw", **task.compiled(None), jit_compile=True)
    full.compile("adamw", "mse", jit_compile=True)
    images = tf.random.uniform((batch, *encoder.input_shape[1:]), 0, 255)
    x, y = task.batch({"images": images}, None, tf.constant([0, 1]))
    targets = tf.zeros((batch, encoder.output_shape[-1]))
    steps = {"masked": lambda: learner.train_on_batch(x, y), "full": lambda: full.train_on_batch(images, targets)}
    seconds = {name: [] for name in steps}
    for turn in range(ROUNDS + 2):  # the first two compile
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn > 1:
                seconds[name].append(time.perf_counter() - start)
    ratios = [one / other for one, other in zip(seconds["masked"], seconds["full"], strict=True)]
    block = encoder.get_layer("block_0")
    width, depth = encoder.output_shape[-1], sum(layer.name.startswith("block_") for layer in encoder.layers)
    patches = encoder.get_layer("patches")
    count, pixels = (
        math.prod(patches.grid(patches.input.shape)),
        math.prod(patches.patch_size) * patches.input.shape[-1],
    )
    prefix, seen = encoder.get_layer("encoder").num_prefix, visible_patches(count, task.mask_ratio)
    inner = task.decoder_width
    embedding = count * pixels * width
    whole = embedding + macs(count + prefix, width, depth, block.mlp_dim)
    part = embedding + macs(seen + prefix, width, depth, block.mlp_dim) + (seen + prefix) * width * inner
    part += macs(count + prefix, inner, task.decoder_depth, 4 * inner) + count * inner * pixels
    return {
        "batch": batch,
        **{f"{name}_ms": round(1000 * statistics.median(of), 1) for name, of in seconds.items()},
        "ratio": round(statistics.median(ratios), 3),
        "ratio_of_rounds": [round(min(ratios), 3), round(max(ratios), 3)],
        "ratio_of_multiply_adds": round(part / whole, 3),
    }


def main():
    cases = {}
    for name, case in CASES.items():
        cases[name] = measured(*case)
        print(name, cases[name], file=sys.stderr, flush=True)
        keras.backend.clear_session()
    about = {"commit": commit(), "device": f"{platform.machine()}, {os.cpu_count()} cores"}
    about |= {"keras": keras.__version__, "tensorflow": tf.__version__}
    print(json.dumps({**about, "rounds": ROUNDS, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()

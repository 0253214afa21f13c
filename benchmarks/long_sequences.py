"""Time and memory of one picture as it grows: attention in blocks, with all scores at once, and timm's.

python benchmarks/long_sequences.py [--variant S/16] [--pixels 224,384,512,1024,1536] [--rounds 3]

Writes `results/long_sequences.json`. Each case runs in a process of its own, in rounds: two steps after the first, or
one where a step takes more than ten seconds. Memory is the most that the process held, less what it held with the
model before the first step: it includes what compiling takes.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from checkout import commit

CASES = ("blocks", "whole", "checkpointed", "timm")
SLOW = 10  # seconds
WHOLE = 1024  # pixels, at most, where all scores are held for training: S/16 would take about 40 GB at 1,536


def peak():
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1e3


def of_timm(variant, pixels, training):
    import torch
    from timm_alone import import_timm

    size, patch = variant.split("/")
    name = {"Ti": "tiny", "S": "small", "B": "base", "L": "large"}[size]
    model = import_timm().create_model(f"vit_{name}_patch{patch}_224", img_size=pixels, num_classes=1000)
    images, labels = torch.zeros(1, 3, pixels, pixels), torch.zeros(1, dtype=torch.long)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)

    def train():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    def infer():
        with torch.no_grad():
            model(images)

    model.train(training)
    return train if training else infer


def of_ours(variant, pixels, training, case):
    import contextlib

    import keras
    import numpy as np
    import tensorflow as tf

    import keras_vit
    from keras_vit.models.remat import rematerialized

    keras_vit.MultiHeadSelfAttention.takes_blocks = case != "whole"
    with rematerialized() if case == "checkpointed" else contextlib.nullcontext():
        model = keras_vit.vit(variant, image_size=pixels, num_classes=1000)
    images, labels = np.zeros((1, pixels, pixels, 3), "uint8"), np.zeros(1, "int32")
    if training:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.0), loss, jit_compile=True)
        return lambda: model.train_on_batch(images, labels)
    step = tf.function(lambda x: model(x, training=False), jit_compile=True)
    return lambda: step(images).numpy()


def measure(variant, pixels, training, case):
    step = of_timm(variant, pixels, training) if case == "timm" else of_ours(variant, pixels, training, case)
    before, seconds = peak(), []
    while len(seconds) < 3 and (len(seconds) < 2 or seconds[-1] < SLOW):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(seconds[1:]), "first": seconds[0], "megabytes": peak() - before}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", default="S/16")
    parser.add_argument("--pixels", default="224,384,512,1024,1536")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--case", nargs=3)
    given = parser.parse_args()
    if given.case:
        case, pixels, step = given.case
        measure(given.variant, int(pixels), step == "training", case)
        return
    from keras_vit.utils import machine

    processor = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    report = {"variant": given.variant, "commit": commit(), "processor": processor, **machine.describe(), "rows": []}
    out = pathlib.Path(__file__).parent / "results" / "long_sequences.json"
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    for pixels in given.pixels.split(","):
        for step in ("inference", "training"):
            without = {"inference": ["checkpointed"], "training": ["whole"] * (int(pixels) > WHOLE)}[step]
            cases = [case for case in given.cases.split(",") if case not in without]
            found = {case: [] for case in cases}
            for _ in range(given.rounds):
                for case in cases:
                    words = [sys.executable, __file__, "--variant", given.variant, "--case", case, pixels, step]
                    done = subprocess.run(words, capture_output=True, text=True, env=quiet)
                    found[case] += [json.loads(done.stdout.splitlines()[-1])] if done.returncode == 0 else []
            row = {
                case: {name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]}
                for case, runs in found.items()
                if runs
            }
            report["rows"].append({"pixels": int(pixels), "step": step, **row})
            print(pixels, step, row, flush=True)
            out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

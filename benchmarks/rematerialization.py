"""Memory and time of a training step with and without rematerialized blocks.

python benchmarks/rematerialization.py S/16 32

Each case runs in a process of its own: peak memory is the process's, less what it had before the first step.
"""

import json
import platform
import resource
import subprocess
import sys
import time

from checkout import commit

CASES = ("kept", "computed again")


def case(variant, batch, remat):
    import contextlib

    import keras
    import numpy as np

    import keras_vit
    from keras_vit.models.remat import rematerialized

    keras.utils.set_random_seed(0)
    with rematerialized() if remat else contextlib.nullcontext():
        model = keras_vit.vit(variant, num_classes=1000, stochastic_depth=0.1)
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    images, labels = np.random.default_rng(0).integers(0, 256, (batch, 224, 224, 3)).astype("float32"), np.arange(batch)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        model.train_on_batch(images, labels)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"megabytes": (peak - before) / 1024, "seconds": sorted(seconds[1:])[1], "compile": seconds[0]}))


def main(variant="S/16", batch="32"):
    import keras
    import tensorflow as tf

    found = {}
    for name in CASES:
        words = [sys.executable, __file__, variant, batch, name]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found[name] = json.loads(printed.splitlines()[-1])
    one, other = (found[name] for name in CASES)
    report = {
        "variant": variant,
        "batch": int(batch),
        **found,
        "memory_ratio": other["megabytes"] / one["megabytes"],
        "time_ratio": other["seconds"] / one["seconds"],
        "commit": commit(),
        "device": f"{platform.machine()}, {len(__import__('os').sched_getaffinity(0))} cores",
        "versions": {"keras": keras.__version__, "tensorflow": tf.__version__},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        case(sys.argv[1], int(sys.argv[2]), sys.argv[3] == CASES[1])
    else:
        main(*sys.argv[1:])

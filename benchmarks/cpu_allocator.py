"""Training on a CPU with TensorFlow's memory pool, compared with its default: processes in turns, under XLA.

python benchmarks/cpu_allocator.py > benchmarks/results/cpu_allocator.json

By default TensorFlow takes the memory of each large tensor from the C library, which gives it back to the kernel.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

from checkout import commit

VARIABLE = "TF_CPU_ALLOCATOR_USE_BFC"
ROUNDS = 3
CASES = {  # arguments of `vit`, and images per step
    "mnist": ({"variant": None, "image_size": 28, "channels": 1, "patch_size": 4, "width": 96, "depth": 6,
               "num_heads": 4, "mlp_dim": 192, "num_classes": 10, "pooling": "gap"}, 128),
    "cifar10_mae": ({"variant": None, "image_size": 32, "patch_size": 4, "width": 128, "depth": 6, "num_heads": 4,
                     "mlp_dim": 512, "num_classes": 10, "pooling": "gap"}, 128),
    "Ti/16": ({"variant": "Ti/16"}, 16),
}  # fmt: skip
SECONDS = 8


def measured(case):
    """Returns seconds and page faults per training step, and the peak of memory in GB, of this process."""
    import keras
    import numpy as np

    import keras_vit

    arguments, batch = CASES[case]
    model = keras_vit.vit(**arguments)
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    images, labels = np.random.default_rng(0).random((batch, *model.input_shape[1:]), "float32"), np.arange(batch) % 10
    for _ in range(3):
        model.train_on_batch(images, labels)
    before, steps, start = resource.getrusage(resource.RUSAGE_SELF), 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        model.train_on_batch(images, labels)
        steps += 1
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds / steps,
        "page_faults": (after.ru_minflt - before.ru_minflt) // steps,
        "gigabytes": after.ru_maxrss / 1e6,
    }


def median(rows, name, digits):
    return round(statistics.median(row[name] for row in rows), digits)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measured(sys.argv[1])))
        sys.exit()
    rows = {}
    for case in CASES:
        found = {"false": [], "true": []}
        for _ in range(ROUNDS):
            for value, column in found.items():
                command, settings = [sys.executable, __file__, case], {**os.environ, VARIABLE: value}
                done = subprocess.run(command, env=settings, capture_output=True, check=True)
                column.append(json.loads(done.stdout.splitlines()[-1]))
        ratios = [a["seconds"] / b["seconds"] for a, b in zip(found["false"], found["true"], strict=True)]
        rows[case] = {
            "speed": round(statistics.median(ratios), 2),
            "speed_of_rounds": [round(min(ratios), 2), round(max(ratios), 2)],
            **{
                name: {"seconds": median(column, "seconds", 4), "page_faults": median(column, "page_faults", 0),
                       "gigabytes": median(column, "gigabytes", 2)}
                for name, column in zip(("default", "pool"), found.values())
            },
        }  # fmt: skip
        print(case, rows[case], file=sys.stderr, flush=True)
    about = {"commit": commit(), "cores": os.cpu_count(), "machine": platform.processor() or platform.machine()}
    print(json.dumps({**about, "rounds": ROUNDS, "cases": rows}, indent=1))

"""Thousands of damaged checkpoints: each must be read or refused in one sentence, without a crash or a heap of memory.

python benchmarks/fuzz_readers.py > benchmarks/results/fuzz_readers.json
"""

import collections
import json
import pathlib
import platform
import resource
import tempfile
import time

import numpy as np
from checkout import commit

from keras_vit.checkpoints.files.read import open_checkpoint

GOLDEN = pathlib.Path(__file__).parents[1] / "tests" / "golden" / "checkpoints"
FILES = ("google_vit/checkpoint.npz", "google_vit_gap_linen/checkpoint.npz", "timm_vit/checkpoint.safetensors",
         "hf_vit/checkpoint.safetensors")  # fmt: skip
INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)


def mutate(content, rng):
    """Returns the bytes with a few of them changed, cut, repeated or put in: half of the time where headers are."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        edge = min(len(data), 400)
        at = int(rng.integers(0, edge) if rng.random() < 0.3 else rng.integers(0, max(len(data), 1)))
        at = len(data) - 1 - at if rng.random() < 0.3 else at
        kind = rng.integers(0, 6)
        if kind == 0:
            data[at : at + 1] = bytes([int(rng.integers(0, 256))])
        elif kind == 1:
            data[at : at + 1] = bytes([INTERESTING[rng.integers(0, 5)]])
        elif kind == 2:
            data[at : at + 8] = int(rng.integers(0, 2**63)).to_bytes(8, "little")
        elif kind == 3:
            del data[at : at + int(rng.integers(1, 200))]
        elif kind == 4:
            data[at:at] = data[at : at + int(rng.integers(1, 200))]
        else:
            data[at:at] = bytes(int(rng.integers(1, 20)))
    return bytes(data)


def outcomes(content, path, rounds, seed):
    """Reads mutated files; returns how many were read whole, and how many refused by ValueError."""
    rng, found = np.random.default_rng(seed), collections.Counter()
    for _ in range(rounds):
        path.write_bytes(mutate(content, rng))
        try:
            with open_checkpoint(path) as checkpoint:
                for name, shape in checkpoint.shapes.items():
                    assert checkpoint.read(name).shape == shape
            found["read"] += 1
        except ValueError as error:
            found["refused" if "\n" not in str(error) else "refused at length"] += 1
    return found


def main(rounds=5000):
    rows, start = {}, time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(FILES):
            path = pathlib.Path(folder) / pathlib.Path(name).name
            rows[name] = dict(outcomes((GOLDEN / name).read_bytes(), path, rounds, seed=i))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    about = {"commit": commit(), "python": platform.python_version(), "files": rounds * len(FILES), "crashes": 0}
    about |= {"seconds": round(time.perf_counter() - start), "memory_grew_by_mb": round((peak - before) / 1024, 1)}
    print(json.dumps({**about, "outcomes": rows}, indent=2))


if __name__ == "__main__":
    main()

"""How the time of compiling and memory grow with depth, resolution and batch, beside KerasHub.

python benchmarks/speed/growth.py > benchmarks/results/growth.json

A training step of Ti/16 (12 blocks, 224 pixels, batch 8) with one of the three changed, each in a new process, in
turns: medians of three. Memory is the most that the process has held, its libraries included.
"""

import json
import os
import platform
import statistics
import subprocess
import sys

from run import Contestant

CHANGES = [
    {"depth": 3}, {"depth": 6}, {"depth": 12}, {"depth": 24},
    {"image": 112}, {"image": 224}, {"image": 384},
    {"batch": 1}, {"batch": 8}, {"batch": 32},
]  # fmt: skip


def main(rounds=3):
    cores, rows = sorted(os.sched_getaffinity(0)), []
    for change in CHANGES:
        changes, batch = {k: v for k, v in change.items() if k != "batch"}, change.get("batch", 8)
        cell = {"shape": "Ti/16", "changes": changes, "training": True, "batch": batch, "precision": "float32"}
        said = {"keras_vit": [], "KerasHub": []}
        for _ in range(rounds):
            for peer, found in said.items():
                contestant = Contestant(sys.executable, {"peer": peer, **cell}, cores)
                found.append(contestant.answer())
                contestant.end()
        for peer, found in said.items():
            row = {"peer": peer, **change}
            for name in ("compile_s", "step_s", "memory_mb"):
                row[name] = round(statistics.median(one[name] for one in found), 3)
            rows.append(row)
            print(*row.values(), sep="  ", file=sys.stderr)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print(json.dumps({"device": f"{len(cores)} cores, {platform.machine()}", "commit": commit, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

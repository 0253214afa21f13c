"""Speed beside KerasHub, timm, Hugging Face and the machine's own limit: one command, one table.

python benchmarks/speed/run.py --keras PYTHON --torch PYTHON > benchmarks/results/speed.json

Each contestant runs in a process of its own, pinned to the same cores; all of a cell are alive together and take turns,
A B A B, so that what else the machine does falls on all alike. A cell is the median over the rounds of a step's time,
in GFLOP/s of the model's own multiply-adds (two operations each; three times as many for a training step), and as a
share of the product of large matrices at the same precision, which takes its turns too. `--keras` is the Python with
keras-vit and keras-hub, `--torch` the one with torch, timm and transformers; they may be the same.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from peers import PEERS

HERE = pathlib.Path(__file__).parent
CELLS = [  # shape, batches
    ("mnist", (1, 8, 32, 128)),
    ("cifar10", (1, 8, 32, 128)),
    ("Ti/16", (1, 8, 32)),
    ("S/16", (1, 8, 32)),
    ("B/16", (1, 8, 32)),
    ("R26+S/32", (1, 8)),
    ("B/16 384", (1, 8)),
]


class Contestant:
    """A worker: a process, and the times that it told."""

    def __init__(self, python, cell, cores):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": str(len(cores))}
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), json.dumps(cell)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if not os.environ.get("DEBUG") else None,
            text=True,
            env=environment,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if hasattr(os, "sched_setaffinity") else None,
        )
        self.said, self.times = self.answer(), []

    def answer(self):
        for line in self.process.stdout:
            if line[:1] in "{0123456789":
                return json.loads(line)
        return None  # it has died

    def turn(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        self.times.append(self.answer())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(shape, training, batch, precision, pythons, rounds, seconds, cores):
    """Returns a row for each contestant of a cell."""
    cell = {"shape": shape, "training": training, "batch": batch, "precision": precision}
    contestants = {}
    for peer, (_, _, needs) in PEERS.items():
        contestant = Contestant(pythons[needs], {"peer": peer, **cell}, cores)
        if contestant.said is None:
            print(f"{peer} has no {shape}, or failed", file=sys.stderr)
            continue
        contestants[peer] = contestant
    for _ in range(rounds):
        for contestant in contestants.values():
            contestant.turn(max(1, round(seconds / contestant.said["step_s"])))
    for contestant in contestants.values():
        contestant.end()
    macs = contestants["keras_vit"].said["macs"]
    rows, peak = [], statistics.median(contestants["GEMM"].times)
    peak = 2 * contestants["GEMM"].said["macs"] * batch / peak
    for peer, contestant in contestants.items():
        middle = statistics.median(contestant.times)
        work = 2 * contestant.said["macs"] * batch if peer == "GEMM" else 2 * macs * batch * (3 if training else 1)
        rows.append(
            {
                "peer": peer,
                **cell,
                "ms": round(1e3 * middle, 3),
                "spread_ms": [round(1e3 * t, 3) for t in (min(contestant.times), max(contestant.times))],
                "gflops": round(work / middle / 1e9, 1),
                "of_peak": round(work / middle / peak, 3),
                "compile_s": round(contestant.said["compile_s"], 2),
                "first_step_s": round(contestant.said["built_s"] + contestant.said["compile_s"], 2),
                "memory_mb": contestant.said["memory_mb"] and round(contestant.said["memory_mb"]),
            }
        )
        print(*rows[-1].values(), sep="  ", file=sys.stderr)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keras", default=sys.executable)
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--only", nargs="*", help="shapes, such as Ti/16")
    parser.add_argument("--batches", nargs="*", type=int)
    parser.add_argument("--modes", nargs="*", default=["inference", "training"])
    parser.add_argument("--precisions", nargs="*", default=["float32"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count()))
    pythons = {"keras": given.keras, "torch": given.torch}
    rows = []
    for shape, batches in CELLS:
        for batch in batches:
            if (given.only and shape not in given.only) or (given.batches and batch not in given.batches):
                continue
            for mode in given.modes:
                for precision in given.precisions:
                    settings = (given.rounds, given.seconds, cores)
                    rows += measure(shape, mode == "training", batch, precision, pythons, *settings)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    machine = {"device": f"{len(cores)} cores, {platform.machine()}", "commit": commit}
    print(json.dumps({**machine, "versions": _versions(pythons), "rows": rows}, indent=1))


def _versions(pythons):
    code = (
        "import importlib.metadata as m, json;"
        "names = {d.metadata['Name'].lower(): d.version for d in m.distributions()};"
        "wanted = 'keras tensorflow jax keras-hub torch timm transformers'.split();"
        "print(json.dumps({n: names[n] for n in wanted if n in names}))"
    )
    found = {}
    for python in dict.fromkeys(pythons.values()):
        found |= json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True).stdout)
    return found


if __name__ == "__main__":
    main()

"""Speed beside KerasHub, timm, Hugging Face and the machine's own limit: one command, a file and a table.

python benchmarks/speed/run.py --keras PYTHON --torch PYTHON --out benchmarks/results/speed.json

Each contestant runs in a process of its own, pinned to the same cores; all of a cell are alive together and take turns,
A B A B, so that what else the machine does falls on all alike. A cell is the median over the rounds of a step's time,
in GFLOP/s of the model's own multiply-adds (two operations each; three times as many for a training step), and as a
share of the peak: the product of large matrices at the same precision, by PyTorch and by TensorFlow or JAX, the better
of the two, which take their turns too. `--keras` is the Python with keras_vit and keras-hub, `--torch` the one with
torch, timm and transformers; they may be the same. The file is written after each cell, and cells that it holds are
not measured again.
"""

import argparse
import itertools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from peers import PEERS
from table import table

HERE = pathlib.Path(__file__).parent
CELLS = [  # shape, batches of inference, batches of training
    ("mnist", (1, 8, 32, 128), (8, 32, 128)),
    ("cifar10", (1, 8, 32), (8, 32)),
    ("Ti/16", (1, 8, 32), (8, 16)),
    ("S/16", (1, 8), (8,)),
    ("B/16", (1, 4, 8), (4,)),
    ("R26+S/32", (1, 8), (8,)),
    ("B/16 384", (1, 4), (1,)),
]


class Contestant:
    """A worker: a process, and the times that it told."""

    def __init__(self, python, cell, cores):
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": str(len(cores))}
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), json.dumps(cell)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("DEBUG") else subprocess.DEVNULL,
            text=True,
            env=environment,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if hasattr(os, "sched_setaffinity") else None,
        )
        self.said, self.times = None, []

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


def measure(cell, pythons, rounds, seconds, cores):
    """Returns a row for each contestant of a cell."""
    contestants = {}
    for peer, (_, options, needs) in PEERS.items():
        if "jit" in options and cell["precision"] == "float32":
            continue  # without XLA only where it may be the faster way
        contestants[peer] = Contestant(pythons[needs], {"peer": peer, **cell}, cores)
    for peer, contestant in list(contestants.items()):
        contestant.said = contestant.answer()
        if contestant.said is None:
            print(f"{peer} has no {cell['shape']}, or failed", file=sys.stderr)
            del contestants[peer]
    for _ in range(rounds):
        for contestant in contestants.values():
            contestant.turn(max(1, round(seconds / contestant.said["step_s"])))
    for contestant in contestants.values():
        contestant.end()
    macs = contestants["keras_vit"].said["macs"] * (3 if cell["training"] else 1)
    flops = {
        peer: 2 * cell["batch"] * (contestant.said["macs"] if peer.startswith("GEMM") else macs)
        for peer, contestant in contestants.items()
    }
    speeds = {peer: flops[peer] / statistics.median(c.times) / 1e9 for peer, c in contestants.items()}
    peak = max(speed for peer, speed in speeds.items() if peer.startswith("GEMM"))
    rows = [
        {
            "peer": peer,
            **cell,
            "ms": round(1e3 * statistics.median(contestant.times), 3),
            "spread_ms": [round(1e3 * t, 3) for t in (min(contestant.times), max(contestant.times))],
            "gflops": round(speeds[peer], 1),
            "of_peak": round(speeds[peer] / peak, 3),
        }
        for peer, contestant in contestants.items()
    ]
    for row in rows:
        print(*row.values(), sep="  ", file=sys.stderr)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keras", default=sys.executable)
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--only", nargs="*", help="shapes, such as Ti/16")
    parser.add_argument("--batches", nargs="*", type=int)
    parser.add_argument("--modes", nargs="*", default=["inference", "training"])
    parser.add_argument("--precisions", nargs="*", default=["float32"])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count()))
    pythons = {"keras": given.keras, "torch": given.torch}
    rows = json.loads(given.out.read_text())["rows"] if given.out.exists() else []
    for cell in _cells(given):
        if not any(cell.items() <= row.items() for row in rows):
            asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
            measured = measure(cell, pythons, given.rounds, given.seconds, cores)
            rows += [{**row, "commit": asked.stdout.strip()} for row in measured]
            about = {"device": f"{len(cores)} cores, {platform.machine()}", "versions": _versions(pythons)}
            given.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    print("\n".join(table(rows)))


def _cells(given):
    for shape, *batches in CELLS:
        for training, sizes in enumerate(batches):
            for batch, precision in itertools.product(sizes, given.precisions):
                wanted = (
                    (not given.only or shape in given.only)
                    and (not given.batches or batch in given.batches)
                    and ["inference", "training"][training] in given.modes
                )
                if wanted:
                    yield {"shape": shape, "training": bool(training), "batch": batch, "precision": precision}


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

"""The rows of `run.py` as a table in Markdown.

python benchmarks/speed/table.py benchmarks/results/speed.json
"""

import itertools
import json
import pathlib
import sys

from shapes import SHAPES

OURS = ("keras_vit", "keras_vit, no XLA", "predictor")
PEERS = ("KerasHub", "KerasHub, no XLA", "timm", "timm compile", "Hugging Face")

PRECISIONS = ("float32", "bfloat16", "float16")


def table(rows):
    """Returns lines: a cell each, in GFLOP/s; ours with its share of the peak and its ratio to the best peer."""
    peers = [peer for peer in PEERS if any(row["peer"] == peer for row in rows)]
    yield "| " + " | ".join(["model", "step", "batch", "keras_vit", "of peak", "to best peer", *peers, "peak"]) + " |"
    yield "|" + "---|" * (7 + len(peers))
    for cell, group in itertools.groupby(sorted(rows, key=_cell), _cell):
        speeds = {row["peer"]: row["gflops"] for row in group}
        ours = max(speeds[peer] for peer in OURS if peer in speeds)
        peak = max(speed for peer, speed in speeds.items() if peer.startswith("GEMM"))
        best = max((speeds[peer] for peer in peers if peer in speeds), default=float("nan"))
        shape, precision, training, batch = list(SHAPES)[cell[0]], PRECISIONS[cell[1]], *cell[2:]
        step = ("training" if training else "inference") + ("" if precision == "float32" else f", {precision}")
        words = [shape, step, str(batch), f"{ours:.0f}", f"{ours / peak:.2f}", f"{ours / best:.2f}"]
        words += [f"{speeds[peer]:.0f}" if peer in speeds else "" for peer in peers]
        yield "| " + " | ".join([*words, f"{peak:.0f}"]) + " |"


def _cell(row):
    return list(SHAPES).index(row["shape"]), PRECISIONS.index(row["precision"]), row["training"], row["batch"]


if __name__ == "__main__":
    print("\n".join(table(json.loads(pathlib.Path(sys.argv[1]).read_text())["rows"])))

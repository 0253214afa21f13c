"""One contestant in a process of its own. It builds its model, then does so many steps as each line of input asks.

python worker.py '{"peer": "keras_vit", "shape": "Ti/16", "training": false, "batch": 8, "precision": "float32"}'
"""

import json
import sys
import time
from pathlib import Path

START = time.perf_counter()


def memory():
    """Returns the most memory that this process has held, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return None


def main(cell):
    from peers import PEERS
    from shapes import SHAPES

    make, options, _ = PEERS[cell["peer"]]
    shape = SHAPES[cell["shape"]]._replace(**cell.get("changes", {}))
    step, macs = make(shape, cell["training"], cell["batch"], cell["precision"], **options)
    built = time.perf_counter()
    step()
    first = time.perf_counter()
    for _ in range(2):
        step()
    start = time.perf_counter()
    step()
    each = time.perf_counter() - start
    say = {
        "built_s": built - START,
        "compile_s": first - built - each,
        "step_s": each,
        "macs": macs,
        "memory_mb": memory(),
    }
    print(json.dumps(say), flush=True)
    for line in sys.stdin:
        count = int(line)
        start = time.perf_counter()
        for _ in range(count):
            step()
        print(json.dumps((time.perf_counter() - start) / count), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

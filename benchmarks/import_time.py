"""How much `import keras_vit` adds to `import keras`, in alternating fresh processes.

python benchmarks/import_time.py > benchmarks/results/import_time.json
"""

import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version

from checkout import commit

SCRIPT = (
    "import time; start = time.perf_counter(); import keras; middle = time.perf_counter(); import keras_vit; "
    "print(middle - start, time.perf_counter() - middle)"
)


def main(rounds=15):
    runs = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
        runs.append([float(x) for x in done.stdout.split()])
    keras, ours = zip(*runs)
    row = {
        "keras_s": round(statistics.median(keras), 3),
        "keras_vit_over_keras_s": round(statistics.median(ours), 3),
        "spread_s": [round(min(ours), 3), round(max(ours), 3)],
        "rounds": rounds,
        "commit": commit(),
        "device": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("keras", "tensorflow")},
    }
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()

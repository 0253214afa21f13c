"""Time and memory of loading a B/16 file, of each format, in fresh processes.

python benchmarks/load_checkpoint.py > benchmarks/results/load_checkpoint.json
"""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version

from checkout import commit

FILES = {"google": "b16.npz", "timm": "b16.safetensors", "huggingface": "hub"}
WRITE = """
import sys, numpy as np, keras_vit
model = keras_vit.vit("B/16")
rng = np.random.default_rng(0)
for variable in model.weights:
    variable.assign(0.02 * rng.normal(size=variable.shape))
for form, name in FILES.items():
    keras_vit.save_checkpoint(model, f"{sys.argv[1]}/{name}", format=form)
""".replace("FILES", repr(FILES))
READ = """
import sys, time, warnings, keras, keras_vit
warnings.simplefilter("ignore")
def memory(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what)) / 1024
keras.ops.convert_to_numpy(keras.ops.matmul(keras.ops.ones((8, 8)), keras.ops.ones((8, 8))))
bare = memory("VmRSS")
model = keras_vit.vit("B/16")
built = memory("VmRSS")
start = time.perf_counter()
keras_vit.load_weights(model, sys.argv[1])
loading = time.perf_counter() - start
print(loading, bare, built, memory("VmHWM"), memory("VmRSS"))
"""


def run(script, *words):
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main(rounds=5):
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        run(WRITE, folder)
        for form, name in FILES.items():
            path = pathlib.Path(folder, name)
            size = (path if path.is_file() else path / "model.safetensors").stat().st_size / 2**20
            runs = [run(READ, str(path)) for _ in range(rounds)]
            seconds, bare, built, peak, after = (statistics.median(values) for values in zip(*runs))
            rows[form] = {
                "file_mb": round(size),
                "seconds": round(seconds, 2),
                "seconds_range": [round(min(r[0] for r in runs), 2), round(max(r[0] for r in runs), 2)],
                "model_mb": round(built - bare),
                "peak_over_built_mb": round(peak - built),
                "after_over_built_mb": round(after - built),
                "peak_over_file": round((peak - built) / size, 2),
            }
    about = {"rounds": rounds, "commit": commit(), "device": f"{os.cpu_count()} cores, {platform.machine()}"}
    about |= {name: version(name) for name in ("keras", "safetensors")}
    print(json.dumps({**about, "files": rows}, indent=2))


if __name__ == "__main__":
    main()

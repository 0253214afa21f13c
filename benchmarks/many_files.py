"""Starts on folders of many images, with an empty cache of inspected files and with a full one.

python benchmarks/many_files.py 50000 [--links] > benchmarks/results/many_files_50000.json

Each file is a PNG of 32 x 32 pixels; with `--links` another name of one of a thousand PNGs of 100 kB. They are made in
the current directory, and removed at the end. A run has one step on 64 images, but the whole folder is inspected.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
from checkout import commit
from PIL import Image

CHANGES = ("model.image_size=32", "model.patch_size=8", "model.channels=3", "optim.epochs=1",
           "data.limit=64", "data.batch_size=64", "optim.warmup_epochs=0", "data.train=train", "data.validation=val",
           "data.test=val", "model.depth=1", "augment.rotation=0", "augment.scale=0", "augment.shear=0",
           "augment.translation=0")  # fmt: skip
SPLITS = (("train", 0.99), ("val", 0.01))
CLASSES, NAMES = 10, 1000
FEW = 6400  # images of a folder to compare with: 64 of them are for validation
PADDING = 100_000  # bytes behind a PNG's end


def make(folder, count, links):
    """Writes a training and a validation split of images."""
    rng, originals = np.random.default_rng(0), []
    slope = np.add.outer(np.arange(32) * 4, np.arange(32) * 3)[..., None]

    def write(path, padding=0):
        image = Image.fromarray((slope + rng.integers(0, 40, (32, 32, 3))).astype("uint8"))
        image.save(path, compress_level=1)
        with open(path, "ab") as file:
            file.truncate(file.tell() + padding)

    if links:
        (folder / "originals").mkdir()
        originals = [folder / "originals" / f"{i}.png" for i in range(NAMES)]
        for path in originals:
            write(path, PADDING)
    for split, share in SPLITS:
        for i in range(round(count * share)):
            path = folder / split / f"class{i % CLASSES}" / f"{i // CLASSES // NAMES:03}" / f"image_{i:08}.png"
            if i // CLASSES % NAMES == 0:
                path.parent.mkdir(parents=True)
            if links:
                os.link(originals[i % NAMES], path)
            else:
                write(path)


def measured(words, cache):
    """Runs a command; returns its seconds, those until it first said something, and its memory."""
    environment = {**os.environ, "KERAS_VIT_CACHE": str(cache)}
    begun = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "keras_vit", *words], env=environment, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
    said = [(time.perf_counter() - begun, line.strip()) for line in child.stderr]
    _, status, used = os.wait4(child.pid, 0)
    child.stderr.close()
    if status:
        sys.exit("\n".join(line for _, line in said))
    silence = max(np.diff([0.0, *(at for at, _ in said), time.perf_counter() - begun]).tolist())
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "first_words_after": round(said[0][0], 1) if said else None,
        "longest_silence": round(silence, 1),
        "peak_mb": used.ru_maxrss // 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--links", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".", prefix="many_files-") as place:
        folder, run, cache = (pathlib.Path(place).resolve() / name for name in ("images", "run", "cache"))
        folder.mkdir()
        few = folder.with_name("few")
        make(folder, asked.count, asked.links)
        make(few, FEW, links=False)
        time.sleep(3)  # what changed just now is not written to the cache

        def fit(source, name):
            return ["fit", "digits", f"data.source=folder:{source}", *CHANGES, "--workdir", str(run / name)]

        commands = {"fit, few": fit(few, "few"), "fit": fit(folder, "first"), "fit again": fit(folder, "second")}
        commands |= {"evaluate, few": ["evaluate", str(run / "few")], "evaluate": ["evaluate", str(run / "first")]}
        rows = {name: measured(words, cache) for name, words in commands.items()}
        size = sum(file.stat().st_size for file in cache.iterdir()) if cache.is_dir() else 0
    about = {"commit": commit(), "python": platform.python_version(), "processors": os.cpu_count()}
    about |= {"files": asked.count, "links": asked.links, "cache_bytes_per_file": round(size / asked.count, 1)}
    print(json.dumps({**about, "commands": rows}, indent=2))


if __name__ == "__main__":
    main()

"""Time and memory of pictures that are larger than any model: crops for training, and one of 50,000 x 50,000 pixels.

python benchmarks/large_pictures.py [--side 50000] [--folder PATH] > benchmarks/results/large_pictures.json

Each row is a process of its own; its memory is the largest resident one. Files are made in a new folder, and removed at
the end: 12 GB at the side 50,000. The pictures of an epoch are ten names of one file of 10,000 x 10,000 pixels, in two
classes. `tiles.py` measures predictions of large pictures.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from checkout import about

PICTURES, SIDE, CROP, CROPS = 10, 10_000, 512, 64
TILE, WINDOW = 512, 1024
FORMATS = ("tiled.tif", "tiled_deflate.tif", "strips.tif", "strips_lzw.tif", "png", "jpg", "npy")
SPACE = 6  # bytes of disk for each pixel of the large picture
MODEL = {"image_size": CROP, "patch_size": 16}


def block(random, height, width):
    """Returns a textured part of a picture, uint8 `(height, width, 3)`."""
    slope = np.add.outer(np.arange(height) // 8, np.arange(width) // 4)[..., None] * (1, 2, 3)
    return (slope + random.integers(0, 16, (height, width, 3))).astype("uint8")


def make(path, kind, side):
    """Writes a picture of three bands."""
    import tifffile
    from PIL import Image

    random = np.random.default_rng(0)
    tile = block(random, TILE, TILE)
    if kind in ("tiled.tif", "tiled_deflate.tif"):
        count = -((-side // TILE) ** 2)
        compression = {"compression": "deflate"} if "deflate" in kind else {}
        tiles = (np.roll(tile, 7 * i, axis=1) for i in range((-(-side // TILE)) ** 2))
        shape = (side, side, 3)
        settings = {"tile": (TILE, TILE), "photometric": "rgb", "bigtiff": side > SIDE, **compression}
        tifffile.imwrite(path, tiles, shape=shape, dtype="uint8", **settings)
        return count
    repeats = -(-side // TILE)
    pixels = np.concatenate([np.concatenate([np.roll(tile, 7 * (i + j), axis=1) for j in range(repeats)], axis=1)
                             for i in range(repeats)])[:side, :side]  # fmt: skip
    if kind.endswith(".tif"):
        compression = {"compression": "lzw"} if "lzw" in kind else {}
        return tifffile.imwrite(path, pixels, photometric="rgb", rowsperstrip=16, **compression)
    if kind == "npy":
        return np.save(path, pixels)
    Image.MAX_IMAGE_PIXELS = None
    return Image.fromarray(pixels).save(path, **({"quality": 90} if kind == "jpg" else {"compress_level": 1}))


def named(path, count):
    """Puts a picture into two class folders, under several names."""
    for i in range(count):
        name = path.parent / "ab"[i % 2] / f"{i}{path.suffix}"
        name.parent.mkdir(exist_ok=True)
        os.link(path, name)
    path.unlink()


def opening(path):
    """Opens a picture, and reads one window."""
    from keras_vit.utils import deep_files

    began = time.perf_counter()
    raster = deep_files.opened(path)
    opened = time.perf_counter() - began
    began = time.perf_counter()
    raster.read(raster.shape[0] // 2, raster.shape[1] // 2, CROP, CROP)
    return {"seconds": opened, "seconds_of_a_window": time.perf_counter() - began}


def reading(path):
    """Reads all windows of a picture, one after the other."""
    from keras_vit.utils import deep_files

    raster, began, total = deep_files.opened(path), time.perf_counter(), 0
    for top in range(0, raster.shape[0], WINDOW):
        for left in range(0, raster.shape[1], WINDOW):
            window = raster.read(top, left, min(WINDOW, raster.shape[0] - top), min(WINDOW, raster.shape[1] - left))
            total += window.size
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "megabytes_per_second": total / seconds / 1e6}


def crops(folder):
    """Inspects the pictures of a folder, and makes the batches of two epochs of crops."""
    import keras_vit
    from keras_vit import config

    count = sum(path.is_file() for path in pathlib.Path(folder).rglob("*"))
    data = config.Data(source=f"folder:{folder}", train="all", validation="all", batch_size=8,
                       crops_per_image=CROPS * PICTURES // count)  # fmt: skip
    recipe = config.Recipe("crops", MODEL, task=config.Classify(), data=data, augment=config.Augment(flip=True))
    began = time.perf_counter()
    batches, _ = keras_vit.datasets(recipe)
    result = {"seconds_of_inspection": time.perf_counter() - began}
    for name in ("seconds", "seconds_of_the_second_epoch"):
        began, images = time.perf_counter(), 0
        for inputs, _ in batches:
            images += len(inputs)
        result[name] = time.perf_counter() - began
    return result | {"images": images, "images_per_second": images / result["seconds"]}


WORK = {"opening": opening, "reading": reading, "crops": crops}


def measured(name, path, cache):
    """Runs a function of `WORK` in a process; returns its numbers and its memory."""
    environment = {**os.environ, "KERAS_VIT_CACHE": str(cache)}
    child = subprocess.Popen([sys.executable, __file__, "--work", name, "--folder", str(path)], env=environment,
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{name} of {path} failed")
    numbers = json.loads(printed.splitlines()[-1])
    numbers = {key: round(value, 3 if value < 10 else 1) for key, value in numbers.items()}
    print(name, path.name, numbers, used.ru_maxrss // 1024, file=sys.stderr)
    return {**numbers, "peak_mb": used.ru_maxrss // 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=50_000)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--formats", nargs="*", default=FORMATS)
    parser.add_argument("--work")
    asked = parser.parse_args()
    if asked.work:
        print(json.dumps(WORK[asked.work](asked.folder)))
        return
    needed, free = SPACE * asked.side**2, shutil.disk_usage(asked.folder).free
    if free < 2 * needed:
        sys.exit(f"There must be {2 * needed / 1e9:.0f} GB of free disk. Received: {free / 1e9:.0f} GB")
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    result = {**about("tensorflow", "tifffile", "imagecodecs", "pillow"), "processor": processor, "epochs": {}}
    result["epoch"] = f"{PICTURES} pictures of {SIDE} x {SIDE} x 3, {CROPS} crops of {CROP} x {CROP} of each"
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="large_pictures-") as place:
        place = pathlib.Path(place).resolve()
        for kind in asked.formats:
            folder = place / kind
            folder.mkdir()
            name = "0.npy" if kind == "npy" else f"0.{kind.split('.')[-1]}"
            make(folder / name, kind, SIDE)
            named(folder / name, PICTURES)
            time.sleep(2)  # what changed just now is not written to the cache
            result["epochs"][kind] = {"file_mb": (folder / "a" / name).stat().st_size // 10**6,
                                      **measured("crops", folder, place / "cache")}  # fmt: skip
            shutil.rmtree(folder)
        if asked.side:
            folder = place / "large"
            folder.mkdir()
            began = time.perf_counter()
            make(folder / "0.tif", "tiled_deflate.tif", asked.side)
            named(folder / "0.tif", 2)
            large = {
                "file_mb": (folder / "a" / "0.tif").stat().st_size // 10**6,
                "seconds_to_write": round(time.perf_counter() - began, 1),
            }
            for name in ("opening", "reading", "crops"):
                large[name] = measured(name, folder if name == "crops" else folder / "a" / "0.tif", place / "cache")
            result[f"{asked.side} x {asked.side} x 3, tiled, deflate"] = large
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

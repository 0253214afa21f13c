"""How much `inspect` finds of the faults planted in CIFAR-10, and how long it takes.

Planted are changed labels, copies across a split and foreign pictures.

python benchmarks/inspecting.py labels copies outliers time pairs [--count 10000] [--cleanlab PYTHON]

Each part replaces its entry in benchmarks/results/inspecting.json. CIFAR-10 comes from tensorflow-datasets.
`--cleanlab` is the Python of an environment with cleanlab and NumPy, which judges the same probabilities.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import numpy as np
from checkout import commit
from PIL import Image
from sklearn.datasets import load_digits

import keras_vit
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import Index
from keras_vit.inspecting import crops, graph, hashes, labels, pixels, probabilities
from keras_vit.inspecting.pictures import Pictures

RESULTS = pathlib.Path(__file__).parent / "results" / "inspecting.json"
NOISE, SEED = 0.05, 0
PLANTED = 100  # copies of a kind
FEW = 5  # foreign pictures of a kind
THEIRS = """
import sys, numpy as np
from cleanlab.filter import find_label_issues
data = np.load(sys.argv[1])
found = find_label_issues(data["labels"], data["probabilities"], filter_by=sys.argv[2], n_jobs=1)
np.save(sys.argv[3], found)
"""


def cifar(split):
    import tensorflow_datasets as tfds

    data = tfds.load("cifar10", split=split, batch_size=-1)
    return np.asarray(data["image"]), np.asarray(data["label"])


def an_index(vectors, names, folder="/none"):
    about = {"folder": str(folder), "share": [0, 1], "model": "", "fingerprint": ""}
    return Index(np.asarray(vectors, "float32"), np.array(names), np.zeros((0, 2), "U1"), about)


def embedded(model, images):
    return Embedder(model, batch_size=128)([*images])


def rates(found, true):
    """Returns precision and recall of booleans, and those of as many drawn at random."""
    hits = int((found & true).sum())
    return {
        "flagged": int(found.sum()), "changed": int(true.sum()), "right": hits,
        "precision": round(hits / max(int(found.sum()), 1), 4), "recall": round(hits / int(true.sum()), 4),
        "chance_precision": round(float(true.mean()), 4), "chance_recall": round(float(found.mean()), 4),
    }  # fmt: skip


def of_labels(asked):
    """Labels changed by a seed: what is flagged, next to cleanlab on the same probabilities."""
    rows = []
    for model, split in (("cifar10_mae", "train"), ("cifar10_hybrid", "test"), ("cifar10_hybrid", "train")):
        images, classes = cifar(f"{split}[:{asked.count}]")
        rng = np.random.default_rng(SEED)
        changed = rng.random(len(classes)) < NOISE
        given = np.where(changed, (classes + rng.integers(1, 10, len(classes))) % 10, classes)
        kept = pathlib.Path(asked.keep or "/none", f"{model}_{split}.npz")
        vectors = np.load(kept)["vectors"] if kept.exists() else embedded(model, images)
        fits, fit = [], probabilities.fit
        probabilities.fit = lambda *given, fits=fits, fit=fit: fits.append(fit(*given)) or fits[0]
        begun = time.process_time()
        found = keras_vit.inspect_index(an_index(vectors, [f"{i}.png" for i in range(len(images))]), [*map(str, given)])
        probabilities.fit = fit
        seconds = round(time.process_time() - begun, 1)
        flagged = np.zeros(len(images), bool)
        flagged[[one.row for one in found.findings if one.kind == "label"]] = True
        row = {"model": model, "images": f"{split}[:{asked.count}]", "seconds": seconds} | rates(flagged, changed)
        named = {one.row: int(one.suggested) for one in found.findings if one.kind == "label"}
        right = [named[i] == classes[i] for i in np.flatnonzero(flagged & changed)]
        row["true_class_suggested"] = round(float(np.mean(right)), 4)
        each = np.concatenate([each for _, each in probabilities.blocks(fits[0], vectors)])
        row["probe_accuracy"] = round(float((each.argmax(1) == classes).mean()), 4)
        suggested, *_ = labels.contradicted(fits[0], vectors, given)
        row["without_neighbors"] = rates(suggested >= 0, changed)
        first = [one.row for one in found.findings if one.kind == "label"][: int(changed.sum())]
        row["precision_of_as_many_as_changed"] = round(float(changed[first].mean()), 4)
        if asked.keep:
            np.savez(kept, vectors=vectors, given=given, classes=classes, probabilities=each)
        if asked.cleanlab:
            row |= {f"cleanlab, {how}": rates(theirs(asked.cleanlab, given, each, how), changed)
                    for how in ("prune_by_noise_rate", "confident_learning")}  # fmt: skip
        print(json.dumps(row, indent=1), flush=True)
        rows.append(row)
    return rows


def theirs(python, given, each, how):
    with tempfile.TemporaryDirectory() as folder:
        data, out = pathlib.Path(folder, "data.npz"), pathlib.Path(folder, "found.npy")
        np.savez(data, labels=given, probabilities=each)
        subprocess.run([python, "-c", THEIRS, data, how, out], check=True)
        return np.load(out)


def resized(image, side):
    return np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC))


def cropped(image, share, rng):
    side = round(len(image) * share)
    top, left = rng.integers(0, len(image) - side + 1, 2)
    return resized(image[top : top + side, left : left + side], len(image))


def noisy(image, rng):
    return np.clip(image + rng.normal(0, 8, image.shape), 0, 255).astype("uint8")


COPIES = {  # of a picture and a random generator: pixels, and how they are saved
    "equal, as BMP": lambda image, rng: (image, "bmp", {}),
    "JPEG, quality 75": lambda image, rng: (image, "jpg", {"quality": 75}),
    "JPEG, quality 40": lambda image, rng: (image, "jpg", {"quality": 40}),
    "twice as large": lambda image, rng: (resized(image, 64), "png", {}),
    "brighter by a tenth": lambda image, rng: (np.clip(image * 1.1, 0, 255).astype("uint8"), "png", {}),
    "with noise": lambda image, rng: (noisy(image, rng), "png", {}),
    "mirrored, JPEG": lambda image, rng: (image[:, ::-1], "jpg", {"quality": 75}),
    "turned, JPEG": lambda image, rng: (np.rot90(image), "jpg", {"quality": 75}),
    "crop of 90 %": lambda image, rng: (cropped(image, 0.9, rng), "png", {}),
    "crop of 80 %": lambda image, rng: (cropped(image, 0.8, rng), "png", {}),
    "crop of 70 %": lambda image, rng: (cropped(image, 0.7, rng), "png", {}),
    "crop of 80 %, mirrored": lambda image, rng: (cropped(image, 0.8, rng)[:, ::-1], "png", {}),
}


def plant(folder, count):
    """Writes pictures of the training data as `train` and of the test data as `test`, and copies of some in `test`.

    Returns the training picture of each copy by its name, and which kind of copy it is.
    """
    rng, sources, kinds = np.random.default_rng(SEED), {}, {}
    images = {split: cifar(f"{split}[:{count // 2}]")[0] for split in ("train", "test")}
    for split, each in images.items():
        (folder / split).mkdir()
        for i, image in enumerate(each):
            Image.fromarray(image).save(folder / split / f"{i:05}.png")
    chosen = iter(rng.permutation(count // 2))
    for kind, change in COPIES.items():
        for _ in range(PLANTED):
            i = next(chosen)
            image, ending, options = change(images["train"][i], rng)
            name = f"test/copy{len(sources):05}.{ending}"
            Image.fromarray(np.ascontiguousarray(image)).save(folder / name, **options)
            sources[name], kinds[name] = f"train/{i:05}.png", kind
    return sources, kinds


def of_copies(asked):
    """Copies across a split: found by kind, and what else is listed."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, "cifar10")
        folder.mkdir()
        sources, kinds = plant(folder, asked.count)
        for model in (None, "cifar10_mae", "cifar10_hybrid"):
            index = folder
            if model:
                index = keras_vit.embed_folder(folder, model, pathlib.Path(place, f"{model}.npz"), batch_size=128)
            begun = time.process_time()
            found = keras_vit.inspect_index(
                index, to=pathlib.Path(asked.pages, model or "none") if asked.pages else None
            )
            row = {"model": model, "seconds": round(time.process_time() - begun, 1), "found": {}, "why": {}}
            leaks = [one for one in found.findings if one.kind == "leak"]
            right = {one.other: one.why for one in leaks if sources.get(one.other) == one.file}
            for kind in COPIES:
                mine = [name for name in kinds if kinds[name] == kind]
                row["found"][kind] = f"{sum(name in right for name in mine)} of {len(mine)}"
                row["why"][kind] = sorted({right[name] for name in mine if name in right})
            others = [one for one in leaks if sources.get(one.other) != one.file]
            row["not_planted"] = [[one.file, one.other, round(one.score, 3), one.why] for one in others]
            row["near_in_a_split"] = found.counts()["near"]
            print(json.dumps(row, indent=1), flush=True)
            rows.append(row)
    return {"train": asked.count // 2, "test": asked.count // 2, "copies": len(kinds), "rows": rows}


def foreign_pictures():
    """Returns a few pictures that are no photographs, by kind."""
    rng = np.random.default_rng(SEED)
    digits = (load_digits().images[:FEW] * (255 / 16)).astype("uint8")
    return {
        "noise": [rng.integers(0, 256, (32, 32, 3)).astype("uint8") for _ in range(FEW)],
        "of one brightness": [np.full((32, 32, 3), level, "uint8") for level in np.linspace(0, 255, FEW)],
        "drawn digits": [np.repeat(resized(digit, 32)[..., None], 3, -1) for digit in digits],
    }


def of_outliers(asked):
    """A few foreign pictures of a kind among photographs."""
    images = cifar(f"train[:{asked.count}]")[0]
    rows = []
    for model in ("cifar10_mae", "cifar10_hybrid"):
        embedder, row = Embedder(model, batch_size=128), {"model": model, "images": len(images), "planted": FEW}
        vectors = embedder([*images])
        for kind, some in foreign_pictures().items():
            every = np.concatenate([vectors, embedder(some)])
            found = keras_vit.inspect_index(an_index(every, names(len(every))))
            listed = [one.row for one in found.findings if one.kind == "outlier"]
            planted = sum(place >= len(images) for place in listed)
            row[kind] = {"found": planted, "others_listed": len(listed) - planted}
        print(row, flush=True)
        rows.append(row)
    return rows


def names(count):
    return [f"{i}.png" for i in range(count)]


def of_time(asked):
    """Seconds of processor time for many pictures, part by part."""
    images, rows = cifar("train[:50000]")[0], {}

    def timed(name, count, work):
        begun = time.process_time()
        result = work()
        rows[name] = {"count": count, "seconds": round(time.process_time() - begun, 1)}
        print(name, rows[name], flush=True)
        return result

    os.environ["KERAS_VIT_CACHE"] = "off"
    photo = resized(images[0], 500)[:375]
    with tempfile.TemporaryDirectory() as place:
        paths = [str(pathlib.Path(place, f"{i}.jpg")) for i in range(2000)]
        for i, path in enumerate(paths):
            Image.fromarray(np.roll(photo, i, 1)).save(path, quality=90)
        timed("reading JPEGs of 500 x 375", len(paths), lambda: pixels.scan(Pictures(paths, paths)))
    thumbs, grays = (np.stack(each) for each in zip(*(pixels.summary(image)[1:] for image in images)))
    pairs = timed("comparing hashes", len(thumbs), lambda: sum(len(one) for one, *_ in hashes.alike(thumbs, grays)))
    rows["comparing hashes"]["pairs"] = pairs
    many = np.concatenate([thumbs, thumbs[:, ::-1], 255 - thumbs, np.roll(thumbs, 1, 0) // 2 + thumbs // 2])
    large = np.concatenate([grays] * 4)
    timed("comparing hashes, more pictures", len(many), lambda: sum(len(one) for one, *_ in hashes.alike(many, large)))
    rng = np.random.default_rng(SEED)
    for count in (12_500, 25_000, 50_000):
        vectors = rng.normal(size=(count, 384)).astype("float32")
        timed(f"neighbors of {count} vectors of 384 numbers", count, lambda vectors=vectors: graph.graph(vectors))
    return rows


def of_pairs(asked):
    """Seconds of processor time for pairs of neighbors, of which one may be a crop of the other."""
    grays = np.stack([pixels.summary(image)[2] for image in cifar("train[:5000]")[0]])
    begun = time.process_time()
    crops.likeness(grays, grays[::-1])
    return {"pairs": len(grays), "seconds": round(time.process_time() - begun, 1)}


PARTS = {"pairs": of_pairs, "labels": of_labels, "copies": of_copies, "outliers": of_outliers, "time": of_time}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--count", type=int, default=10_000, help="pictures")
    parser.add_argument("--cleanlab", help="a Python that has cleanlab")
    parser.add_argument("--pages", help="folder for the pages of the copies")
    parser.add_argument("--keep", help="folder for the vectors of the labels, which are not computed again")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    asked = parser.parse_args()
    for part in asked.parts:
        results = json.loads(asked.results.read_text()) if asked.results.exists() else {}
        about = {"commit": commit(), "python": platform.python_version(), "machine": platform.machine()}
        results[part] = about | {"count": asked.count, "results": PARTS[part](asked)}
        asked.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""AUROC of AnomalyDetector on blood cells, with features that ship with the package.

python benchmarks/anomaly.py blood_cells [--figure anomaly.png]

The folder is BCCD (https://github.com/Shenggan/BCCD_Dataset, MIT): `train` and `val`, each with `images` and with
`annotations` in Pascal VOC's format. Normal are squares of 96 pixels around red blood cells, which no white blood cell
or platelet touches. The detector sees those of `train` only. It then scores squares of `val` around red cells,
around white cells, and around platelets. Last, mosaics of 4 x 4 squares, of which one may be foreign, are scored at the
size of one square, and in tiles of it.
"""

import argparse
import json
import pathlib
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
from PIL import Image
from sklearn.metrics import roc_auc_score

import keras_vit

SIDE = 96
SIDES = ("xmin", "ymin", "xmax", "ymax")
ACROSS, MOSAICS = 4, 40  # squares along a side of a mosaic, and mosaics of a kind
MOST = 300  # squares of a kind and split
NORMAL, FOREIGN = "RBC", ("WBC", "Platelets")
ENCODERS = {"cifar10_mae": {"image_size": SIDE}, "cifar10_hybrid": {"image_size": SIDE}, "nuclei": {}}
RESULTS = pathlib.Path(__file__).parent / "results" / "anomaly.json"


def squares(folder):
    """Returns squares by kind, `(n, side, side, 3)`."""
    found = {NORMAL: [], **{kind: [] for kind in FOREIGN}}
    for file in sorted((folder / "annotations").glob("*.xml")):
        image = Image.open(next((folder / "images").glob(f"{file.stem}.*"))).convert("RGB")
        boxes = []
        for entry in ElementTree.parse(file).iter("object"):
            box = entry.find("bndbox")
            boxes.append((entry.findtext("name"), [int(float(box.findtext(side))) for side in SIDES]))
        for kind, (left, top, right, bottom) in boxes:
            x, y = (left + right - SIDE) // 2, (top + bottom - SIDE) // 2
            if x < 0 or y < 0 or x + SIDE > image.width or y + SIDE > image.height:
                continue
            touches = any(
                other in FOREIGN and b[0] < x + SIDE and b[2] > x and b[1] < y + SIDE and b[3] > y for other, b in boxes
            )
            if kind in FOREIGN or not touches:
                found[kind].append(np.asarray(image.crop((x, y, x + SIDE, y + SIDE))))
    rng = np.random.default_rng(0)
    return {k: np.stack(v)[rng.permutation(len(v))[:MOST]] for k, v in found.items()}


def auroc(normal, foreign):
    return float(roc_auc_score([0] * len(normal) + [1] * len(foreign), np.concatenate([normal, foreign])))


def draw(scores, val, kinds, across=4):
    """Returns a figure of the first squares of each kind in `val`, each next to its distances."""
    drawn = [(val[kind][i], scores[kind].maps[i], scores[kind].images[i]) for kind in kinds for i in range(across)]
    images, maps, values = map(np.array, zip(*drawn))
    names = {NORMAL: "red", "WBC": "white", "Platelets": "platelet"}
    titles = [f"{names[kinds[i // across]]}, {value:.2f}" for i, value in enumerate(values)]
    return keras_vit.plots.plot_maps(images, maps, titles, limits=(0, maps.max()))


def mosaic(squares):
    """Returns ACROSS x ACROSS squares side by side."""
    rows = [np.concatenate(squares[i : i + ACROSS], 1) for i in range(0, ACROSS**2, ACROSS)]
    return np.concatenate(rows)


def in_mosaics(train, val):
    """Returns the AUROC of mosaics of red cells against mosaics with one foreign square: shrunk, and in tiles."""
    rng, each = np.random.default_rng(0), ACROSS**2
    draw = lambda squares: [*squares[rng.choice(len(squares), each, replace=False)]]  # noqa: E731
    good, new = ([mosaic(draw(split[NORMAL])) for _ in range(MOSAICS)] for split in (train, val))
    foreign = {kind: [] for kind in FOREIGN}
    for kind, i in ((kind, i) for kind in FOREIGN for i in range(MOSAICS)):
        chosen = draw(val[NORMAL])
        chosen[rng.integers(each)] = val[kind][i]
        foreign[kind].append(mosaic(chosen))
    model, rows = keras_vit.from_pretrained("cifar10_mae", num_classes=0, image_size=SIDE), []
    for tiles in (False, True):
        start, detector = time.perf_counter(), keras_vit.AnomalyDetector(model, tiles=tiles).fit(good)
        scores = detector.score(new).images
        row = {"tiles": tiles} | {kind: auroc(scores, detector.score(foreign[kind]).images) for kind in FOREIGN}
        alarms = float(np.mean(scores > detector.threshold))
        rows.append(row | {"false alarms": alarms, "seconds": time.perf_counter() - start})
        print(rows[-1], flush=True)
    return rows


def main(folder, figure=None):
    train, val = squares(folder / "train"), squares(folder / "val")
    counts = {"normal in train": len(train[NORMAL])} | {f"{kind} in val": len(v) for kind, v in val.items()}
    print(counts)
    rows = []
    for name, options in ENCODERS.items():
        pooling = {"pooling": "gap"} if name == "nuclei" else {}
        model = keras_vit.from_pretrained(name, num_classes=0, **pooling, **options)
        detector = keras_vit.AnomalyDetector(model).fit(train[NORMAL])
        scores = {kind: detector.score(v) for kind, v in val.items()}
        alarms = float(np.mean(scores[NORMAL].images > detector.threshold))
        row = {"encoder": name} | {kind: auroc(scores[NORMAL].images, scores[kind].images) for kind in FOREIGN}
        rows.append(row | {"false alarms": alarms})
        print(rows[-1], flush=True)
    color = {kind: -v.mean((1, 2))[:, 1] for kind, v in val.items()}  # of stained cells, darker in green
    rows.append({"encoder": "none: mean of green"} | {kind: auroc(color[NORMAL], color[kind]) for kind in FOREIGN})
    print(rows[-1])
    mosaics = in_mosaics(train, val)
    RESULTS.write_text(json.dumps({"images": counts, "auroc": rows, "mosaics": {"auroc": mosaics}}, indent=1) + "\n")

    if figure:
        draw(scores, val, (NORMAL, *FOREIGN)).savefig(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--figure", help="a PNG file, of the last encoder")
    main(**vars(parser.parse_args()))

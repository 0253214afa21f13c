"""Nuclei as objects: average precision of the masks of connected parts of the shipped segmenter's mask.

python benchmarks/nuclei_objects.py make nuclei nuclei_objects
python benchmarks/nuclei_objects.py score nuclei_objects [--out benchmarks/results/nuclei_objects.json]

`make` writes a folder for `Segment(kind="instance")` from one of masks of 0 and 1, as of the recipe `nuclei`: images,
and masks in which each connected part has a number. Nuclei that touch stay one object in these labels. `score` counts
as the score `mask_ap` of such a run does: a part's score is the mean probability of its pixels.
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
from checkout import about
from PIL import Image
from pycocotools import mask as coco
from scipy import ndimage

import keras_vit
from keras_vit.tasks import average_precision


def make(source, target):
    for path in sorted(pathlib.Path(source).glob("*/masks/*")):
        place = target / path.parent.parent.name
        for name in ("images", "masks"):
            (place / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path.parent.parent / "images" / path.name, place / "images")
        parts, _ = ndimage.label(np.asarray(Image.open(path)) > 0)
        Image.fromarray(parts.astype("uint16")).save(place / "masks" / path.name)


def runs(mask):
    return coco.encode(np.asfortranarray(mask.astype("uint8")))


def score(folder):
    model = keras_vit.load_run("nuclei").model
    size = model.input_shape[1:3]
    images, truth, found = [], [], []
    for i, path in enumerate(sorted(folder.glob("val/masks/*"))):
        objects = np.asarray(Image.open(path))
        images.append({"id": i, "height": objects.shape[0], "width": objects.shape[1]})
        for number in range(1, objects.max() + 1):
            mask = runs(objects == number)
            truth.append(
                {"image_id": i, "category_id": 0, "segmentation": mask, "iscrowd": 0, "area": int(coco.area(mask))}
            )
        photo = Image.open(folder / "val/images" / path.name).convert("RGB").resize(size[::-1], Image.BILINEAR)
        shares = model.predict(np.asarray(photo, "float32")[None], verbose=0)[0][..., 1]
        shares = np.asarray(Image.fromarray(shares.astype("float32")).resize(objects.shape[::-1], Image.BILINEAR))
        parts, count = ndimage.label(shares > 0.5)
        means = ndimage.mean(shares, parts, range(1, count + 1))
        for number, mean in enumerate(means, 1):
            found.append({"image_id": i, "category_id": 0, "segmentation": runs(parts == number), "score": float(mean)})
    precision = average_precision.precision_of("segm", images, 1, truth, found)
    scores = average_precision.scores(precision, ["nucleus"], "mask_ap", "mask_ap50")
    return {
        "images": len(images),
        "objects": len(truth),
        "parts found": len(found),
        **{k: float(v) for k, v in scores.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=("make", "score"))
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.job == "make":
        make(*options.folders)
    else:
        row = {"connected parts": {**score(*options.folders), "versions": about("keras", "tensorflow", "pycocotools")}}
        print(json.dumps(row, indent=2))
        if options.out:
            known = json.loads(options.out.read_text()) if options.out.exists() else {}
            options.out.write_text(json.dumps(known | row, indent=2) + "\n")

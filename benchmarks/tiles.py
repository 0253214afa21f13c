"""Compares tiles with shrinking: nuclei, blood cells, street scenes, and a picture of 50,000 x 50,000 pixels.

python benchmarks/tiles.py nuclei blood_cells
python benchmarks/tiles.py camvid RUN  # a run of the recipe camvid
python benchmarks/tiles.py large  # an hour and 8 GB of disk
python benchmarks/tiles.py large 50000 2048  # a strip of it, which needs as much memory

It writes `results/tiles.json`. The data of nuclei, blood_cells and camvid are in the folder KERAS_VIT_DATA, laid out as
their recipes say. Mosaics are 4 x 4 validation images of one size, put side by side; nuclei are cut to 256 x 256.
"""

import argparse
import json
import os
import pathlib
import resource
import tempfile
import time

import numpy as np
from checkout import about
from PIL import Image
from scipy import ndimage
from scipy.special import softmax

import keras_vit
from keras_vit import config
from keras_vit.data import sources
from keras_vit.data.readers.whole import whole_arrays
from keras_vit.models.box_outputs import likely
from keras_vit.models.map_outputs import predict
from keras_vit.runs.trained import load_run
from keras_vit.tasks.detect.box_tally import BoxTally
from keras_vit.tasks.detect.whole_pictures import found_by
from keras_vit.tasks.in_tiles import at_full_size, resized, with_tiles
from keras_vit.tasks.segment.pixels import PixelTally
from keras_vit.utils.seams import joined
from keras_vit.utils.tiles import tiled

RESULTS = pathlib.Path(__file__).parent / "results" / "tiles.json"
SIDE, SMALL = 4, 100  # images along a side of a mosaic; pixels of a small nucleus, at most
LARGE = 50_000  # pixels of a side


def data():
    return pathlib.Path(os.environ["KERAS_VIT_DATA"])


def evaluated(target, name, tiles=None, **changes):
    """Returns a run's scores on full images, and seconds."""
    start = time.perf_counter()
    changes = {"data.source": f"folder:{data() / name}", **changes}
    (scores,) = list(keras_vit.evaluate(target, changes=changes, tiles=tiles).values())[:1]
    return scores, round(time.perf_counter() - start, 1)


def mosaics(pictures):
    """Yields mosaics of arrays of one shape, `(SIDE**2 of them, ...)`, and the indices of their parts."""
    for first in range(0, len(pictures) - SIDE**2 + 1, SIDE**2):
        some = range(first, first + SIDE**2)
        rows = [np.concatenate([pictures[i] for i in some[k : k + SIDE]], 1) for k in range(0, SIDE**2, SIDE)]
        yield np.concatenate(rows), some


def nuclei():
    """Returns mean IoU, and the share of the pixels of small nuclei that are found: images, then mosaics."""
    found = {}
    for name, tiles in {"shrunk": False, "tiles": True, "overlap 0": {"overlap": 0.0}}.items():
        scores, seconds = evaluated("nuclei", "nuclei", tiles)
        found[f"images, {name}"] = {"mean_iou": scores["mean_iou"], "seconds": seconds}
    folder = data() / "nuclei" / "val"
    files = [path for path in sorted((folder / "images").glob("*.png")) if min(Image.open(path).size) >= 256]
    pictures = [np.asarray(Image.open(path).convert("RGB"))[:256, :256] for path in files]
    masks = [np.asarray(Image.open(folder / "masks" / path.name))[:256, :256] for path in files]
    trained = load_run("nuclei")
    run, size = trained.answering(), trained.size
    whole = at_full_size(with_tiles(trained.task, True).of_model(trained.model), run, size)

    def by_shares(picture):
        """Blends probabilities, for comparison with logits."""
        return tiled(lambda tiles: softmax(run(tiles), -1), size, step=16)(picture)

    ways = {
        "shrunk": lambda picture: run(resized(picture, size[:2])),
        "tiles": whole,
        "tiles, probabilities blended": by_shares,
    }
    for name, way in ways.items():
        tally, small, seconds = PixelTally(trained.class_names), np.zeros(2), 0
        for (picture, _), (mask, _) in zip(mosaics(pictures), mosaics(masks), strict=True):
            start = time.perf_counter()
            output = way(picture[None].astype("float32"))[0]
            seconds += time.perf_counter() - start
            tally.add({"segmentation_masks": mask[None]}, [output])
            parts, _ = ndimage.label(mask > 0)
            few = (np.bincount(parts.ravel()) <= SMALL)[parts] & (mask > 0)
            small += few.sum(), (predict(output, mask.shape)[few] == 1).sum()
        scores = {"mean_iou": tally.result()["mean_iou"], "small_nuclei_found": small[1] / small[0]}
        found[f"mosaics, {name}"] = scores | {"small_pixels": int(small[0]), "seconds": round(seconds, 1)}
    return found | {"mosaic": f"{SIDE * 256} x {SIDE * 256}", "mosaics": len(pictures) // SIDE**2}


def blood_cells():
    """Returns average precision of mosaics in tiles and shrunk, and of the images one by one.

    At the seams of a mosaic cells are cut, and meet others: "inner" leaves out all boxes that end there.
    """
    trained = load_run("blood_cells")
    recipe = config.override(trained.recipe, {"data.source": f"folder:{data() / 'blood_cells'}"})
    source = sources.load(recipe.data, recipe.data.test, ("bounding_boxes",))
    examples = list(whole_arrays(source, recipe, trained.size))
    pictures = [each["images"][0].astype("uint8") for each in examples]
    field = pictures[0].shape[:2]
    ends, run, size = np.tile(field, 2), trained.answering(), trained.size
    truth = []
    for _, some in mosaics(pictures):
        every = []
        for place, i in enumerate(some):
            boxes = examples[i]["bounding_boxes"][0]
            boxes = boxes[boxes[:, 4] >= 0]
            every.append(
                np.concatenate([boxes[:, :4] * ends + ends * np.tile(divmod(place, SIDE), 2), boxes[:, 4:]], 1)
            )
        truth.append(np.concatenate(every))

    def boxes_of(output, several=False):
        edges, classes, scores = likely(np.array(output, "float64"), 0, several)
        return edges[scores > 0] * ends * SIDE, classes[scores > 0], scores[scores > 0]

    def scored(found):
        scores = {}
        for name in ("all", "inner"):
            tally = BoxTally(trained.class_names, trained.task.score, every=True)
            for (edges, classes, sure), true in zip(found, truth, strict=True):
                kept = np.full(len(edges), True) if name == "all" else ~at_seams(edges, field)
                true = true if name == "all" else true[~at_seams(true, field)]
                output = np.zeros((kept.sum(), 4 + len(trained.class_names)))
                output[:, :4] = edges[kept] / ends / SIDE
                output[np.arange(len(output)), 4 + classes[kept]] = sure[kept]
                boxes = np.concatenate([true[:, :4] / ends / SIDE, true[:, 4:]], 1).astype("float32")
                images = np.zeros((1, *(SIDE * side for side in field), 1), "uint8")
                tally.add({"images": images, "bounding_boxes": boxes[None]}, [output])
            scores |= {key if name == "all" else f"inner {key}": value for key, value in tally.result().items()}
        return scores | {"found": int(sum((sure >= trained.task.score).sum() for _, _, sure in found))}

    found = {"mosaic": f"{SIDE * field[0]} x {SIDE * field[1]}", "mosaics": len(truth)}
    found["true"] = sum(map(len, truth))
    alone = []
    for _, some in mosaics(pictures):
        parts = [boxes_of(run(resized(pictures[i][None], size[:2]))[0] / [*[SIDE] * 4, 1, 1, 1]) for i in some]
        moved = [edges + ends * np.tile(divmod(place, SIDE), 2) for place, (edges, _, _) in enumerate(parts)]
        alone.append((np.concatenate(moved), *(np.concatenate([each[k] for each in parts]) for k in (1, 2))))
    found["fields one by one"] = scored(alone)
    found["shrunk"] = scored([boxes_of(run(resized(picture[None], size[:2]))[0]) for picture, _ in mosaics(pictures)])
    for name, tiles in {"tiles": {"size": field}, "tiles, overlap 0.5": {"size": field, "overlap": 0.5}}.items():
        task = with_tiles(trained.task, tiles).of_model(trained.model)
        find, start = found_by(run, size, task.tiling), time.perf_counter()
        every = [(find(picture.astype("float32")), picture.shape[:2]) for picture, _ in mosaics(pictures)]
        seconds = round(time.perf_counter() - start, 1)
        found[name] = scored([joined(*each, corners, sides) for (each, corners, _), sides in every])
        found[name] |= {"seconds": seconds, "most_in_a_picture": max(len(each[0]) for (each, _, _), _ in every)}
        found[f"{name}, suppressed by IoU"] = scored([suppressed(*each) for (each, _, _), _ in every])
        both = [suppressed(*each, smaller=0.5) for (each, _, _), _ in every]
        found[f"{name}, suppressed by IoU and share of the smaller"] = scored(both)
    return found


def at_seams(edges, field, near=4):
    """Returns which boxes of a mosaic end at a seam, or cross it."""
    sides = np.tile(field, 2)
    left = edges[:, :4] % sides
    crossing = edges[:, :2] // sides[:2] != (edges[:, 2:4] - 1) // sides[:2]
    return (np.minimum(left, sides - left) < near).any(1) | crossing.any(1)


def suppressed(edges, classes, scores, tile, smaller=np.inf):
    """Returns boxes after plain suppression between tiles, for comparison: IoU over 0.5, or share of the smaller."""
    order = np.argsort(-scores, kind="stable")
    edges, classes, scores, tile = edges[order], classes[order], scores[order], tile[order]
    areas, lost = np.prod(edges[:, 2:] - edges[:, :2], axis=1), np.zeros(len(edges), bool)
    for i in range(len(edges)):
        low, high = np.maximum(edges[i, :2], edges[:, :2]), np.minimum(edges[i, 2:], edges[:, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        same = (common > 0.5 * (areas[i] + areas - common)) | (common > smaller * np.minimum(areas[i], areas))
        lost |= same & (classes == classes[i]) & (tile != tile[i]) & (np.arange(len(edges)) > i) & ~lost[i]
    return edges[~lost], classes[~lost], scores[~lost]


def camvid(run):
    """Returns mean IoU of a run of the recipe camvid on the test frames."""
    found = {}
    size = load_run(run).size
    for name, tiles in {"shrunk": False, "tiles": True, "tiles, overlap 0.5": {"overlap": 0.5}}.items():
        scores, seconds = evaluated(run, "camvid", tiles)
        found[name] = scores | {"seconds": seconds}
    return found | {"model": f"{size[0]} x {size[1]}", "epochs": load_run(run).recipe.optim.epochs}


def large(width=LARGE, height=LARGE, tile=256):
    """Returns time and peak memory of the mask of a large TIFF of one nuclei mosaic repeated."""
    import tifffile

    folder = data() / "nuclei" / "val" / "images"
    files = [path for path in sorted(folder.glob("*.png")) if Image.open(path).size == (tile, tile)][: SIDE**2]
    pictures = [np.asarray(Image.open(path).convert("RGB")) for path in files]
    rows, columns = -(-height // tile), -(-width // tile)
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place, "large.tif")
        every = (pictures[(3 * row + column) % len(pictures)] for row in range(rows) for column in range(columns))
        options = {"shape": (height, width, 3), "dtype": "uint8", "tile": (tile, tile), "photometric": "rgb"}
        with tifffile.TiffWriter(path, bigtiff=True) as file:
            file.write(every, compression="zlib", maxworkers=1, metadata=None, **options)
        small = pathlib.Path(place, "small.png")
        Image.fromarray(pictures[0]).save(small)
        trained = load_run("nuclei")
        keras_vit.predict(trained, small, to=f"{place}/first", tiles=True)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        answer = keras_vit.predict(trained, path, to=f"{place}/masks", tiles=True)
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        written = pathlib.Path(place, "masks", "large.tif")
        return {
            "picture": f"{height} x {width}",
            "file_mb": round(path.stat().st_size / 2**20),
            "mask_mb": round(written.stat().st_size / 2**20, 1),
            "seconds": round(seconds),
            "peak_mb_before": round(before),
            "peak_mb": round(after),
            "answer": dict(answer[0]),
        }


def processor():
    names = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0].partition(": ")[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="+", help="nuclei, blood_cells, camvid RUN, large [WIDTH HEIGHT]")
    names, done = iter(parser.parse_args().what), {}
    for name in names:
        if name == "camvid":
            done[name] = camvid(next(names))
        elif name == "large":
            done[name] = large(*map(int, names))
        else:
            done[name] = {"nuclei": nuclei, "blood_cells": blood_cells}[name]()
        print(json.dumps({name: done[name]}, indent=1), flush=True)
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    done = {name: {**each, **about(), "processor": processor()} for name, each in done.items()}
    RESULTS.write_text(json.dumps(before | done, indent=1) + "\n")


if __name__ == "__main__":
    main()

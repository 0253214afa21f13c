"""What `predict` writes of each kind of output: rows of a table, and files. A kind is a row."""

import dataclasses
from collections.abc import Callable

import numpy as np

from keras_vit.models.box_outputs import EDGES
from keras_vit.utils import instance_maps, run_lengths
from keras_vit.utils.depth_maps import colored_map, depth_png
from keras_vit.utils.images import image_size, opened, save_like
from keras_vit.utils.mask_files import write_tiff


def pairs(task, output, path, answer, source):
    """Returns the names and values of an answer."""
    return [{"image_id": str(path), "name": name, "value": value} for name, value in answer]


def labels(task, output, path, answer, source):
    """Returns the names and values of several labels, with their thresholds, and whether each label holds."""
    least = task.thresholds_by_name()
    rows = pairs(task, output, path, answer, source)
    return [{**row, "threshold": least[row["name"]], "holds": bool(row["value"] >= least[row["name"]])} for row in rows]


def in_photo(output, size, rule):
    """Returns boxes as shares of an image of `(height, width)`: of a model that sees it padded to a square, too."""
    if rule["resize"] != "pad":
        return output
    sides = np.tile(size, 2).astype("float32")
    return np.concatenate([output[:, :EDGES] * max(size) / sides, output[:, EDGES:]], axis=1)


def objects(task, output, path, answer, size):
    """Returns the objects of an image."""
    return [{"image_id": path.name, **entry} for entry in task.result(output, size)]


def segments(task, output, path, answer, size):
    """Returns the segments of an image; one without a pixel, which others cover, is left out."""
    from pycocotools import mask as coco

    ids, found = task.result(output, size)
    areas = np.bincount(ids[ids >= 0], minlength=1 + max((each["id"] for each in found), default=-1))
    seen = [each for each in found if areas[each["id"]]]
    return [
        {
            "image_id": path.name,
            "id": each["id"] + 1,
            "category": each["category"],
            "score": round(float(each["score"]), 4),
            "bbox": coco.toBbox(runs).tolist(),
            "area": int(areas[each["id"]]),
            "segmentation": run_lengths.written(runs),
        }
        for each, runs in zip(seen, run_lengths.of_map(ids, [each["id"] for each in seen]))
    ]


def segments_file(task, output, size, path):
    """Writes a map of segments as COCO's panoptic PNGs: red + 256 green + 65536 blue is the number of the segment, from
    1; 0 is none.
    """
    ids, _ = task.result(output, size)
    path.write_bytes(instance_maps.png(ids + 1 - instance_maps.OFFSET))  # which adds it


def mask_file(task, output, size, path):
    """Writes a mask of class indices."""
    from PIL import Image

    Image.fromarray(task.result(output, size)).save(path, "PNG")


def large_mask_file(task, output, size, path):
    """Writes a mask of class indices of a picture that is too large for memory, as it is computed."""
    write_tiff(path, output.shape, (rows + np.uint8(task.first) for rows in output))


def depth_file(task, output, size, path):
    """Writes meters as millimeters, of models beyond 65 m as 256ths, or as small parts as 16 bits hold; and inverse
    depth from its smallest to its largest value.
    """
    values = task.result(output, size)
    if task.largest is not None:
        steps = next((each for each in (1000, 256) if each * task.largest <= 65535), 65535 / task.largest)
        path.write_bytes(depth_png(values * steps, depth=f"meters = value / {steps:.9g}"))
        return
    low, high = float(values.min()), float(values.max())
    scale = (high - low) / 65535 or 1.0
    text = f"inverse depth of any scale and shift = {low:.9g} + value * {scale:.9g}"
    path.write_bytes(depth_png((values - low) / scale, depth=text))


def colors_file(task, output, size, path):
    """Writes a map of depth in colors."""
    from PIL import Image

    values = task.result(output, size)
    near = values if task.largest is None else 1 / np.maximum(values, 1e-6)
    Image.fromarray(colored_map(near)).save(path, "PNG")


def image_file(task, output, source, path):
    """Writes an image, with the metadata of the one it was made of."""
    with opened(source) as original:
        save_like(original, output if task.whole else task.result(output), path)


def boxes_file(task, output, size, path):
    """Writes a row for each box, as YOLO's labels: class, center x, center y, width, height, and its score."""
    height, width = size
    rows = []
    for entry in task.result(output, size):
        x, y, wide, high = entry["bbox"]
        (left, right), (top, bottom) = np.clip([x, x + wide], 0, width), np.clip([y, y + high], 0, height)
        box = ((left + right) / 2 / width, (top + bottom) / 2 / height, (right - left) / width, (bottom - top) / height)
        numbers = " ".join(f"{number:.6f}" for number in (*box, entry["score"]))
        rows.append(f"{task.classes.index(entry['category'])} {numbers}\n")
    path.write_text("".join(rows))


@dataclasses.dataclass(frozen=True)
class Written:
    """What is written of a kind of output. The defaults are those of numbers by name.

    Args:
        keeps: Function from the bytes of an image file to the `source` of `save` and `entries`, such as its size; or
            `None` if they need none.
        save: Function `(task, output, source, path)` that writes what was made of an image, or `None`.
        ending: Ending of the file that `save` writes.
        large: Function like `save` of a picture over `MOST_PIXELS`, which writes `.tif`; `None` for kinds without.
        beside: Dictionary from the endings of more files to functions like `save`.
        pixels: Whether `Task.result` makes pixels of an output: of a `whole` task a few rows at a time.
        entries: Function `(task, output, path, answer, source)` that returns an image's rows in a table of answers.
        columns: Columns of these rows; those of a `bbox` are `x`, `y`, `width` and `height`.
        by_name: Whether rows tell images apart by the names of their files, not by their paths.
        needs: The extra and the modules that the rows need, if any.
    """

    keeps: Callable | None = None
    save: Callable | None = None
    ending: str = ".png"
    large: Callable | None = None
    beside: dict[str, Callable] = dataclasses.field(default_factory=dict)
    pixels: bool = False
    entries: Callable = pairs
    columns: tuple[str, ...] = ("image_id", "name", "value")
    by_name: bool = False
    needs: tuple[str, ...] = ()


USUAL = Written()
SEGMENTS = Written(
    keeps=image_size,
    save=segments_file,
    entries=segments,
    columns=("image_id", "id", "category", "x", "y", "width", "height", "area", "score"),
    by_name=True,
    needs=("detection", "pycocotools"),
)
KINDS = {  # by the names of `models.kinds.KINDS`; those that are not here are `USUAL`
    "labels": Written(entries=labels, columns=("image_id", "name", "value", "threshold", "holds")),
    "masks": Written(keeps=image_size, save=mask_file, large=large_mask_file),
    "label_masks": Written(keeps=image_size, save=mask_file),
    "boxes": Written(
        keeps=image_size,
        save=boxes_file,
        ending=".txt",
        entries=objects,
        columns=("image_id", "category", "x", "y", "width", "height", "score"),
        by_name=True,
    ),
    "segments": SEGMENTS,
    "instances": SEGMENTS,
    "depth": Written(keeps=image_size, save=depth_file, beside={".color.png": colors_file}),
    "image": Written(keeps=bytes, save=image_file, pixels=True),
}

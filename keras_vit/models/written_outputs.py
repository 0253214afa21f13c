"""What `predict` writes of an output: rows of a table, and files. A row of `kinds.KINDS` names these functions."""

import numpy as np

from keras_vit.utils.depth_maps import colored_map, depth_png
from keras_vit.utils.images import opened, save_like


def pairs(task, output, path, answer, source):
    """Returns the names and values of an answer."""
    return [{"image_id": str(path), "name": name, "value": value} for name, value in answer]


def labels(task, output, path, answer, source):
    """Returns the names and values of several labels, with their thresholds, and whether each label holds."""
    least = task.thresholds_by_name()
    rows = pairs(task, output, path, answer, source)
    return [{**row, "threshold": least[row["name"]], "holds": bool(row["value"] >= least[row["name"]])} for row in rows]


def objects(task, output, path, answer, size):
    """Returns the objects of an image."""
    return [{"image_id": path.name, **entry} for entry in task.objects(output, size)]


def mask_file(task, output, size, path):
    """Writes a mask of class indices."""
    from PIL import Image

    Image.fromarray(task.mask(output, size)).save(path, "PNG")


def depth_file(task, output, size, path):
    """Writes meters as millimeters, of models beyond 65 m as 256ths, or as small parts as 16 bits hold; and inverse
    depth from its smallest to its largest value.
    """
    values = task.depth(output, size)
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

    values = task.depth(output, size)
    near = values if task.largest is None else 1 / np.maximum(values, 1e-6)
    Image.fromarray(colored_map(near)).save(path, "PNG")


def image_file(task, output, source, path):
    """Writes an image, with the metadata of the one it was made of."""
    with opened(source) as original:
        save_like(original, output if task.whole else task.image(output), path)


def boxes_file(task, output, size, path):
    """Writes a row for each box, as YOLO's labels: class, center x, center y, width, height, and its score."""
    height, width = size
    rows = []
    for entry in task.objects(output, size):
        x, y, wide, high = entry["bbox"]
        (left, right), (top, bottom) = np.clip([x, x + wide], 0, width), np.clip([y, y + high], 0, height)
        box = ((left + right) / 2 / width, (top + bottom) / 2 / height, (right - left) / width, (bottom - top) / height)
        numbers = " ".join(f"{number:.6f}" for number in (*box, entry["score"]))
        rows.append(f"{task.classes.index(entry['category'])} {numbers}\n")
    path.write_text("".join(rows))

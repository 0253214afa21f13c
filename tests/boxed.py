"""Clips with boxes for tests: a bright square that moves left or right, and COCO's file with its box in the middle."""

import json

import numpy as np

from tests.clipfiles import animated

NAMES = ("left", "right")
SIDE, SQUARE, FRAMES = 24, 8, 5


def moving_square(number, frames=FRAMES):
    """Returns a clip, uint8 `(frames, SIDE, SIDE, 3)`, the index of its class, and its box: x, y, width, height."""
    random, kind = np.random.default_rng(number), number % 2
    clip = random.integers(0, 60, (frames, SIDE, SIDE, 3)).astype("uint8")
    left, top = random.integers(4, SIDE - SQUARE - 4, 2)
    for i, frame in enumerate(clip):
        place = left + (i - frames // 2) * (1 if kind else -1)
        frame[top : top + SQUARE, max(place, 0) : place + SQUARE] = 220
    return clip, kind, [int(left), int(top), SQUARE, SQUARE]


def table(count=12, ending=".gif"):
    """Returns the content of COCO's file of such clips; the last one has no object."""
    made = {"images": [], "annotations": [], "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)]}
    for i in range(count):
        made["images"].append({"id": i, "file_name": f"{i}{ending}", "width": SIDE, "height": SIDE})
        if i < count - 1:
            _, kind, box = moving_square(i)
            made["annotations"].append({"id": i, "image_id": i, "category_id": kind, "bbox": box})
    return made


def clips_with_boxes(folder, count=12, ending=".gif", content=None):
    """Writes such clips and their file of boxes; returns the paths of the clips."""
    folder.mkdir(parents=True)
    (folder / "annotations.json").write_text(json.dumps(content or table(count, ending)))
    return [animated(folder / f"{i}{ending}", moving_square(i)[0]) for i in range(count)]


def arrays(count=8, frames=FRAMES):
    """Returns clips and their boxes as arrays, `(count, frames, SIDE, SIDE, 3)` and `(count, 1, 5)`."""
    each = [moving_square(i, frames) for i in range(count)]
    boxes = [[[y / SIDE, x / SIDE, (y + h) / SIDE, (x + w) / SIDE, kind]] for _, kind, (x, y, w, h) in each]
    return np.stack([clip for clip, _, _ in each]), np.array(boxes, "float32")

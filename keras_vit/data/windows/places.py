"""Around what crops are drawn: pixels of each class in masks, and objects. They are found once, before training."""

import numpy as np

from keras_vit.data.parallel import each

BLOCK = 1024  # pixels of a side of what is read of a mask at once
KEPT = 256  # pixels of each class that are remembered of a mask


def in_masks(open_mask, count, values):
    """Returns pixels of each class in masks, which are drawn at random but always the same.

    Args:
        open_mask: Function from the place of a mask to its `opening.Picture`.
        count: Number of masks.
        values: The values of the classes in masks.

    Returns:
        Of each mask, of each class, the regions `(regions, 4)` of up to `KEPT` pixels as in `Plan`; and the pixels of
        each class in each mask, int64 `(masks, classes)`.
    """
    found = each(lambda place: _in_mask(open_mask(place), values), range(count), "finding classes in masks")
    return [regions for regions, _ in found], np.array([counts for _, counts in found], "int64").reshape(count, -1)


def _in_mask(mask, values):
    height, width = mask.shape[:2]
    whole = mask.read(0, 0, height, width) if mask.decoded else None
    random, kept, counts = np.random.default_rng(0), [np.zeros((0, 2), "int64")] * len(values), [0] * len(values)
    for top in range(0, height, BLOCK):
        for left in range(0, width, BLOCK):
            sides = min(BLOCK, height - top), min(BLOCK, width - left)
            part = mask.read(top, left, *sides) if whole is None else whole[top : top + BLOCK, left : left + BLOCK]
            present = np.bincount(part.reshape(-1), minlength=256)
            for i, value in enumerate(values):
                if present[value]:
                    places = np.flatnonzero(part == value)
                    pixels = np.stack(np.divmod(places, sides[1]), axis=1) + (top, left)
                    kept[i] = _joined(random, kept[i], counts[i], pixels)
                    counts[i] += len(pixels)
    return [np.concatenate([pixels, pixels + 1], axis=1) for pixels in kept], counts


def _joined(random, kept, count, pixels):
    """Returns up to `KEPT` of `count` pixels, of which some are kept, and of more: each is as likely as any other."""
    if len(kept) + len(pixels) <= KEPT:
        return np.concatenate([kept, pixels])
    total = count + len(pixels)
    new = random.hypergeometric(len(pixels), count, min(KEPT, total)) if count else min(KEPT, total)
    chosen = [random.choice(part, n, replace=False) for part, n in ((kept, min(KEPT, total) - new), (pixels, new))]
    return np.concatenate(chosen)


def of_boxes(boxes, shapes, count):
    """Returns the objects of each class in pictures, as `in_masks` returns pixels.

    Args:
        boxes: Those of each picture, `(pictures, most, 5)` as in `data.augment.boxes`.
        shapes: `(height, width)` of each picture.
        count: Number of classes.
    """
    regions = []
    for rows, shape in zip(boxes, shapes):
        edges = rows[:, :4].astype("float64") * (*shape, *shape)
        regions.append([edges[rows[:, 4] == i] for i in range(count)])
    counts = np.array([[len(edges) for edges in classes] for classes in regions], "int64")
    return regions, counts.reshape(len(shapes), count)

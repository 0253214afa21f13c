"""Class indices of targets for another list of class names: a column of `data/targets.py`.

Each function takes a target, the new index of each old class, and the number of new classes.
"""

import numpy as np

from keras_vit.data.parallel import each
from keras_vit.models.outputs import ignored
from keras_vit.utils.instance_maps import NONE, PER_CLASS, pixels, png


def labels(labels, places, _):
    known = (labels >= 0) & (labels < len(places))  # others are named by `check_labels`
    return np.where(known, places[np.where(known, labels, 0)], -1).astype(labels.dtype)


def multilabels(labels, places, count):
    moved = np.zeros((len(labels), count), labels.dtype)
    moved[:, places] = labels
    return moved


def boxes(boxes, places, _):
    classes = boxes[..., 4].astype("int64")  # -1 is padding, and those below are of regions to ignore
    moved = np.where(classes < -1, ignored(places[ignored(np.minimum(classes, -2))]), places[np.maximum(classes, 0)])
    moved = np.where(classes == -1, -1, moved)
    return np.concatenate([boxes[..., :4], moved[..., None]], -1).astype(boxes.dtype)


def instances(maps, places, _):
    def moved(values):
        objects = places[np.maximum(values // PER_CLASS, 0)] * PER_CLASS + values % PER_CLASS
        regions = ignored(places[ignored(np.minimum(values, -2))])
        return np.where(values == NONE, NONE, np.where(values < NONE, regions, objects)).astype("int32")

    if maps.dtype.kind == "O":  # files
        return np.array(each(lambda item: png(moved(pixels(item))), maps, "renaming classes"), object)
    return np.stack([moved(values) for values in maps]) if len(maps) else maps

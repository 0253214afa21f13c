"""Targets of a dataset, from a list of their values: a column of `data/targets.py`.

Each function takes the values, one for each image, the images and the names of the classes.
"""

import numpy as np

from keras_vit.data.augment.masks import gray_png
from keras_vit.data.readers import box_arrays, dataset_labels, pictures, target_arrays
from keras_vit.data.readers import texts as written
from keras_vit.utils import instance_maps
from keras_vit.utils.depth_maps import npy_bytes


def numbers(values, images, names):
    return target_arrays.numbers(_stacked(values, "Numbers"), images, names)


def multilabels(values, images, names):
    return target_arrays.multilabels(_stacked(values, "Multilabels"), images, names)


def boxes(values, images, names):
    values = [
        np.asarray(boxes, "float32").reshape(-1, 5) if np.size(boxes) == 0 else np.asarray(boxes) for boxes in values
    ]
    wrong = next((i for i, boxes in enumerate(values) if boxes.ndim != 2 or boxes.shape[1] != 5), None)
    if wrong is not None:
        raise ValueError(f"Boxes must have the shape (count, 5). Received: shape={values[wrong].shape}")
    return target_arrays.boxes(box_arrays.padded(values), images, names)


def labels(values, images, names):
    return target_arrays.labels(dataset_labels.indices(values, names), images, names)


def masks(values, images, _):
    return pictures.maps_together(values, images, "A mask", gray_png)


def instances(values, images, names):
    target_arrays.check_instances(values, names)
    return pictures.maps_together(values, images, "An instance mask", instance_maps.png)


def depths(values, images, _):
    return pictures.maps_together(values, images, "A depth map", npy_bytes)


def texts(values, images, _):
    ids = bool(values) and isinstance(values[0], np.ndarray)
    return written.of_array(np.stack(values) if ids else values, images)


def _stacked(values, name):
    return dataset_labels.together(values, f"{name} must have one shape in each example")

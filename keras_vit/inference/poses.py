"""Keypoints of people in given boxes, by a model of heat maps such as ViTPose."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_vit.inference.keypoints import mirrored
from keras_vit.models.inputs import image_shape
from keras_vit.models.kinds import name_of
from keras_vit.utils import checks
from keras_vit.utils.feeding import run
from keras_vit.utils.images import colored, plain_pixels, read_pixels

PADDED = 1.25  # times a box is enlarged, as in training
REFINED = ("dark", "quarter", None)
AT_ONCE = 32  # crops
SIGMA, RADIUS = 0.8, 5  # cells, of the filter before "dark"


def estimate_poses(
    model: keras.Model, image: Any, boxes: Sequence, *, refine: str | None = "dark", flip_test: bool = False
) -> list[dict[str, Any]]:
    """Finds the keypoints of the person in each box of an image.

    Each box is enlarged to the model's aspect ratio and by a quarter, and cut out; what lies outside the image is
    black. A keypoint is the highest cell of its heat map. Xu et al. 2022 (arXiv:2204.12484, "ViTPose"), with unbiased
    coordinates (Huang et al. 2020, arXiv:1911.07524), as transformers' `VitPoseImageProcessor`.

    Args:
        model: A model of heat maps, such as `from_pretrained("hf://usyd-community/vitpose-base-simple")`.
        image: An image file, a Pillow image, or an array `(height, width, 3)`, 0..255.
        boxes: A box for each person: left, top, width and height in pixels; or entries of COCO's results, of which the
            `"bbox"` is taken, as `predict(..., json=...)` of a detector writes them.
        refine: How a keypoint is placed between cells: `"dark"` at the top of a fitted Gaussian (Zhang et al. 2020,
            arXiv:1910.06278), `"quarter"` a quarter of a cell towards the higher neighbors, or `None`.
        flip_test: Whether heat maps are the mean of those of the crop and of its mirror image, mirrored back, with left
            and right keypoints swapped, as in the paper's results; it takes twice as long. Which are left and right
            follows from the keypoints' names, such as `"left_eye"`; 17 without names are COCO's. Coordinates are
            unbiased, so maps are not shifted.

    Returns:
        A dictionary for each box, as in COCO's results: `"bbox"`, `"keypoints"`, a list of x, y and score for each
        keypoint in the order of `class_names(model)`, and `"score"`, their mean. A keypoint whose whole map is 0 or
        below is at 0, 0 with a score of 0.

    Raises:
        ValueError: For another model; for a box without an area, or none of which is inside the image; with
            `flip_test`, for keypoints whose names do not say which are left and right.
        FileNotFoundError: If a file does not exist.
    """
    checks.model(model)
    checks.one_of("refine", refine, REFINED)
    checks.switch(flip_test=flip_test)
    if name_of(model) != "heatmaps":
        raise ValueError(f"`model` must return heat maps of keypoints, as ViTPose. Received: {model.name!r}")
    partners = mirrored(model) if flip_test else None
    pixels = _pixels(image)
    boxes = _checked(boxes, pixels.shape)
    height, width, _ = image_shape(model)
    areas = [_area(box, width / height) for box in boxes]
    poses = []
    for some in (slice(i, i + AT_ONCE) for i in range(0, len(boxes), AT_ONCE)):
        crops = np.stack([_crop(pixels, area, (height, width)) for area in areas[some]])
        maps = _maps(model, crops, partners)
        poses += [_entry(*each, refine) for each in zip(boxes[some], areas[some], maps)]
    return poses


def _maps(model, crops, partners):
    """Returns the heat maps of crops, `(batch, rows, columns, keypoints)`; with `partners`, of a flip test."""
    maps = run(model, crops)
    return maps if partners is None else (maps + run(model, crops[:, :, ::-1])[:, :, ::-1, partners]) / 2


def _pixels(image):
    """Returns an image, float32 or uint8 `(height, width, 3)`."""
    if isinstance(image, (str, os.PathLike)):
        return read_pixels(image, 3)
    if hasattr(image, "getbands"):
        return plain_pixels(image, 3)
    pixels = np.asarray(image)
    if pixels.ndim != 3:
        raise ValueError(f"`image` must be one image, (height, width, channels). Received: shape={pixels.shape}")
    return colored(checks.pixels(pixels[None])[0])


def _checked(boxes, shape):
    """Returns boxes as an array `(boxes, 4)`."""
    boxes = checks.sequence("boxes", boxes.tolist() if isinstance(boxes, np.ndarray) else boxes)
    rows = [box.get("bbox", ()) if isinstance(box, dict) else box for box in boxes]
    if not rows:
        return np.zeros((0, 4))
    try:
        array = np.asarray(rows, "float64")
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 4 or not np.isfinite(array).all():
        raise ValueError(
            f"Boxes must be 4 finite numbers each: left, top, width, height. Received: {checks.shown(rows):.100}"
        )
    left, top, wide, high = array.T
    inside = (wide > 0) & (high > 0) & (left < shape[1]) & (top < shape[0]) & (left + wide > 0) & (top + high > 0)
    if not inside.all():
        raise ValueError(
            f"Boxes must have an area inside the image of {shape[1]} x {shape[0]} pixels. "
            f"Received: {array[~inside][0].tolist()}"
        )
    return array


def _area(box, aspect):
    """Returns the corner and the sides of what is cut out: left, top, width, height, in pixels."""
    left, top, wide, high = box
    sides = np.array([max(wide, high * aspect), max(high, wide / aspect)]) * PADDED
    return np.concatenate([[left + wide / 2, top + high / 2] - sides / 2, sides])


def _crop(pixels, area, size):
    """Returns an area of an image, float32 `(*size, 3)`: the first and last pixels are at its edges.

    Only the pixels between which it is interpolated are read, so a crop costs the same in an image of any size.
    """
    (near_rows, rows), (near_columns, columns) = (
        _between(have, area[1 - i] + np.linspace(0, 1, want) * area[3 - i])
        for i, (have, want) in enumerate(zip(pixels.shape, size))
    )
    near = pixels[near_rows[:, None], near_columns]
    return np.floor(np.einsum("tr,uc,rcx->tux", rows, columns, near, optimize=True) + 0.5).astype("float32")


def _between(count, places):
    """Returns which of `count` samples are next to some places, and the matrix that interpolates them there.

    Nothing is outside.
    """
    below = np.clip(np.floor(places), 0, count - 1).astype(int)
    near = np.union1d(below, np.minimum(below + 1, count - 1))
    weights = np.maximum(1 - np.abs(places[:, None] - near), 0)
    return near, weights * ((places >= 0) & (places <= count - 1))[:, None]


def _entry(box, area, maps, refine):
    """Returns the dictionary of a box."""
    cells, scores = places(maps, refine)
    steps = area[2:] / (np.array(maps.shape[1::-1]) - 1)
    points = np.where(scores[:, None] > 0, area[:2] + cells * steps, 0)
    scores = np.maximum(scores, 0)
    rows = np.concatenate([points, scores[:, None]], axis=1)
    return {"bbox": box.tolist(), "keypoints": rows.ravel().tolist(), "score": float(scores.mean())}


def places(maps, refine="dark"):
    """Returns where heat maps are highest, `(keypoints, 2)`, x and y in cells, and how high, `(keypoints,)`.

    Args:
        maps: Array, `(rows, columns, keypoints)`.
        refine: As in `estimate_poses`.
    """
    columns, count = maps.shape[1:]
    flat = maps.reshape(-1, count)
    y, x = np.divmod(flat.argmax(0), columns)
    cells = np.stack([x, y], axis=-1).astype("float64")
    if refine is not None:
        padded = np.pad(_smoothed(maps) if refine == "dark" else maps, ((1, 1), (1, 1), (0, 0)), mode="edge")
        near = {(i, j): padded[y + 1 + i, x + 1 + j, np.arange(count)] for i in (-1, 0, 1) for j in (-1, 0, 1)}
        slope = np.stack([near[0, 1] - near[0, -1], near[1, 0] - near[-1, 0]], axis=-1) / 2
        cells = cells + 0.25 * np.sign(slope) if refine == "quarter" else cells - _step(near, slope)
    return cells, flat.max(0)


def _smoothed(maps):
    from scipy.ndimage import gaussian_filter

    smooth = gaussian_filter(maps.astype("float64"), SIGMA, radius=(RADIUS, RADIUS), axes=(0, 1))
    return np.log(np.clip(smooth, 0.001, 50))


def _step(near, slope):
    """Returns the Newton step of each keypoint from its cell to the top of a quadratic through its neighbors."""
    across, down = (near[end] - 2 * near[0, 0] + near[start] for end, start in (((0, 1), (0, -1)), ((1, 0), (-1, 0))))
    both = near[1, 1] - near[0, 1] - near[1, 0] + 2 * near[0, 0] - near[0, -1] - near[-1, 0] + near[-1, -1]
    curves = np.stack([np.stack([across, both / 2], -1), np.stack([both / 2, down], -1)], -2)  # (keypoints, 2, 2)
    return np.linalg.solve(curves + np.finfo("float32").eps * np.eye(2), slope[..., None])[..., 0]

"""Pictures of keypoints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_vit.plots import canvas
from keras_vit.utils.images import colored

# Pairs of COCO's 17 keypoints that a line joins: the head, the body, the arms, the legs.
SKELETON = (
    *((0, 1), (0, 2), (1, 3), (2, 4)),
    *((5, 6), (5, 11), (6, 12), (11, 12)),
    *((5, 7), (7, 9), (6, 8), (8, 10)),
    *((11, 13), (13, 15), (12, 14), (14, 16)),
)


def draw_poses(image: np.ndarray, poses: Sequence[dict[str, Any]], least: float = 0.3) -> np.ndarray:
    """Draws the keypoints of people, and COCO's skeleton through them.

    Args:
        image: Array, `(height, width, channels)`, 0..255.
        poses: Of `keras_vit.estimate_poses`.
        least: Score below which a keypoint is left out.

    Returns:
        uint8 array, `(height, width, 3)`.

    Example:

    >>> draw_poses(image, estimate_poses(model, image, [(40, 20, 60, 180)])).shape
    (240, 320, 3)
    """
    from PIL import Image, ImageDraw

    picture = Image.fromarray(np.clip(np.rint(colored(image)), 0, 255).astype("uint8"))
    pen, wide = ImageDraw.Draw(picture), max(round(min(picture.size) / 150), 1)
    for number, pose in enumerate(poses):
        points = np.reshape(pose["keypoints"], (-1, 3))
        color = canvas.COLORS[number % len(canvas.COLORS)]
        for one, other in SKELETON if len(points) == 17 else ():
            if min(points[one, 2], points[other, 2]) >= least:
                pen.line([tuple(points[one, :2]), tuple(points[other, :2])], fill=color, width=wide)
        radius = 1.5 * wide
        for x, y, score in points:
            if score >= least:
                pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill="white", outline=color)
    return np.asarray(picture)

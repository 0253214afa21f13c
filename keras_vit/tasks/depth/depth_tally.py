"""Scores of depth estimation, at the size of each true depth map."""

import numpy as np

from keras_vit.tasks.tally import Tally
from keras_vit.utils.depth_maps import depth_pixels, resized_map

NEAR = 1.25  # largest ratio at which a pixel counts as right: Eigen et al. 2014 (arXiv:1406.2283), section 4.1


class DepthTally(Tally):
    """Mean absolute relative error, and the share of pixels whose depth is right up to a factor of 1.25.

    Both are averaged over an image's known pixels, then over images.

    Args:
        inverse: Whether outputs are inverse depth of any scale and shift. They are first fitted to the true inverse
            depth, by least squares over an image's known pixels.
        unit: Meters per unit of depth in the data, for a model that estimates meters.
        disparity: Whether the data are inverse depth.
    """

    def __init__(self, inverse=True, unit=1.0, disparity=False):
        super().__init__()
        self.inverse = inverse
        self.unit = unit
        self.disparity = disparity

    def add(self, examples, outputs):
        """Counts a batch, and returns the negative error of each image, `(batch,)`, at most 0.

        Args:
            examples: Dictionary with `"depths"`: encoded files, `(batch,)`, or float32 `(batch, rows, columns, 1)`,
                0 in holes.
            outputs: Depth maps, `(batch, height, width, 1)`.
        """
        errors = []
        for depth, output in zip(examples["depths"], outputs):
            values = depth_pixels(depth).astype("float64")
            mask = values > 0
            prediction = resized_map(np.asarray(output, "float32")[..., 0], values.shape)[mask].astype("float64")
            truth = values[mask] * (1 if self.disparity else self.unit)
            inverse = truth if self.disparity else 1 / truth
            if self.inverse:
                prediction = 1 / np.maximum(fitted(prediction, inverse), inverse.min())
            truth, prediction = 1 / inverse, np.maximum(prediction, 1e-6)
            errors.append(np.mean(np.abs(prediction - truth) / truth))
            self.note("abs_rel", errors[-1])
            self.note("delta1", np.mean(np.maximum(prediction / truth, truth / prediction) < NEAR))
        return -np.asarray(errors)


def fitted(prediction, truth):
    """Returns predictions, `(pixels,)`, with the scale and shift that fit the truth, `(pixels,)`, by least squares.

    The scale is at least 0: predictions that confuse near and far must not become right by a negative scale.
    """
    moved = prediction - prediction.mean()
    slope = (moved * (truth - truth.mean())).sum() / max((moved**2).sum(), 1e-12)
    return truth.mean() + max(slope, 0.0) * moved

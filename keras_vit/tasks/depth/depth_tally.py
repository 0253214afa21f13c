"""How far estimated depth is from measured depth, at each map's own size."""

import numpy as np

from keras_vit.tasks.tally import Tally
from keras_vit.utils.depth_maps import depth_pixels, resized_map

NEAR = 1.25  # the ratio up to which a pixel counts as right: Eigen et al. 2014 (arXiv:1406.2283), section 4.1


class DepthTally(Tally):
    """Mean absolute relative error, and the share of pixels whose depth is right up to a factor of 1.25.

    Both are averaged over an image's known pixels, then over images.

    Args:
        inverse: Whether outputs are inverse depth of any scale and shift: they are fitted to the true one first, by
            least squares over an image's known pixels.
        unit: Meters of a depth of 1 in the data, of a model that estimates meters.
        disparity: Whether the data are inverse depth.
    """

    def __init__(self, inverse=True, unit=1.0, disparity=False):
        super().__init__()
        self.inverse = inverse
        self.unit = unit
        self.disparity = disparity

    def add(self, examples, outputs):
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
    """Returns numbers of the scale and shift that fit others best, by least squares.

    A scale is at least 0: what says that near is far is not right after it was turned round.
    """
    moved = prediction - prediction.mean()
    slope = (moved * (truth - truth.mean())).sum() / max((moved**2).sum(), 1e-12)
    return truth.mean() + max(slope, 0.0) * moved

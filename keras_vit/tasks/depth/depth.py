"""Depth estimation: the distance of each pixel."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from keras_vit.models.map_heads import head_of, with_head
from keras_vit.tasks import dense, refusals
from keras_vit.tasks.base import Task
from keras_vit.tasks.depth.depth_loss import DepthLoss, MetersLoss, RelativeError
from keras_vit.tasks.depth.depth_tally import DepthTally
from keras_vit.utils.checked import number
from keras_vit.utils.depth_maps import colored_map, depth_pixels, resized_map

START = 1.0  # initial inverse depth of each pixel: a ReLU that is 0 everywhere has no gradient


@dataclass(frozen=True, repr=False)
class Depth(Task):
    """Depth of each pixel: relative inverse depth, or depth in meters. See `DepthHead` for the head.

    The model returns `(batch, height, width, 1)`, float32, at least 0. Relative inverse depth is large for near pixels,
    and has any scale and shift, as in MiDaS (Ranftl et al. 2019, arXiv:1907.01341) and Depth Anything. To score it, it
    is fitted to the true inverse depth of each image.

    Args:
        classes: Not used: the task has no classes.
        largest: Largest depth in meters, for a model that estimates meters: a sigmoid times `largest`. `None` for
            relative inverse depth.
        unit: Meters per unit of depth in the data, such as 0.001 for millimeters; for a model that estimates meters.
        disparity: Whether the data are inverse depth of any scale, such as disparity from a stereo camera.
        width: Channels of the head; `None` for half of the encoder's width, at most 256, or for the width of a head in
            `weights`.
        gradients: Weight of the gradients in the loss of relative depth; see `DepthLoss`.
    """

    targets = ("depths",)
    best = ("val_abs_rel", "min")
    gives = "depth"
    parts = ("image", "predicted", "true")
    refuses = {"task.classes": "Depth has no classes.", **refusals.of_whole("maps of depth")}

    largest: float | None = number(None, low=1e-3)
    unit: float = number(1.0, low=1e-6)
    disparity: bool = False
    width: int | None = number(None, low=1)
    gradients: float = number(0.5)

    def check(self, recipe=None):
        super().check(recipe)
        if self.largest is not None and self.disparity:
            raise ValueError("Depth.largest is of data in meters, and Depth.disparity of inverse depth. Received: both")

    def of_model(self, model):
        head = head_of(model) or {}
        metric = head.get("kind") == "depth" and head["end"] == "sigmoid"
        return dataclasses.replace(self, classes=(), largest=head["scale"]) if metric else self

    def fits(self, model):
        """Returns `True`: there are no classes, and the output of each depth model is `(batch, height, width, 1)`."""
        return True

    def model(self, **arguments):
        """Builds the model from images, `(batch, height, width, channels)`, 0..255, to `(batch, height, width, 1)`."""
        self.check()
        encoder = dense.encoder(arguments, 0, "model of depth")
        head = dense.head_in(arguments.get("weights")) or {}
        own = head if head.get("kind") == "depth" and self.width is None else self._head(encoder)
        end = {"end": "relu", "scale": 1.0} if self.largest is None else {"end": "sigmoid", "scale": self.largest}
        same_end = head and self.largest is None and head.get("end") == "relu"
        model = with_head(encoder, own | ({} if same_end else end))
        if not head and self.largest is None:
            model.get_layer("head").depth.bias.assign([START])
        return dense.finished(encoder, model.output, arguments, self.classes, "model of depth")

    def _head(self, encoder):
        """Returns the options of a new head on four blocks; see `models.map_heads.with_head`."""
        from keras_vit.models import anatomy

        count, (rows, _) = len(anatomy.blocks(encoder)), anatomy.grid(encoder)
        stride, normed = encoder.input_shape[1] // rows, any(layer.name == "norm" for layer in encoder.layers)
        return {
            "kind": "depth",
            "blocks": (*(math.ceil(i * count / 4) - 1 for i in (1, 2, 3)), count - 1),
            "normed": normed,
            "whole": True,
            "filters": self.width or min(256, max(encoder.output.shape[-1] // 2, 1)),
            "factors": tuple(2.0 ** round(math.log2(stride / scale)) for scale in dense.SCALES),
        }

    def compiled(self, source):
        loss = DepthLoss(self.gradients) if self.largest is None else MetersLoss()
        return {"loss": loss, "weighted_metrics": [RelativeError(inverse=self.largest is None)]}

    def batch(self, examples, augment, seed):
        """Returns images, and depth in meters or inverse depth, float32 `(batch, height, width, 1)`, 0 in holes."""
        from keras_vit.data.augment.depths import inverse

        depth = examples["depths"]
        if self.largest is not None:
            return examples["images"], depth * self.unit
        return examples["images"], depth if self.disparity else inverse(depth)

    def tally(self, keep=False):
        return DepthTally(self.largest is None, self.unit, self.disparity)

    def answer(self, output):
        """Returns the size of a depth map, `(height, width, 1)`, in pixels, and its smallest and largest value."""
        values = np.asarray(output)[..., 0]
        height, width = values.shape
        what = "relative inverse depth" if self.largest is None else "depth in meters"
        ends = {f"smallest {what}": values.min(), f"largest {what}": values.max()}
        return {"width": width, "height": height, **{name: float(value) for name, value in ends.items()}}

    def listed(self, output, top):
        """Returns all pairs of the answer, from a depth map, `(height, width, 1)`."""
        return [*self.answer(output).items()]

    def said(self, answer):
        """Returns text such as `"depth 1.2 to 80 m"` from an answer."""
        *_, low, high = answer.values()
        if self.largest is None:
            return f"relative inverse depth {_digits(low)} to {_digits(high)}: no unit, large is near"
        return f"depth {_digits(low)} to {_digits(high)} m"

    def result(self, output, size=None):
        """Returns a depth map, `(height, width, 1)`, as float32 `(rows, columns)`, at least 0, of this `size`."""
        return np.maximum(resized_map(np.asarray(output, "float32")[..., 0], size), 0)

    def caption(self, output, example):
        """Returns the scores of one image as text, from a depth map, `(height, width, 1)`, and `"depths"`."""
        tally = self.tally()
        tally.add({"depths": [example["depths"]]}, [output])
        scores = tally.result()
        return f"relative error {scores['abs_rel']:.3f}, {scores['delta1']:.1%} of the pixels right up to a quarter"

    def picture(self, image, output, example=None):
        """Returns the image, the predicted and the true depth side by side, uint8 `(rows, columns, 3)`.

        Args:
            image: float32 `(height, width, channels)`, 0..255.
            output: The depth map, `(height, width, 1)`.
            example: Dictionary with `"depths"`, a file or an array, 0 in holes; or `None`.
        """
        from keras_vit.plots.canvas import side_by_side

        prediction = np.asarray(output)[..., 0]
        drawn = [super().picture(image, output), self._colors(prediction, self.largest is None)]
        if example is not None and "depths" in example:
            truth = depth_pixels(example["depths"])
            truth = truth[tuple(np.ix_(*(np.arange(n) * m // n for n, m in zip(prediction.shape, truth.shape))))]
            colors = self._colors(np.where(truth > 0, truth, np.nan), self.disparity)
            drawn.append(colors)
        return side_by_side(drawn)  # image, prediction, true depth

    def _colors(self, values, inverse):
        """Returns a map, `(rows, columns)`, in colors, uint8 `(rows, columns, 3)`: near pixels bright, holes black."""
        mask = ~np.isnan(values)
        near = values if inverse else 1 / np.maximum(values, 1e-6)
        least = float(np.min(near, where=mask, initial=np.inf))
        colors = colored_map(np.where(mask, near, least))
        return np.where(mask[..., None], colors, 0).astype("uint8")


def _digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""The rules of semantic segmentation: a class for every pixel."""

import math

import keras
import numpy as np

from keras_vit.layers import QueryMap
from keras_vit.models.map_outputs import decided
from keras_vit.models.outputs import distinct
from keras_vit.tasks import dense
from keras_vit.tasks.class_names import ordered_by
from keras_vit.tasks.classify.balance import class_weights
from keras_vit.tasks.in_tiles import finite, fitted, resized, tile_of
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.segment import pixels, query_head
from keras_vit.tasks.segment.query_loss import QueryLoss
from keras_vit.tasks.segment.rules import Rules
from keras_vit.tasks.shown import percent
from keras_vit.utils.images import mask_pixels, strips
from keras_vit.utils.tiles import LargeMask, tiled
from keras_vit.utils.warned import warn

MOST = 254  # classes: masks are bytes, and 255 is void


class Semantic(Rules):
    """The rules of a class for every pixel: the target `segmentation_masks`. Methods are as those of `Task`.

    Args:
        task: The `Segment`, whose options the rules read.
    """

    targets = ("segmentation_masks",)
    best = ("val_mean_iou", "max")
    gives = "masks"

    @property
    def by_queries(self):
        """Whether the classes are those of queries, each with a mask."""
        return self.task.head_kind == "queries"

    def check_options(self):
        task = self.task
        if task.head_kind == "deformable":
            raise ValueError(f"Segment.head 'deformable' is for kind='instance'. Received: kind={task.kind!r}")
        if self.by_queries and (task.class_weights or task.dice):
            raise ValueError(
                "Segment.class_weights and dice are not for head='queries', whose loss has its own. "
                f"Received: class_weights={task.class_weights}, dice={task.dice}"
            )
        if task.head_kind == "film":
            raise ValueError("Segment.head='film' is for text=True. Received: text=False")

    def check(self, recipe):
        task = self.task
        count = len(task.classes)
        unnamed = not count and recipe is not None  # the data may have class names
        if not 2 <= count <= MOST and not unnamed:
            raise ValueError(f"Segment.classes must name 2 to {MOST} classes. Received: classes={task.classes!r}")
        if task.first + count > pixels.VOID:
            raise ValueError(f"Classes must have values up to 254. Received: {count} classes from first={task.first}")
        if task.void is not None and task.first <= task.void < task.first + count:
            raise ValueError(f"Segment.void must not be the value of a class. Received: void={task.void}")
        if task.head_kind == "mask" and count < 3 and not unnamed:
            raise ValueError("Segment.head='mask' needs 3 classes or more: its norm compares them. Received: 2 classes")

    def on(self, source, arguments):
        task = ordered_by(self.task, source)
        task.check()
        values = {*range(task.first, task.first + len(task.classes)), task.void, pixels.VOID}
        wrong = {value: name for value, name in source.mask_values.items() if value not in values}
        if wrong:
            value, name = min(wrong.items())
            raise ValueError(
                f"Masks must have values {task.first} to {task.first + len(task.classes) - 1}, one per class"
                f"{'' if task.void is None else f', or {task.void} for void'}. Received: {sorted(wrong)}, such as "
                f"{value} in {name!r}"
            )
        present = [name for i, name in enumerate(task.classes, task.first) if i in source.mask_values]
        if len(present) < 2 and pixels.VOID in source.mask_values:
            message = (
                f"Masks must have pixels of two classes or more, values {task.first} to "
                f"{task.first + len(task.classes) - 1}; 255 is void. Received: only {present}, and 255"
            )
            if arguments is not None:
                raise ValueError(message)
            warn(message)  # a split for evaluation
        return task

    def fits(self, model):
        return model.output_shape[-1] == len(self.task.classes)

    def model(self, arguments):
        count = len(self.task.classes)
        if self.by_queries:
            encoder, model = query_head.built(self.task, arguments)
            logits = QueryMap(count, model.layers[-1].mask_size, name="scores", dtype="float32")(model.output)
        else:
            encoder = dense.encoder(arguments, count, "segmenter")
            head = {"linear": self._linear, "mask": self._mask, "dpt": self._dpt}[self.task.head_kind]
            logits = head(encoder, **self.task.head_options)
        size = encoder.input_shape[1:3]
        enlarge = keras.layers.Resizing(*size, data_format="channels_last", name="logits", dtype="float32")
        return dense.finished(encoder, enlarge(logits), arguments, self.task.classes, "segmenter")

    def _linear(self, encoder):
        head = keras.layers.Dense(len(self.task.classes), kernel_initializer="zeros", name="head", dtype="float32")
        return dense.feature_map(encoder, head(dense.patches(encoder, encoder.output)), "map")

    def _mask(self, encoder, depth, width):
        from keras_vit.layers import MaskDecoder

        block = encoder.get_layer("block_0")
        head = MaskDecoder(
            len(self.task.classes),
            block.num_heads,
            block.mlp_dim,
            depth=depth,
            width=width,
            gelu=block.gelu,
            epsilon=block.epsilon,
            dropout=block.dropout,
            name="head",
            dtype=encoder.dtype_policy,
        )
        return dense.feature_map(encoder, head(dense.patches(encoder, encoder.output)), "map")

    def _dpt(self, encoder, width):
        return dense.dpt(encoder, len(self.task.classes), width)

    def learner(self, model):
        return query_head.learner(model) if self.by_queries else model

    def compiled(self, source):
        task, count = self.task, len(self.task.classes)
        if self.by_queries:
            return {"loss": QueryLoss(count), "weighted_metrics": []}
        weights = None
        if task.class_weights:
            weights = class_weights(source.mask_counts.sum(0)[task.first : task.first + count])
        scores = [pixels.MeanIoU(count), pixels.PixelAccuracy()]
        return {"loss": pixels.PixelLoss(weights, task.dice), "weighted_metrics": scores}

    def batch(self, examples):
        """Returns float32 images, 0..255, and class indices or void, `(batch, height, width, 1)`."""
        indices = examples["segmentation_masks"] - self.task.first  # bytes below the first wrap to void
        if not self.by_queries:
            return examples["images"], indices
        from keras_vit.data.augment.masks import regions

        return examples["images"], regions(indices, len(self.task.classes))

    def callbacks(self, run):
        if not self.by_queries:
            return []
        query_head.set_steps(self.task, run)
        return [Measured(run, self.task.tally, ("mean_iou", "pixel_accuracy"))]

    def tally(self):
        return pixels.PixelTally(self.task.classes, self.task.first)

    def in_tiles(self, function, size):
        """Returns the function from pictures to class indices, uint8 `(pictures, rows, columns)`: see `decided`.

        What tiles have in common is the weighted mean of their logits, which was as good as that of their probabilities
        or better wherever it was measured: `benchmarks/tiles.py`.
        """
        tiling = self.task.tiling
        tile = tile_of(tiling, size)

        def logits(tiles):
            output = finite(function(tiles))
            output = np.log(np.maximum(output, 1e-7)) if _are_shares(output) else output
            return output if output.shape[1:3] == tile else resized(output, tile)

        fit = fitted(logits, tile, size)
        return tiled(fit, (*tile, size[2]), tiling["overlap"], finish=decided, step=tiling["step"])

    def answer(self, output):
        """Returns the share of pixels of each class, 0..1, largest first, from logits, `(height, width, classes)`."""
        output = output if isinstance(output, LargeMask) else decided(output)
        shares = _counts(output, len(self.task.classes)) / math.prod(output.shape)
        names = distinct(self.task.classes)
        return {names[i]: float(shares[i]) for i in np.argsort(-shares, kind="stable")}

    def listed(self, output, top):
        return [*self.answer(output).items()][:top]

    def said(self, answer):
        return f"{', '.join(f'{name}: {percent(share)}' for name, share in answer.items())} of the area"

    def heading(self, output):
        shares = {name: share for name, share in self.answer(output).items() if share}
        painted = {name: share for name, share in shares.items() if name in self.legend()}
        return self.said(dict([*(painted or shares).items()][:3]))

    def legend(self):
        from keras_vit.plots.masks import UNPAINTED, colors

        every = zip(self.task.classes, distinct(self.task.classes), colors(len(self.task.classes)).tolist())
        return {text: tuple(color) for name, text, color in every if name.lower() != UNPAINTED}

    def result(self, output, size):
        """Returns mask values, uint8 `(rows, columns)`, of this `size`, from logits, `(height, width, classes)`."""
        return (pixels.predict(output, size) + self.task.first).astype("uint8")

    def picture(self, image, output, example):
        from keras_vit.plots import masks
        from keras_vit.plots.canvas import side_by_side

        drawn = [masks.overlay(image, decided(output), self.task.classes)]
        if example is not None and "segmentation_masks" in example:
            truth = masks.overlay(image, mask_pixels(example["segmentation_masks"]), self.task.classes, self.task.first)
            drawn.append(truth)
        return side_by_side(drawn)  # prediction, truth


def _counts(mask, count):
    """Returns the number of pixels of each class of a mask, `(count,)`."""
    if isinstance(mask, LargeMask):
        return mask.counted()[:count]
    return sum(np.bincount(mask[rows].ravel(), minlength=count) for rows in strips(*mask.shape))


def _are_shares(output):
    """Returns whether the last axis of an output is probabilities already, as some exported files return them."""
    return output.min() >= 0 and np.allclose(output.sum(-1), 1, atol=1e-2)

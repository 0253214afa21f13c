"""The head of DPT: fuses feature maps of several scales by convolutions."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST
from keras_vit.layers.heads.fusion import Fusion, conv3, norm, scaled
from keras_vit.utils.typed import Rate, Switch


@keras.saving.register_keras_serializable(package="keras_vit")
class DPTHead(Fusion):
    """Fuses feature maps of several blocks from coarse to fine, then classifies each position.

    Each feature map is projected, enlarged or reduced by its factor, and added to the fused coarser ones; residual
    convolutions follow. After each fusion the result is enlarged to the size of the next finer feature map, and after
    the last one by two. Ranftl et al. 2021, "Vision Transformers for Dense Prediction" (arXiv:2103.13413), section 3.1.
    Unlike the authors' code, it resizes with half-pixel centers, as TensorFlow, JAX and all export formats do.

    Args:
        units: Number of classes.
        filters: Channels of the fused feature maps.
        factors: Scale of each feature map after reassembly, relative to its input: powers of two, finest first. `None`
            leaves a feature map unchanged, such as the output of a convolutional stem (DPT-Hybrid).
        neck: Channels to which each feature map is projected; `None` for an eighth, a quarter, ... and all of its
            channels, as in DPT-Base.
        batch_norm: Whether batch normalization follows the residual convolutions and the head's first one.
        dropout: Dropout rate before the classifier; 0.1 in the authors' code. On a CPU, XLA draws that many random
            numbers so slowly that a step can take several times as long.

    Call arguments:
        maps: List of feature maps, or one map.
        training: Whether dropout is on and batch normalization uses the statistics of the batch.

    Input shape:
        A list of `(batch, rows, columns, channels)`, of known sizes.

    Output shape:
        `(batch, 2 * rows, 2 * columns, units)`, logits; rows and columns are of the first feature map after reassembly.

    Raises:
        ValueError: For an argument outside its range, or another number of maps than factors.

    Example:

    >>> DPTHead(11, 64)([keras.ops.zeros((2, 14, 14, 192)) for _ in range(4)]).shape
    (2, 112, 112, 11)
    """

    def __init__(
        self,
        units: int,
        filters: int = 256,
        *,
        factors: Sequence[float | None] = (4, 2, 1, 0.5),
        neck: Sequence[int] | None = None,
        batch_norm: Switch = True,
        dropout: Rate = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        factors, neck = self.check_fusion(factors, neck, units=units, filters=filters)
        self.units = units
        self.filters = filters
        self.factors = factors
        self.neck = neck
        self.batch_norm = batch_norm
        self.dropout = dropout

    def build(self, input_shape):
        self.build_fusion(self._shapes(input_shape))
        dtype, fused = self.dtype_policy, (None, *self.larger[0], self.filters)
        self.conv = conv3(self.filters, "conv", dtype, use_bias=not self.batch_norm)
        self.conv.build(fused)
        if self.batch_norm:
            self.norm = norm("norm", dtype)
            self.norm.build(fused)
        self.drop = keras.layers.Dropout(self.dropout, name="drop", dtype=dtype)
        self.classifier = keras.layers.Conv2D(self.units, 1, data_format=LAST, name="classifier", dtype=dtype)
        self.classifier.build(fused)

    def call(self, maps, training=None):
        x = self.conv(self.fuse(maps if isinstance(maps, (list, tuple)) else [maps], training))
        x = ops.relu(self.norm(x, training=training) if self.batch_norm else x)
        return self.classifier(self.drop(x, training=training))  # (batch, 2 * rows, 2 * columns, units)

    def _shapes(self, input_shape):
        """Returns a list of input shapes, also for one feature map; raises ValueError for other shapes."""
        one = not isinstance(input_shape[0], (list, tuple))
        shapes = [tuple(shape) for shape in ([input_shape] if one else input_shape)]
        if len(shapes) != len(self.factors) or any(len(shape) != 4 or None in shape[1:] for shape in shapes):
            raise ValueError(
                f"The input must be {len(self.factors)} maps (batch, rows, columns, channels) of known sizes. "
                f"Received: {shapes}"
            )
        return shapes

    def compute_output_shape(self, input_shape):
        first, factor = self._shapes(input_shape)[0], self.factors[0]
        rows, columns = (scaled(side, 1 if factor is None else factor) for side in first[1:3])
        return first[0], 2 * rows, 2 * columns, self.units

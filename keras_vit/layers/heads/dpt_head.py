"""DPT's head: feature maps of several scales, fused by convolutions."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.utils import checks


@keras.saving.register_keras_serializable(package="keras_vit")
class DPTHead(Layer):
    """Fuses feature maps of several blocks from coarse to fine, then classifies each position.

    Each map is projected, enlarged or reduced by its factor, and added to the fused coarser ones; residual
    convolutions follow. After each fusion the map is enlarged to the next finer one, and after the last by two.
    Ranftl et al. 2021, "Vision Transformers for Dense Prediction" (arXiv:2103.13413), section 3.1. Unlike the authors'
    code, it enlarges with half-pixel centers, as TensorFlow, JAX and all export formats do.

    Args:
        units: Number of classes.
        filters: Channels of the fused maps.
        factors: Size of each map after reassembly, relative to its input; powers of two, finest map first. `None`
            takes a map as it is, such as a convolutional stem's (DPT-Hybrid).
        neck: Channels that each map is projected to; `None` for an eighth, a quarter, ... and all of its channels, as
            in DPT-Base.
        batch_norm: Whether batch normalization follows the residual convolutions and the head's first one.
        dropout: Dropout rate before the classifier; 0.1 in the authors' code. On a CPU, XLA draws that many random
            numbers so slowly that a step can take several times as long.

    Call arguments:
        maps: List of feature maps, or one map.
        training: Whether dropout is on and batch normalization uses the batch.

    Input shape:
        A list of `(batch, rows, columns, channels)`, of known sizes.

    Output shape:
        `(batch, 2 * rows, 2 * columns, units)`, where rows and columns are the first map's after reassembly.

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
        batch_norm: bool = True,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.positive(units=units, filters=filters)
        checks.switch(batch_norm=batch_norm)
        checks.rate(dropout=dropout)
        factors = checks.sequence("factors", factors)
        if not factors or any(factor not in POWERS for factor in factors):
            raise ValueError(f"`factors` must be powers of two from 1/16 to 16, or None. Received: factors={factors!r}")
        if neck is not None:
            neck = checks.sequence("neck", neck)
            checks.positive(**{f"neck[{i}]": channels for i, channels in enumerate(neck)})
            if len(neck) != len(factors):
                raise ValueError(f"`neck` must have one entry per factor. Received: neck={neck!r}, factors={factors!r}")
        self.units = units
        self.filters = filters
        self.factors = factors
        self.neck = neck
        self.batch_norm = batch_norm
        self.dropout = dropout

    def build(self, input_shape):
        shapes, dtype, filters = self._shapes(input_shape), self.dtype_policy, self.filters
        levels = range(len(shapes))
        sizes = []  # (rows, columns) of each map after reassembly
        self.reassemble = []
        self.convs = []
        for i, (shape, factor) in enumerate(zip(shapes, self.factors)):
            if factor is not None:
                channels = self.neck[i] if self.neck else max(shape[-1] >> (len(shapes) - 1 - i), 1)
                layer = _Reassemble(channels, factor, name=f"reassemble{i}", dtype=dtype)
                layer.build(shape)
                shape = layer.compute_output_shape(shape)
                self.reassemble.append(layer)
            else:
                self.reassemble.append(keras.layers.Identity(name=f"reassemble{i}", dtype=dtype))
            sizes.append(tuple(shape[1:3]))
            self.convs.append(_conv3(filters, f"conv{i}", dtype))
            self.convs[-1].build(shape)
        self.skips = [_Residual(self.batch_norm, name=f"skip{i}", dtype=dtype) for i in levels[:-1]]
        self.fusions = [_Residual(self.batch_norm, name=f"fusion{i}", dtype=dtype) for i in levels]
        self.projs = [keras.layers.Conv2D(filters, 1, data_format=LAST, name=f"proj{i}", dtype=dtype) for i in levels]
        self.conv = _conv3(filters, "conv", dtype, use_bias=not self.batch_norm)
        self.larger = [(2 * sizes[0][0], 2 * sizes[0][1]), *sizes[:-1]]  # (rows, columns) of each map after its fusion
        for layers, at in ((self.skips, sizes), (self.fusions, sizes), (self.projs, self.larger)):
            for layer, size in zip(layers, at):
                layer.build((None, *size, filters))
        fused = (None, *self.larger[0], filters)
        self.conv.build(fused)
        if self.batch_norm:
            self.norm = _norm("norm", dtype)
            self.norm.build(fused)
        self.drop = keras.layers.Dropout(self.dropout, name="drop", dtype=dtype)
        self.classifier = keras.layers.Conv2D(self.units, 1, data_format=LAST, name="classifier", dtype=dtype)
        self.classifier.build(fused)

    def call(self, maps, training=None):
        maps = maps if isinstance(maps, (list, tuple)) else [maps]
        x = None
        for i in reversed(range(len(maps))):
            y = self.convs[i](self.reassemble[i](maps[i]))  # (batch, rows, columns, filters)
            x = y if x is None else x + self.skips[i](y, training=training)
            x = self.fusions[i](x, training=training)
            x = self.projs[i](_resize(x, self.larger[i]))
        x = self.conv(x)
        x = ops.relu(self.norm(x, training=training) if self.batch_norm else x)
        return self.classifier(self.drop(x, training=training))  # (batch, 2 * rows, 2 * columns, units)

    def _shapes(self, input_shape):
        """Returns a list of the maps' shapes, also for one map."""
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
        rows, columns = (_scaled(side, 1 if factor is None else factor) for side in first[1:3])
        return first[0], 2 * rows, 2 * columns, self.units


POWERS = (None, *(2.0**i for i in range(-4, 5)))


class _Reassemble(Layer):
    """A projection, then a transposed convolution that enlarges or a strided one that reduces."""

    def __init__(self, channels, factor, **kwargs):
        super().__init__(**kwargs)
        self.channels = channels
        self.factor = factor

    def build(self, input_shape):
        dtype, factor, channels = self.dtype_policy, self.factor, self.channels
        self.proj = keras.layers.Conv2D(channels, 1, data_format=LAST, name="proj", dtype=dtype)
        self.proj.build(input_shape)
        batch, rows, columns, _ = input_shape
        if factor > 1:
            self.resize = keras.layers.Conv2DTranspose(
                channels, int(factor), strides=int(factor), data_format=LAST, name="resize", dtype=dtype
            )
        elif factor < 1:
            rows, columns = rows + 2, columns + 2  # padded, see `call`
            self.resize = keras.layers.Conv2D(
                channels, 3, strides=int(1 / factor), data_format=LAST, name="resize", dtype=dtype
            )
        if factor != 1:
            self.resize.build((batch, rows, columns, channels))

    def call(self, x):
        x = self.proj(x)
        if self.factor < 1:  # both sides, as PyTorch pads; "same" would pad an even size at its end only
            x = ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        return x if self.factor == 1 else self.resize(x)

    def compute_output_shape(self, input_shape):
        batch, rows, columns, _ = input_shape
        return batch, _scaled(rows, self.factor), _scaled(columns, self.factor), self.channels


class _Residual(Layer):
    """Two 3 x 3 convolutions, each after a ReLU, and a shortcut around them."""

    def __init__(self, batch_norm, **kwargs):
        super().__init__(**kwargs)
        self.batch_norm = batch_norm

    def build(self, input_shape):
        dtype, use_bias = self.dtype_policy, not self.batch_norm
        self.convs = [_conv3(input_shape[-1], f"conv{i}", dtype, use_bias) for i in range(2)]
        self.norms = [_norm(f"norm{i}", dtype) for i in range(2)] if self.batch_norm else []
        for layer in (*self.convs, *self.norms):
            layer.build(input_shape)

    def call(self, x, training=None):
        y = x
        for i, conv in enumerate(self.convs):
            y = conv(ops.relu(y))
            y = self.norms[i](y, training=training) if self.batch_norm else y
        return x + y

    def compute_output_shape(self, input_shape):
        return input_shape


def _conv3(filters, name, dtype, use_bias=False):
    return keras.layers.Conv2D(filters, 3, padding="same", use_bias=use_bias, data_format=LAST, name=name, dtype=dtype)


def _norm(name, dtype):
    return keras.layers.BatchNormalization(epsilon=1e-5, momentum=0.9, name=name, dtype=dtype)


def _scaled(side, factor):
    """Returns a side after `_Reassemble`; a strided convolution rounds up."""
    return int(side * factor) if factor >= 1 else -(-side // int(1 / factor))


def _resize(x, size):
    return x if tuple(x.shape[1:3]) == size else ops.cast(ops.image.resize(x, size, data_format=LAST), x.dtype)

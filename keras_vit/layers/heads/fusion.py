"""Fusion of feature maps of several scales by convolutions, the common part of DPT's heads."""

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.utils import checks
from keras_vit.utils.resampling import resize_matrix

POWERS = (None, *(2.0**i for i in range(-4, 5)))


class Fusion(Layer):
    """Base class of heads on feature maps of several blocks. Ranftl et al. 2021 (arXiv:2103.13413), section 3.1.

    Each feature map is projected, enlarged or reduced by its factor, and added to the fused coarser ones; residual
    convolutions follow. After each fusion the result is enlarged to the size of the next finer feature map, and after
    the last one by two.

    A subclass has the attributes `filters`, `factors`, `neck` and `batch_norm`, and calls `build_fusion` and `fuse`.
    """

    doubles = False  # see `DepthHead`

    @staticmethod
    def enlarge(x, size):
        """Resizes feature maps, `(batch, rows, columns, channels)`, to `size`, `(rows, columns)`."""
        return resized(x, size)

    def check_fusion(self, factors, neck, **counts):
        """Returns `factors` and `neck` as tuples; raises ValueError if they, or `counts`, are out of range."""
        checks.positive(**counts)
        factors = checks.sequence("factors", factors)
        if not factors or any(factor not in POWERS for factor in factors):
            raise ValueError(
                f"`factors` must be powers of two from 1/16 to 16, or None. Received: factors={checks.shown(factors)}"
            )
        if neck is not None:
            neck = checks.sequence("neck", neck)
            checks.positive(**{f"neck[{i}]": channels for i, channels in enumerate(neck)})
            if len(neck) != len(factors):
                raise ValueError(
                    "`neck` must have one entry per factor. "
                    f"Received: neck={checks.shown(neck)}, factors={checks.shown(factors)}"
                )
        return factors, neck

    def build_fusion(self, shapes):
        """Builds the layers for feature maps of these shapes, `(batch, rows, columns, channels)`, finest first."""
        dtype, filters, levels = self.dtype_policy, self.filters, range(len(shapes))
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
            self.convs.append(conv3(filters, f"conv{i}", dtype))
            self.convs[-1].build(shape)
        self.skips = [_Residual(self.batch_norm, name=f"skip{i}", dtype=dtype) for i in levels[:-1]]
        self.fusions = [_Residual(self.batch_norm, name=f"fusion{i}", dtype=dtype) for i in levels]
        self.projs = [keras.layers.Conv2D(filters, 1, data_format=LAST, name=f"proj{i}", dtype=dtype) for i in levels]
        self.sizes = self.fused_sizes(sizes)  # (rows, columns) of each feature map at its fusion
        self.larger = [(2 * self.sizes[0][0], 2 * self.sizes[0][1]), *self.sizes[:-1]]  # and after it
        for layers, at in ((self.skips, self.sizes), (self.fusions, self.sizes), (self.projs, self.larger)):
            for layer, size in zip(layers, at):
                layer.build((None, *size, filters))

    def fused_sizes(self, sizes):
        """Returns the `(rows, columns)` of each fusion, from the sizes of the feature maps, finest first."""
        if not self.doubles:
            return sizes
        rows, columns = sizes[-1]
        return [(rows << i, columns << i) for i in reversed(range(len(sizes)))]

    def fuse(self, maps, training=None):
        """Fuses feature maps.

        Args:
            maps: List of tensors, `(batch, rows, columns, channels)`, finest first.
            training: Whether batch normalization uses the statistics of the batch.

        Returns:
            Tensor, `(batch, rows, columns, filters)`, with twice the rows and columns of the first fusion.
        """
        x = None
        for i in reversed(range(len(maps))):
            y = self.convs[i](self.reassemble[i](maps[i]))  # (batch, rows, columns, filters)
            x = y if x is None else x + self.skips[i](resized(y, self.sizes[i]), training=training)
            x = self.fusions[i](x, training=training)
            x = self.projs[i](self.enlarge(x, self.larger[i]))
        return x


def resized(x, size):
    """Resizes `(batch, rows, columns, channels)` to `size`, `(rows, columns)`, bilinearly with half-pixel centers."""
    return x if tuple(x.shape[1:3]) == size else ops.cast(ops.image.resize(x, size, data_format=LAST), x.dtype)


def corner_aligned(x, size):
    """Resizes feature maps bilinearly with aligned corners, as PyTorch's `interpolate(align_corners=True)`.

    It uses one product with a constant matrix for the rows and one for the columns: all export formats have these.

    Args:
        x: Tensor, `(batch, rows, columns, channels)`, of known sizes.
        size: `(rows, columns)` of the result.

    Returns:
        Tensor, `(batch, *size, channels)`.
    """
    (rows, columns, channels), dtype = x.shape[1:], x.dtype
    if (rows, columns) == tuple(size):
        return x
    down, across = (
        ops.convert_to_tensor(resize_matrix(have, want, "zoom"), dtype) for have, want in zip((rows, columns), size)
    )
    x = ops.matmul(down, ops.reshape(x, (-1, rows, columns * channels)))  # (batch, new rows, columns * channels)
    x = ops.matmul(across, ops.reshape(x, (-1, columns, channels)))  # (batch * new rows, new columns, channels)
    return ops.reshape(x, (-1, *size, channels))  # (batch, new rows, new columns, channels)


class _Reassemble(Layer):
    """A projection, then a transposed convolution that enlarges, or a strided convolution that reduces."""

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
        return batch, scaled(rows, self.factor), scaled(columns, self.factor), self.channels


class _Residual(Layer):
    """A residual branch of two 3 x 3 convolutions, each after a ReLU."""

    def __init__(self, batch_norm, **kwargs):
        super().__init__(**kwargs)
        self.batch_norm = batch_norm

    def build(self, input_shape):
        dtype, use_bias = self.dtype_policy, not self.batch_norm
        self.convs = [conv3(input_shape[-1], f"conv{i}", dtype, use_bias) for i in range(2)]
        self.norms = [norm(f"norm{i}", dtype) for i in range(2)] if self.batch_norm else []
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


def conv3(filters, name, dtype, use_bias=False):
    """Returns a 3 x 3 convolution that keeps the rows and columns."""
    return keras.layers.Conv2D(filters, 3, padding="same", use_bias=use_bias, data_format=LAST, name=name, dtype=dtype)


def norm(name, dtype):
    """Returns a batch normalization with PyTorch's default settings."""
    return keras.layers.BatchNormalization(epsilon=1e-5, momentum=0.9, name=name, dtype=dtype)


def scaled(side, factor):
    """Returns the rows or columns after `_Reassemble`; a strided convolution rounds up."""
    return int(side * factor) if factor >= 1 else -(-side // int(1 / factor))

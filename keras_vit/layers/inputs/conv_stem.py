"""A stem of a few convolutions, an alternative to large patches."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST, Layer
from keras_vit.layers.heads.decorrelating import decorrelating
from keras_vit.utils import checks
from keras_vit.utils.typed import Switch

POOL, WHITEN = "pool", "whiten"


@keras.saving.register_keras_serializable(package="keras_vit")
class ConvStem(Layer):
    """Computes a feature map by 3 x 3 convolutions, each with batch normalization and ReLU.

    Xiao et al. 2021 (arXiv:2106.14881, "Early convolutions help transformers see better"), section 4. Their stem ends
    with a 1 x 1 convolution to the width: here that is `PatchEncoder`'s projection of patches of size 1. Each
    convolution can be followed by a residual branch (He et al. 2016, arXiv:1512.03385, section 3.2) of convolutions of
    stride 1, each with batch normalization and ReLU.

    Args:
        filters: Output channels of each convolution, such as `(48, 96, 192, 384)`.
        strides: Stride of each convolution; `None` for 2 everywhere. `"pool"` is stride 1 with 2 x 2 max-pooling before
            the normalization. `"whiten"`, for the first convolution only, is stride 1 with kernels initialized as
            cosine transforms, each in both signs: close to the principal components of photographs, with which Jordan
            2024 (arXiv:2404.00498, section 3.2) initializes it.
        branches: Number of convolutions in the residual branch after each convolution; `None` for no branches.
        norm: Whether batch normalization follows each convolution. If not, each convolution has a bias, and the last
            one of a branch has no ReLU, as in Lim et al. 2017 (arXiv:1707.02921, "EDSR"), section 3.1.

    Call arguments:
        images: Tensor of rescaled pixels.
        training: Whether to normalize with the statistics of the batch and update the moving averages.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, height / s, width / s, filters[-1])`, where `s` is the product of the strides, 2 for `"pool"` and 1
        for `"whiten"`. Sizes are rounded up.

    Raises:
        ValueError: If filters, strides or branches are out of range, or differ in number; if a
            `"whiten"` convolution has more filters than 18 times the image's channels, or no normalization.

    Example:

    >>> ConvStem((24, 48, 96, 192))(keras.ops.zeros((1, 32, 32, 3))).shape
    (1, 2, 2, 192)
    """

    def __init__(
        self,
        filters: Sequence[int],
        strides: Sequence[int | str] | None = None,
        branches: Sequence[int] | None = None,
        norm: Switch = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.filters = checks.sequence("filters", filters)
        self.strides = (2,) * len(self.filters) if strides is None else checks.sequence("strides", strides)
        self.branches = (0,) * len(self.filters) if branches is None else checks.sequence("branches", branches)
        if not self.filters or not len(self.filters) == len(self.strides) == len(self.branches):
            raise ValueError(
                "Each convolution must have one stride and one branch. "
                f"Received: filters={checks.shown(filters)}, strides={checks.shown(strides)}, "
                f"branches={checks.shown(branches)}"
            )
        checks.positive(**{f"filters[{i}]": value for i, value in enumerate(self.filters)})
        for i, stride in enumerate(self.strides):
            words = [POOL] if i else [POOL, WHITEN]
            if isinstance(stride, str) and stride not in words:
                allowed = " or ".join(["a positive integer", *map(repr, words)])
                raise ValueError(f"`strides[{i}]` must be {allowed}. Received: strides[{i}]={checks.shown(stride)}")
            if not isinstance(stride, str):
                checks.positive(**{f"strides[{i}]": stride})
        if WHITEN in self.strides and not norm:
            raise ValueError(
                "A 'whiten' convolution needs batch normalization. "
                f"Received: strides={checks.shown(strides)} and norm={norm}"
            )
        checks.whole(**{f"branches[{i}]": count for i, count in enumerate(self.branches)})
        self.norm = norm

    def build(self, input_shape):
        dtype, shape = self.dtype_policy, tuple(input_shape)
        self.convs = []
        self.norms = []
        for name, filters, stride in self._plan():
            conv = keras.layers.Conv2D(
                filters,
                3,
                strides=1 if isinstance(stride, str) else stride,
                padding="same",
                data_format=LAST,
                use_bias=not self.norm,
                kernel_initializer=decorrelating if stride == WHITEN else "glorot_uniform",
                name=f"conv{name}",
                dtype=dtype,
            )
            conv.build(shape)
            shape = (shape[0], *_sides(shape[1:3], stride), filters)
            self.convs.append(conv)
            if self.norm:
                norm = keras.layers.BatchNormalization(epsilon=1e-5, momentum=0.9, name=f"norm{name}", dtype=dtype)
                norm.build(shape)
                self.norms.append(norm)

    @property
    def steps(self):
        """The strides, with 1 for `"whiten"`, which trained weights no longer show."""
        return tuple(1 if stride == WHITEN else stride for stride in self.strides)

    def _plan(self):
        """Yields the name, filters and stride of each convolution, in the order of use."""
        for i, (filters, stride, count) in enumerate(zip(self.filters, self.strides, self.branches)):
            yield str(i), filters, stride
            for j in range(count):
                yield f"{i}_branch{j}", filters, 1

    def call(self, images, training=None):
        layers, x = zip(self.convs, self.norms or [None] * len(self.convs)), images
        for stride, count in zip(self.strides, self.branches):
            x = _next(layers, x, training, pool=stride == POOL)
            branch = x
            for i in range(count):
                branch = _next(layers, branch, training, relu=self.norm or i + 1 < count)
            x = x + branch if count else x
        return x  # (batch, height / s, width / s, filters[-1])

    def compute_output_shape(self, input_shape):
        batch, *sides, _ = input_shape
        for stride in self.strides:
            sides = _sides(sides, stride)
        return batch, *sides, self.filters[-1]


def _sides(sides, stride):
    step = {POOL: 2, WHITEN: 1}.get(stride, stride)
    return [side and -(-side // step) for side in sides]


def _next(layers, x, training, relu=True, pool=False):
    conv, norm = next(layers)
    x = conv(x)
    if pool:
        x = ops.max_pool(x, 2, strides=2, padding="same", data_format=LAST)
    if norm is not None:
        x = norm(x, training=training)
    return ops.relu(x) if relu else x

"""The head of DPT and Depth Anything: from tokens of several blocks to a depth map."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_vit.layers.base import LAST
from keras_vit.layers.blocks.gelu import BY_NAME
from keras_vit.layers.heads.fusion import Fusion, conv3, corner_aligned, scaled
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Switch, among

READOUTS = ("ignore", "add", "project")
ENDS = {"relu": ops.relu, "sigmoid": ops.sigmoid, None: lambda x: x}


@keras.saving.register_keras_serializable(package="keras_vit")
class DepthHead(Fusion):
    """Fuses the tokens of several blocks from coarse to fine, then estimates the depth of each pixel.

    Unlike in `DPTHead`, enlargement aligns the corners, and three convolutions end in one channel. Ranftl et al. 2021
    (arXiv:2103.13413), section 3 and appendix A; Yang et al. 2024 (arXiv:2406.09414) without `readout`.

    Args:
        grid: `(rows, columns)` of the patches.
        filters: Channels of the fused feature maps.
        size: `(height, width)` of the depth map; `None` for twice the size of the fused feature map, as in DPT.
        factors: As in `DPTHead`, without `None`.
        neck: As in `DPTHead`.
        readout: Use of the class token, the first token: `"ignore"` drops it; `"add"` adds it to each patch token;
            `"project"` concatenates it to each patch token, and a dense layer with a GELU projects both to one token.
        gelu: GELU of the readout: `"exact"`, `"tanh"` or `"quick"`.
        doubles: Whether each fused feature map is enlarged by two, and the next finer one resized to it, as in DPT;
            else it is enlarged to the next finer one, as in Depth Anything.
        batch_norm: Whether batch normalization follows the residual convolutions.
        hidden: Channels before the last convolution.
        end: Last activation, `"relu"`, `"sigmoid"` or `None`.
        scale: Factor of the output, such as the largest depth in meters after a sigmoid.

    Call arguments:
        tokens: List of tensors, the tokens of several blocks, or one tensor.
        training: Whether batch normalization uses the statistics of the batch.

    Input shape:
        A list of `(batch, tokens, width)`, of known sizes: any number of tokens, then `rows * columns` of patches.

    Output shape:
        `(batch, height, width, 1)`, float32: at least 0 with `"relu"`, 0 to `scale` with `"sigmoid"`.

    Raises:
        ValueError: For an argument outside its range, or other shapes.

    Example:

    >>> DepthHead((14, 14), 64, size=(224, 224))([keras.ops.zeros((2, 197, 192)) for _ in range(4)]).shape
    (2, 224, 224, 1)
    """

    gives = "depth"  # see `models.kinds`
    enlarge = staticmethod(corner_aligned)

    def __init__(
        self,
        grid: Sequence[int],
        filters: int = 256,
        *,
        size: Sequence[int] | None = None,
        factors: Sequence[float] = (4, 2, 1, 0.5),
        neck: Sequence[int] | None = None,
        readout: among(READOUTS) = "ignore",
        gelu: among(BY_NAME) = "exact",
        doubles: Switch = False,
        batch_norm: Switch = False,
        hidden: int = 32,
        end: among(ENDS) = "relu",
        scale: AboveZero = 1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        factors, neck = self.check_fusion(factors, neck, filters=filters, hidden=hidden)
        if None in factors:
            raise ValueError(
                f"`factors` must be powers of two from 1/16 to 16. Received: factors={checks.shown(factors)}"
            )
        self.grid = checks.pair("grid", grid)
        self.filters = filters
        self.size = None if size is None else checks.pair("size", size)
        self.factors = factors
        self.neck = neck
        self.readout = readout
        self.gelu = gelu
        self.doubles = doubles
        self.batch_norm = batch_norm
        self.hidden = hidden
        self.end = end
        self.scale = scale

    def build(self, input_shape):
        shapes, dtype = self._shapes(input_shape), self.dtype_policy
        self.build_fusion([(batch, *self.grid, width) for batch, _, width in shapes])
        self.readouts = []
        for i, (batch, count, width) in enumerate(shapes if self.readout == "project" else ()):
            self.readouts.append(keras.layers.Dense(width, BY_NAME[self.gelu], name=f"readout{i}", dtype=dtype))
            self.readouts[-1].build((batch, count, 2 * width))
        half, fused, whole = max(self.filters // 2, 1), self.larger[0], self._size()
        self.first = conv3(half, "first", dtype, use_bias=True)
        self.first.build((None, *fused, self.filters))
        self.second = conv3(self.hidden, "second", dtype, use_bias=True)
        self.second.build((None, *whole, half))
        self.depth = keras.layers.Conv2D(1, 1, data_format=LAST, name="depth", dtype="float32")
        self.depth.build((None, *whole, self.hidden))

    def call(self, tokens, training=None):
        tokens = tokens if isinstance(tokens, (list, tuple)) else [tokens]
        x = self.first(self.fuse([self._map(i, x) for i, x in enumerate(tokens)], training))
        x = ops.relu(self.second(corner_aligned(x, self._size())))
        return ENDS[self.end](self.depth(x)) * self.scale  # (batch, height, width, 1)

    def _map(self, i, tokens):
        """Returns block i's tokens, `(batch, tokens, width)`, as a feature map, `(batch, rows, columns, width)`."""
        rows, columns = self.grid
        patches = tokens[:, tokens.shape[1] - rows * columns :]
        if self.readout != "ignore":
            first = tokens[:, :1]
            if self.readout == "add":
                patches = patches + first
            else:
                both = [patches, ops.broadcast_to(first, ops.shape(patches))]
                patches = self.readouts[i](ops.concatenate(both, axis=-1))
        return ops.reshape(patches, (-1, rows, columns, patches.shape[-1]))

    def _size(self):
        """Returns `(height, width)` of the depth map."""
        return self.size or tuple(2 * side for side in self.larger[0])

    def _shapes(self, input_shape):
        """Returns a list of input shapes, also for one block; raises ValueError for other shapes."""
        one = not isinstance(input_shape[0], (list, tuple))
        shapes = [tuple(shape) for shape in ([input_shape] if one else input_shape)]
        least = self.grid[0] * self.grid[1] + (self.readout != "ignore")
        fits = all(len(shape) == 3 and None not in shape[1:] and shape[1] >= least for shape in shapes)
        if not fits or len(shapes) != len(self.factors):
            prefix = "" if self.readout == "ignore" else " after a class token"
            raise ValueError(
                f"The input must be {len(self.factors)} blocks' tokens (batch, tokens, width) of known sizes, with "
                f"{self.grid[0]} x {self.grid[1]} patches{prefix}. Received: {shapes}"
            )
        return shapes

    def compute_output_spec(self, tokens, training=None):
        shape = keras.tree.map_structure(lambda x: x.shape, tokens)
        return keras.KerasTensor(self.compute_output_shape(shape), "float32")  # under any policy

    def compute_output_shape(self, input_shape):
        shapes = self._shapes(input_shape)
        if self.size is not None:
            return shapes[0][0], *self.size, 1
        sizes = [tuple(scaled(side, factor) for side in self.grid) for factor in self.factors]
        return shapes[0][0], *(4 * side for side in self.fused_sizes(sizes)[0]), 1

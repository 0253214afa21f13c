"""Pools tokens into one vector per image."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.layers.blocks.mlp import MLP
from keras_vit.layers.inputs.prefix import WithPrefix, has_class_token, prefix_of
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Switch

POOLINGS = ("token", "gap", "token+gap", "first", "last", "map", "none")
POOL = {"num_heads": None, "mlp_dim": None, "over_prefix": False}  # of "map"; `None`: as in the blocks
ELSEWHERE = {  # names in other libraries
    "gap": "avg mean average global_average GAP",
    "token": "cls class cls_token class_token CLS",
    "map": "attention attention_pooling attn map_head",
    "none": "None all identity",
}
TOKEN_POOLINGS = ("token", "token+gap")


@keras.saving.register_keras_serializable(package="keras_vit")
class TokenPool(WithPrefix, Layer):
    """Pools a sequence of tokens into one vector.

    - `"token"`: the class token, which is the first token.
    - `"gap"`: global average pooling of the patch tokens, without prefix tokens, as in timm and big_vision.
    - `"token+gap"`: both, concatenated, as in DINOv2's linear classifiers (Oquab et al. 2023, arXiv:2304.07193).
    - `"first"`, `"last"`: the first or the last patch token.
    - `"map"`: multi-head attention pooling. A learned probe attends to the patch tokens; an MLP on a residual
      branch follows. Zhai et al. 2022 (arXiv:2106.04560), section 3.2, as in big_vision; without prefix tokens, as
      in timm's ViT, unless `over_prefix` is set.
    - `"none"`: all tokens, unchanged.

    Args:
        pooling: One of the above.
        num_prefix: Number of tokens before the first patch; `None` to infer it from the layers before, in a
            functional model with a `PatchEncoder`.
        num_heads: Number of attention heads, for `"map"` only.
        mlp_dim: Hidden channels of the MLP of `"map"`; `None` for four times the width.
        gelu: GELU of that MLP: `"tanh"`, `"exact"` or `"quick"`; see `MLP`.
        epsilon: Epsilon of the layer normalization of `"map"`.
        over_prefix: Whether the probe of `"map"` attends to the prefix tokens too, as in the Perception Encoder.

    Call arguments:
        tokens: Tensor of tokens.

    Input shape:
        `(batch, tokens, width)`.

    Output shape:
        `(batch, width)`; for `"token+gap"` `(batch, 2 * width)`, for `"none"` `(batch, tokens, width)`.

    Raises:
        ValueError: For an unknown pooling, the class token's without a prefix token, or `"map"` without `num_heads`; in
            the call, if the number of prefix tokens is needed and not known.

    Example:

    >>> TokenPool("gap", num_prefix=1)(keras.ops.zeros((2, 50, 64))).shape
    (2, 64)
    """

    ndim = 3
    keeps_prefix = False

    def __init__(
        self,
        pooling: str = "token",
        *,
        num_prefix: int | None = None,
        num_heads: int | None = None,
        mlp_dim: int | None = None,
        gelu: str = "tanh",
        epsilon: AboveZero = 1e-6,
        over_prefix: Switch = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        names = [name for name, words in ELSEWHERE.items() if str(pooling) in words.split()]
        checks.one_of("pooling", pooling, POOLINGS, names)
        self.pooling = pooling
        self.check_prefix(num_prefix)
        if pooling in TOKEN_POOLINGS and num_prefix == 0:
            self._refuse_class_token(f"num_prefix={num_prefix}")
        if pooling == "map":
            if num_heads is None:
                raise ValueError("Pooling 'map' has heads: state `num_heads`, a divisor of the width. Received: None")
            checks.positive(num_heads=num_heads)
            if mlp_dim is not None:
                checks.positive(mlp_dim=mlp_dim)
        self.num_prefix = num_prefix
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.gelu = gelu
        self.epsilon = epsilon
        self.over_prefix = over_prefix

    @property
    def start(self):
        """The first token that the probe of `"map"` attends to."""
        return 0 if self.over_prefix else self.num_prefix

    def prefix_found(self, x):
        """Returns the number of prefix tokens in tokens, `(batch, tokens, width)`, as far as the pooling needs it."""
        symbolic = keras.utils.is_keras_tensor(x)
        if self.pooling in TOKEN_POOLINGS and symbolic and has_class_token(x) is False:
            self._refuse_class_token("tokens of a `PatchEncoder` without it")
        if self.pooling == "token" and not (symbolic and prefix_of(x)):
            return 1  # the class token is the first token
        return 0 if self.pooling in ("none", "last") else super().prefix_found(x)

    def _refuse_class_token(self, received):
        raise ValueError(f"pooling={self.pooling!r} needs a class token before the patches. Received: {received}")

    def build(self, input_shape):
        if (
            input_shape[1] is not None
            and input_shape[1] <= self.num_prefix
            and self.pooling in ("gap", "token+gap", "first", "last", "map")
        ):
            raise ValueError(
                "There must be patch tokens after the prefix. "
                f"Received: {input_shape[1]} tokens, num_prefix={self.num_prefix}"
            )
        if self.pooling != "map":
            return
        width = input_shape[-1]
        if width % self.num_heads:
            raise ValueError(f"A width of {width} cannot be split into {self.num_heads} heads: it must divide evenly.")
        dtype, probe_shape = self.dtype_policy, (input_shape[0], 1, width)
        self.probe = self.add_weight(name="probe", shape=(1, 1, width), initializer="glorot_uniform")
        self.attention = keras.layers.MultiHeadAttention(
            self.num_heads, width // self.num_heads, name="attention", dtype=dtype
        )
        self.attention.build(probe_shape, input_shape)
        self.norm = keras.layers.LayerNormalization(epsilon=self.epsilon, name="norm", dtype=dtype)
        self.norm.build(probe_shape)
        self.mlp = MLP(self.mlp_dim or 4 * width, gelu=self.gelu, name="mlp", dtype=dtype)
        self.mlp.build(probe_shape)

    def call(self, tokens):
        if self.pooling == "none":
            return tokens
        if self.pooling in ("gap", "token+gap"):
            mean = ops.mean(tokens[:, self.num_prefix :], axis=1)
            return mean if self.pooling == "gap" else ops.concatenate([ops.squeeze(tokens[:, :1], 1), mean], axis=-1)
        if self.pooling == "map":
            probe = ops.broadcast_to(ops.cast(self.probe, tokens.dtype), (ops.shape(tokens)[0], 1, tokens.shape[-1]))
            x = self.attention(probe, tokens[:, self.start :])  # (batch, 1, width)
            x = x + self.mlp(self.norm(x))
            return ops.squeeze(x, 1)
        n = self.num_prefix
        place = {"token": slice(0, 1), "first": slice(n, n + 1), "last": slice(-1, None)}[self.pooling]
        return ops.squeeze(tokens[:, place], 1)  # a slice and a reshape, which every runtime supports

    def compute_output_shape(self, input_shape):
        if self.pooling == "none":
            return tuple(input_shape)
        return input_shape[0], input_shape[-1] * (1 + (self.pooling == "token+gap"))

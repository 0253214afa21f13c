"""The Transformer encoder block."""

import inspect
from typing import Literal

import keras

from keras_vit.layers.attention.attention import MultiHeadSelfAttention
from keras_vit.layers.attention.with_scores import WithScores
from keras_vit.layers.blocks.layer_scale import LayerScale
from keras_vit.layers.blocks.mlp import GELUS, MLP
from keras_vit.layers.blocks.norms import WithNormOrder, norm
from keras_vit.layers.blocks.remat_layer import RematLayer
from keras_vit.layers.blocks.stochastic_depth import StochasticDepth
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Number, Rate, Switch, among


@keras.saving.register_keras_serializable(package="keras_vit")
class TransformerBlock(WithNormOrder, WithScores, RematLayer):
    """Transformer encoder block: self-attention, then an MLP, each on a residual branch.

    Dosovitskiy et al. 2021 (arXiv:2010.11929), equations 2 and 3. `vit`'s argument `block` takes `norm_order`,
    `parallel`, `qkv_bias`, `key_bias`, `proj_bias`, `qk_norm`, `gelu`, `swiglu`, `sub_norm`, `layer_scale` and
    `attention_dropout`.

    Args:
        num_heads: Number of attention heads; must divide the width.
        mlp_dim: Channels between the two dense layers of the MLP.
        norm_order: Position of the normalization in each branch: `"pre"`, `x + f(norm(x))`, as in ViT; `"post"`,
            `norm(x + f(x))`, as in the original Transformer (arXiv:1706.03762); or `"res-post"`, `x + norm(f(x))`, as
            in Swin V2 (Liu et al. 2022, arXiv:2111.09883, section 3.2).
        parallel: Whether attention and MLP are one branch, `x + attention(norm(x)) + mlp(norm(x))`, with one
            normalization, as in ViT-22B (Dehghani et al. 2023, arXiv:2302.05442, section 2.1).
        qkv_bias: Whether query, key and value have a bias.
        key_bias: Whether the key has a bias too; `False` for DINOv3. See `MultiHeadSelfAttention`.
        proj_bias: Whether the attention's projection and the MLP have biases.
        qk_norm: Whether query and key are normalized in each head.
        rotary: Arguments of `RotaryPositions` for queries and keys, or `None`.
        relative: Arguments of `RelativePositions` for the scores, or `None`.
        windows: Windows in which tokens attend to themselves alone, as in `MultiHeadSelfAttention`; or `None`.
        gelu: `"tanh"` (Google, big_vision), `"exact"` (timm, Hugging Face) or `"quick"` (OpenAI's CLIP); see `MLP`.
        swiglu: Whether the MLP is gated, as in DINOv2's giant; see `MLP`.
        sub_norm: Sublayers with a normalization before their last dense layer too: `"mlp"`, `"both"` (the attention
            too) or `None`. Wang et al. 2022 (arXiv:2210.06423); as in EVA-02 (arXiv:2303.11331).
        rms_norm: Whether all normalizations are RMS normalizations (arXiv:1910.07467); else layer normalizations.
        epsilon: Epsilon of the normalizations.
        dropout: Rate of the dropout after the attention's projection and in the MLP.
        attention_dropout: Rate of the dropout on the attention scores.
        stochastic_depth: Probability that a branch is dropped for an image.
        layer_scale: Initial value of a `LayerScale` on each branch; `None` for no `LayerScale`.

    Call arguments:
        x: Tensor of tokens.
        attention_mask: As in `MultiHeadSelfAttention`.
        use_causal_mask: As in `MultiHeadSelfAttention`.
        return_attention_scores: As in `MultiHeadSelfAttention`.
        training: Whether dropout and stochastic depth are on.
        scores_offset: As in `MultiHeadSelfAttention`.

    Input shape:
        `(batch, tokens, width)`.

    Output shape:
        `(batch, tokens, width)`, and with `return_attention_scores` also `(batch, heads, tokens, tokens)`.

    Raises:
        ValueError: For an argument outside its range.

    Example:

    >>> TransformerBlock(num_heads=4, mlp_dim=256)(keras.ops.zeros((2, 50, 64))).shape
    (2, 50, 64)
    """

    norm = staticmethod(norm)  # function that makes `norm1` and `norm2`

    def __init__(
        self,
        num_heads: int,
        mlp_dim: int,
        *,
        norm_order: Literal["pre", "post", "res-post"] = "pre",
        parallel: Switch = False,
        qkv_bias: Switch = True,
        key_bias: Switch = True,
        proj_bias: Switch = True,
        qk_norm: Switch = False,
        rotary: dict | None = None,
        relative: dict | None = None,
        windows: dict | None = None,
        gelu: among(GELUS) = "tanh",
        swiglu: Switch = False,
        sub_norm: Literal["mlp", "both"] | None = None,
        rms_norm: Switch = False,
        epsilon: AboveZero = 1e-6,
        dropout: Rate = 0.0,
        attention_dropout: Rate = 0.0,
        stochastic_depth: Rate = 0.0,
        layer_scale: Number | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        checks.heads_and_hidden(num_heads, mlp_dim)
        self.num_heads = num_heads
        self.mlp_dim = mlp_dim
        self.norm_order = norm_order
        self.parallel = parallel
        self.sub_norm = sub_norm
        self.qk_norm = qk_norm
        self.rms_norm = rms_norm
        self.epsilon = epsilon
        self.layer_scale = layer_scale
        self.qkv_bias = qkv_bias
        self.key_bias = key_bias
        self.proj_bias = proj_bias
        self.rotary = rotary
        self.relative = relative
        self.windows = windows
        self.gelu = gelu
        self.swiglu = swiglu
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.stochastic_depth = stochastic_depth

    def build(self, input_shape):
        dtype = self.dtype_policy
        norms = {"rms_norm": self.rms_norm, "epsilon": self.epsilon, "dtype": dtype}
        self.norm1 = self.norm("norm1", **norms)
        self.attention = MultiHeadSelfAttention(
            self.num_heads,
            qkv_bias=self.qkv_bias,
            key_bias=self.key_bias,
            proj_bias=self.proj_bias,
            qk_norm=self.qk_norm,
            rotary=self.rotary,
            relative=self.relative,
            windows=self.windows,
            inner_norm=self.sub_norm == "both",
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            name="attention",
            **norms,
        )
        self.norm2 = None if self.parallel else self.norm("norm2", **norms)
        self.mlp = MLP(
            self.mlp_dim,
            gelu=self.gelu,
            swiglu=self.swiglu,
            use_bias=self.proj_bias,
            inner_norm=self.sub_norm is not None,
            dropout=self.dropout,
            name="mlp",
            **norms,
        )
        self.path1 = StochasticDepth(self.stochastic_depth, name="path1", dtype=dtype)
        self.path2 = None if self.parallel else StochasticDepth(self.stochastic_depth, name="path2", dtype=dtype)
        self.scale1 = self.scale2 = keras.activations.linear  # identity
        layers = [self.norm1, self.attention, self.norm2, self.mlp, self.path1, self.path2]
        if self.layer_scale is not None:
            self.scale1 = LayerScale(self.layer_scale, name="scale1", dtype=dtype)
            self.scale2 = None if self.parallel else LayerScale(self.layer_scale, name="scale2", dtype=dtype)
            layers += [self.scale1, self.scale2]
        for layer in filter(None, layers):
            layer.build(input_shape)

    def call(
        self,
        x,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        scores_offset=None,
    ):
        normed = self.normed("pre", self.norm1, x, training)
        y = self.attention(
            normed,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            scores_offset=scores_offset,
        )
        y, *scores = y if return_attention_scores else (y,)
        y = y + self.mlp(normed, training=training) if self.parallel else y
        y = self.scale1(self.normed("res-post", self.norm1, y, training))
        x = self.normed("post", self.norm1, x + self.path1(y, training=training), training)  # equation 2
        if not self.parallel:
            y = self.mlp(self.normed("pre", self.norm2, x, training), training=training)
            y = self.scale2(self.normed("res-post", self.norm2, y, training))
            x = self.normed("post", self.norm2, x + self.path2(y, training=training), training)  # equation 3
        return (x, *scores) if return_attention_scores else x


OPTIONS = (
    "norm_order", "parallel", "qkv_bias", "key_bias", "proj_bias", "qk_norm", "gelu", "swiglu", "sub_norm",
    "layer_scale", "attention_dropout",
)  # fmt: skip
BLOCK = {name: inspect.signature(TransformerBlock).parameters[name].default for name in OPTIONS}  # of `vit`'s `block`

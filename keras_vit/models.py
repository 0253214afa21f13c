"""Vision Transformers as functional Keras models: one table, one function."""

import re
from typing import NamedTuple

import keras
import numpy as np

from keras_vit import checks
from keras_vit.layers import PatchEncoder, Patches, TokenPool, TransformerBlock
from keras_vit.layers.mlp import GELUS


class Variant(NamedTuple):
    """A size of encoder."""

    width: int
    depth: int
    mlp_dim: int
    num_heads: int
    source: str


VARIANTS = {
    #              width depth mlp_dim heads
    "mu": Variant(    32,    1,    128,    2, "big_vision, models/vit.py"),
    "Ti": Variant(   192,   12,    768,    3, "Touvron et al. 2021 (arXiv:2012.12877), table 1"),
    "S":  Variant(   384,   12,   1536,    6, "Touvron et al. 2021 (arXiv:2012.12877), table 1"),
    "M":  Variant(   512,   12,   2048,    8, "Touvron et al. 2022 (arXiv:2204.07118), table 2"),
    "B":  Variant(   768,   12,   3072,   12, "Dosovitskiy et al. 2021 (arXiv:2010.11929), table 1"),
    "L":  Variant(  1024,   24,   4096,   16, "Dosovitskiy et al. 2021 (arXiv:2010.11929), table 1"),
    "H":  Variant(  1280,   32,   5120,   16, "Dosovitskiy et al. 2021 (arXiv:2010.11929), table 1"),
    "g":  Variant(  1408,   40,   6144,   16, "Zhai et al. 2022 (arXiv:2106.04560), table 2"),
    "G":  Variant(  1664,   48,   8192,   16, "Zhai et al. 2022 (arXiv:2106.04560), table 2"),
}  # fmt: skip

PATCH_SIZES = {"mu": (2, 4, 16), "H": (14,), "g": (14,), "G": (14,)}  # published ones; the others: 8, 16, 32


def vit(
    variant="B/16",
    *,
    image_size=224,
    channels=3,
    num_classes=1000,
    pooling="token",
    class_token=None,
    distilled=False,
    registers=0,
    position="learned",
    class_position=True,
    representation_size=None,
    dropout=0.0,
    attention_dropout=0.0,
    stochastic_depth=0.0,
    layer_scale=None,
    qkv_bias=True,
    qk_norm=False,
    gelu="tanh",
    epsilon=1e-6,
    mean=0.5,
    std=0.5,
    width=None,
    depth=None,
    mlp_dim=None,
    num_heads=None,
    patch_size=None,
    name=None,
    dtype=None,
):
    """Builds a Vision Transformer: pixels in, logits out.

    Dosovitskiy et al. 2021 (arXiv:2010.11929). Layers are called `images, rescale, patches, encoder,
    block_0 ..., norm, pool, [pre_logits], head`; their names and weight paths are public.

    Args:
        variant: A row of `VARIANTS` and a patch size, such as `"B/16"` or `"Ti/4"`; or `None`, and
            `width`, `depth`, `num_heads` and `patch_size` are given.
        image_size: Positive integer or `(height, width)`, in pixels; the patch size divides it.
        channels: Colour channels of the images.
        num_classes: Number of logits; 0 or `None` for a model without a head, which returns the pooled vector.
        pooling: `"token"`, `"gap"`, `"first"`, `"last"`, `"map"` or `"none"`; see `TokenPool`.
        class_token: Whether there is a class token; `None` for only where `pooling` is `"token"`.
        distilled: DeiT's second token with a head of its own, `head_distilled`; the logits are averaged.
        registers: Number of register tokens.
        position: `"learned"`, `"sincos1d"`, `"sincos2d"` or `None`; see `PatchEncoder`.
        class_position: Whether positions cover the prefix tokens too.
        representation_size: Channels of a tanh layer `pre_logits` before the head; `True` for the width.
        dropout: Rate after positions, attention projections and dense layers.
        attention_dropout: Rate on attention scores.
        stochastic_depth: Drop rate of the last block; it grows linearly from 0 at the first.
        layer_scale: Initial value of layer scale, or `None` for none.
        qkv_bias: Whether query, key and value have a bias.
        qk_norm: Whether query and key are normalised in each head.
        gelu: `"tanh"` (Google, big_vision) or `"exact"` (timm, Hugging Face).
        epsilon: Of every layer normalisation.
        mean: Mean of the pixels on a scale of 0 to 1, a number or one a channel, taken off by the first layer.
        std: Standard deviation likewise, by which the first layer divides.
        width: Channels of a token; overrides the variant's.
        depth: Number of blocks; overrides the variant's.
        mlp_dim: Hidden channels of a block's MLP; overrides the variant's; four times the width without a variant.
        num_heads: Number of attention heads, a divisor of the width; overrides the variant's.
        patch_size: Integer or `(height, width)`; overrides the variant's.
        name: Name of the model; made of the variant if `None`.
        dtype: Precision policy of every layer, such as `"mixed_bfloat16"`; Keras's global one if `None`.
            Logits are float32 under any.

    Returns:
        A functional `keras.Model` from `(batch, height, width, channels)`, pixels from 0 to 255, integers or
        floats, to `(batch, num_classes)` logits, float32; with pooling `"none"`, logits of each token.

    Raises:
        ValueError: For an unknown variant or an argument outside the above.

    Example:

    >>> vit("Ti/4", image_size=32, num_classes=10)(keras.ops.zeros((2, 32, 32, 3))).shape
    (2, 10)
    """
    row, patch_size = _row(variant, patch_size)
    given = {"width": width, "depth": depth, "mlp_dim": mlp_dim, "num_heads": num_heads}
    sizes = row._asdict() | {name: value for name, value in given.items() if value is not None}
    width, depth, num_heads = sizes["width"], sizes["depth"], sizes["num_heads"]
    checks.positive(width=width, depth=depth, num_heads=num_heads, channels=channels)
    mlp_dim = 4 * width if sizes["mlp_dim"] is None else sizes["mlp_dim"]
    checks.positive(mlp_dim=mlp_dim)
    checks.above_zero(epsilon=epsilon, **({} if layer_scale is None else {"layer_scale": layer_scale}))
    checks.rate(dropout=dropout, attention_dropout=attention_dropout, stochastic_depth=stochastic_depth)
    checks.one_of("gelu", gelu, GELUS)
    if num_classes:
        checks.positive(num_classes=num_classes)
    if distilled and pooling != "token":
        raise ValueError(f"A distilled model pools by its tokens: pooling='token'. Received: pooling={pooling!r}")
    if width % num_heads:
        raise ValueError(f"A width of {width} cannot be split into {num_heads} heads: it must divide evenly.")
    class_token = pooling == "token" if class_token is None else bool(class_token)
    if pooling == "token" and not class_token:
        raise ValueError("pooling='token' needs the class token. Received: class_token=False")
    height_width = checks.pair("image_size", image_size)
    dtype = keras.dtype_policies.get(dtype)
    norm = {"epsilon": epsilon, "dtype": dtype}

    inputs = keras.Input((*height_width, channels), name="images")
    patches = Patches(patch_size, name="patches", dtype=dtype)
    encoder = PatchEncoder(
        width,
        class_token=class_token,
        distillation_token=distilled,
        registers=registers,
        position=position,
        class_position=class_position,
        grid=patches.grid(inputs.shape),
        dropout=dropout,
        name="encoder",
        dtype=dtype,
    )
    x = _rescaling(mean, std, channels)(inputs)  # (batch, height, width, channels)
    x = encoder(patches(x))  # (batch, tokens, width)
    for i in range(depth):
        x = TransformerBlock(
            num_heads,
            mlp_dim,
            qkv_bias=qkv_bias,
            qk_norm=qk_norm,
            gelu=gelu,
            dropout=dropout,
            attention_dropout=attention_dropout,
            stochastic_depth=stochastic_depth * i / max(depth - 1, 1),
            layer_scale=layer_scale,
            name=f"block_{i}",
            **norm,
        )(x)
    x = keras.layers.LayerNormalization(name="norm", **norm)(x)
    pooled = TokenPool(
        pooling, num_prefix=encoder.num_prefix, num_heads=num_heads, mlp_dim=mlp_dim, gelu=gelu, name="pool", **norm
    )(x)  # (batch, width)
    if representation_size:
        size = width if representation_size is True else representation_size
        pooled = keras.layers.Dense(size, activation="tanh", name="pre_logits", dtype=dtype)(pooled)
    outputs = _head(pooled, num_classes, "head") if num_classes else pooled
    if num_classes and distilled:
        second = TokenPool("first", num_prefix=1, name="pool_distilled", dtype=dtype)(
            x
        )  # the token after the class token
        outputs = keras.layers.Average(name="logits", dtype="float32")(
            [outputs, _head(second, num_classes, "head_distilled")]
        )
    patch_name = "x".join(map(str, dict.fromkeys(patches.patch_size)))  # one number where both are the same
    size = "custom" if variant is None else str(variant).partition("/")[0]
    model = keras.Model(inputs, outputs, name=name or f"vit_{size}_{patch_name}")
    model.dtype_policy = dtype  # by which `compile` knows that float16 needs its loss scaled
    return model


def _row(variant, patch_size):
    """Returns the row of the table and the patch size that a name like "B/16" stands for."""
    if variant is None:
        if patch_size is None:
            raise ValueError("Without a variant, `patch_size` is needed. Received: patch_size=None")
        return Variant(None, None, None, None, "custom"), patch_size
    match = re.fullmatch(r"([A-Za-z]+)(?:/([1-9]\d*))?", str(variant))
    if not match or match[1] not in VARIANTS or (match[2] is None and patch_size is None):
        known = [f"{row}/{patch}" for row in VARIANTS for patch in PATCH_SIZES.get(row, (8, 16, 32))]
        raise ValueError(
            f"A variant is a size and a patch size, such as 'B/16'. Received: {variant!r}. "
            f"{checks.near(variant, known)}"
        )
    return VARIANTS[match[1]], int(match[2]) if patch_size is None else patch_size


def _rescaling(mean, std, channels):
    """Returns the layer that takes pixels 0..255 to (pixel / 255 - mean) / std, in float32."""
    means, stds = (np.asarray(value, "float64") for value in (mean, std))
    for name, values in (("mean", means), ("std", stds)):
        if values.shape not in ((), (channels,)):
            raise ValueError(
                f"`{name}` is a number or one for each of {channels} channels. Received: {values.tolist()}"
            )
    if not (stds > 0).all():
        raise ValueError(f"`std` is above 0. Received: std={stds.tolist()}")
    scale, offset = (1 / (255 * stds) + 0 * means).tolist(), (-means / stds).tolist()
    return keras.layers.Rescaling(scale, offset, name="rescale", dtype="float32")


def _head(x, num_classes, name):
    return keras.layers.Dense(num_classes, kernel_initializer="zeros", name=name, dtype="float32")(x)

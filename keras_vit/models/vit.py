"""The Vision Transformer as a functional Keras model."""

import inspect
from collections.abc import Sequence
from typing import Literal

import keras

from keras_vit.layers import PatchEncoder, Patches, Positions, Rescale, TokenPool, TransformerBlock
from keras_vit.layers.attention.rotary import rotary_options
from keras_vit.layers.attention.windows import windows_of_blocks
from keras_vit.layers.blocks.norms import norm as norm_layer
from keras_vit.layers.functional import Model
from keras_vit.layers.heads.token_pool import TOKEN_POOLINGS
from keras_vit.layers.inputs.patch_dropout import dropout_of
from keras_vit.layers.inputs.stems import patch_size_on, stem_for
from keras_vit.models import options, variants
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Rate, Whole, typed


@typed
@options.explained
def vit(
    variant: str | None = "B/16",
    *,
    image_size: int | tuple[int, int] = 224,
    channels: Positive = 3,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    value_range: Sequence[float] = (0, 255),
    stem: str | Sequence[tuple[int | str, ...]] | keras.Layer | None = None,
    patch_size: int | tuple[int, int] | None = None,
    width: int | None = None,
    depth: int | None = None,
    num_heads: int | None = None,
    mlp_dim: int | None = None,
    tokens: dict | None = None,
    position: str | None = "learned",
    rotary: str | dict | None = None,
    norm: dict | None = None,
    block: dict | None = None,
    dropout: float = 0.0,
    stochastic_depth: Rate = 0.0,
    patch_dropout: Rate = 0.0,
    pooling: str = "token",
    pool: dict | None = None,
    final_norm: Literal["before", "after"] | None = "before",
    representation_size: int | bool | None = None,
    num_classes: Whole | None = 1000,
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds a Vision Transformer: pixels in, logits out.

    Dosovitskiy et al. 2021 (arXiv:2010.11929). The layers are called `images, rescale, [stem], patches, encoder,
    [norm_pre], block_0, block_1, ..., [norm], pool, [norm], [pre_logits], head`. Their names and weight paths are
    public.

    Args:
        variant: Row of `VARIANTS` with a patch size, such as `"B/16"` or `"Ti/4"`; row of `HYBRIDS`, such as
            `"R50+L/32"`; or `None`, which needs `width`, `depth`, `num_heads` and `patch_size`.
        image_size: Size of the images in pixels: positive integer or `(height, width)`, a multiple of the patch size.
            Defaults to `224`.
        channels: Number of color channels. Defaults to `3`.
        mean: Mean of the pixels on a scale of 0 to 1, a number or one per channel. The first layer subtracts it.
            Defaults to `0.5`.
        std: Standard deviation on the same scale, by which the first layer divides. Defaults to `0.5`.
        value_range: The lowest and the highest pixel, which are 0 and 1 on that scale, such as `(0, 4095)` for scans of
            12 bits; or such a pair for each channel, beyond which pixels are clipped. Defaults to `(0, 255)`.
        stem: Convolutional stem applied before patching: a Keras layer or model that returns a feature map
            `(batch, rows, columns, channels)`, such as `ResNetStem()` or a `keras.applications` network up to one of
            its layers; `"conv"` for a `ConvStem` that ends at the width; or `(filters, stride)` pairs for a
            `ConvStem`, such as `((32, 1), (64, 2))`, whose strides may be words; a third number, as in `((32, 1, 2),
            (64, 2))`, counts the convolutions of a residual branch that follows. The number in the variant's name
            remains the stride of patches in pixels: `"S/16"` with a stem of stride 16 has patches of size 1. Defaults
            to `None`.
        patch_size: Integer or `(height, width)`; overrides the variant's. After a stem, it counts on the feature map.
            Defaults to `None`.
        width: Channels of a token; overrides the variant's. Defaults to `None`.
        depth: Number of blocks; overrides the variant's. Defaults to `None`.
        num_heads: Number of attention heads, a divisor of the width; overrides the variant's. Defaults to `None`.
        mlp_dim: Hidden channels of each MLP; overrides the variant's, or four times the width without a variant.
            Defaults to `None`.
        tokens: Options of tokens, a dictionary; see below. Defaults to `None`.
        position: Positions: `"learned"`, `"sincos1d"`, `"sincos2d"` or `None`, see `PatchEncoder`; or `"relative"`, as
            in BEiT, see `RelativePositions`. Defaults to `"learned"`.
        rotary: Rotary positions, in addition to `position`: `"dinov3"`, `"eva02"`, `"rope-vit"`, `"rope-vit-mixed"`,
            or a dictionary with options of `RotaryPositions`. DINOv3 has `position=None`. Defaults to `None`.
        norm: Options of every normalization, a dictionary; see below. Defaults to `None`.
        block: Options of every block that are not sizes, a dictionary, such as `{"gelu": "exact", "layer_scale":
            1e-5}`; see `TransformerBlock`. Defaults to `None`.
        dropout: Dropout rate after positions, attention projections and the dense layers of MLPs. Defaults to `0.0`.
        stochastic_depth: Drop rate of the last block; it grows linearly from 0 at the first. Defaults to `0.0`.
        patch_dropout: Share of the patches that are left out at random in training, which makes steps shorter; see
            `PatchDropout`. Defaults to `0.0`.
        pooling: `"token"`, `"gap"`, `"token+gap"`, `"first"`, `"last"`, `"map"` or `"none"`; see `TokenPool`. Defaults
            to `"token"`.
        pool: Options of pooling `"map"` where they are not the blocks', a dictionary with `num_heads`, `mlp_dim` or
            `over_prefix`; see `TokenPool`. Defaults to `None`.
        final_norm: Where the last normalization is: `"before"` pooling (Google, big_vision), `"after"` pooling
            (timm's average pooling), or `None` for nowhere. Defaults to `"before"`.
        representation_size: Channels of a tanh layer `pre_logits` before the head; `True` for the width. Defaults to
            `None`.
        num_classes: Number of logits; 0 or `None` for a model without a head, which returns the pooled vector.
            Defaults to `1000`.
        metadata: Dictionary of plain values that is saved with the model; see `Rescale`. Defaults to `None`.
        name: Name of the model; `None` derives it from the variant. Defaults to `None`.
        dtype: Precision policy of every layer, such as `"mixed_bfloat16"`; `None` for Keras's global policy. Logits
            are always float32. Defaults to `None`.

    Options of tokens:
        class_token: Whether to add a class token; `None` adds one if `pooling` needs it. Defaults to `None`.
        distilled: Whether to add DeiT's distillation token, with its own head `head_distilled`. The model returns the
            average of both logits. To train each head on its own target, use `keras.Model(model.input,
            [model.get_layer(n).output for n in ("head", "head_distilled")])`, which shares all weights. Defaults to
            `False`.
        registers: Number of register tokens. Defaults to `0`.
        class_position: Whether prefix tokens have positions too. Defaults to `True`.
        block_positions: Whether learned positions are added before each later block too, as in YOLOS; see `Positions`.
            Defaults to `False`.
        patch_norm: Whether to normalize projected patches before positions are added, as AIMv2 does. Defaults to
            `False`.
        pre_norm: Whether to normalize tokens before the first block, as CLIP does. The patch projection then has no
            bias. Defaults to `False`.
        windows: Number of windows a side into which the grid is cut; tokens attend to those of their own window, each
            of which has a copy of the prefix tokens, as in RF-DETR (arXiv:2511.09554). Defaults to `1`.
        whole_blocks: Numbers of the blocks, from 0, in which all tokens attend to all. Defaults to `()`.

    Options of normalizations:
        rms_norm: Whether they are by the root mean square, without a mean and a shift, as in AIMv2; not that of pooling
            `"map"`. Defaults to `False`.
        epsilon: Added to the variance. Defaults to `1e-6`.

    Returns:
        A functional `keras.Model` from `(batch, height, width, channels)`, pixels from 0 to 255, integers or
        floats, to `(batch, num_classes)` logits, float32; with pooling `"none"`, logits of each token.

    Raises:
        TypeError: For an unknown argument. The message says which one is meant.
        ValueError: For an unknown variant, or an argument outside the above.

    Example:

    >>> vit("Ti/4", image_size=32, num_classes=10)(keras.ops.zeros((2, 32, 32, 3))).shape
    (2, 10)
    """
    sizes = variants.sizes_of(variant, patch_size, width=width, depth=depth, mlp_dim=mlp_dim, num_heads=num_heads)
    tokens, norm = options.complete("tokens", tokens), options.complete("norm", norm)
    block, pool = options.complete("block", block), options.complete("pool", pool)
    if tokens["class_token"] is None:
        tokens["class_token"] = pooling in TOKEN_POOLINGS
    height_width = checks.pair("image_size", image_size)
    checks.switch(**{name: tokens[name] for name in ("distilled", "pre_norm", "block_positions")})
    checks.above_zero(layer_scale=1.0 if block["layer_scale"] is None else block["layer_scale"])
    if pooling in TOKEN_POOLINGS and not tokens["class_token"]:
        raise ValueError(f"pooling={pooling!r} needs the class token. Received: class_token={tokens['class_token']!r}")
    poolings = ("token",) if num_classes else ("token", "none")
    if tokens["distilled"] and (final_norm == "after" or pooling not in poolings):
        raise ValueError(
            "A distilled model needs pooling='token' and the final norm before it. "
            f"Received: pooling={pooling!r}, final_norm={final_norm!r}"
        )
    dtype = keras.dtype_policies.get(dtype)
    norm = {**norm, "dtype": dtype}
    for part, size in {"num_heads": sizes.num_heads, "mlp_dim": sizes.mlp_dim}.items():
        pool[part] = size if pool[part] is None else pool[part]

    inputs = keras.Input((*height_width, channels), name="images")
    x = Rescale(mean, std, metadata, value_range, name="rescale", dtype="float32")(inputs)
    stem = stem_for(stem, sizes, dtype)
    x = x if stem is None else stem(x)  # (batch, rows, columns, channels)

    patch_size = sizes.patch_size or patch_size_on(x.shape, height_width, sizes.stride)
    patches = Patches(patch_size, name="patches", dtype=dtype)
    encoder = PatchEncoder(
        sizes.width,
        class_token=tokens["class_token"],
        distillation_token=tokens["distilled"],
        registers=tokens["registers"],
        position=None if position == "relative" else position,
        class_position=tokens["class_position"],
        grid=patches.grid(x.shape),
        use_bias=not tokens["pre_norm"],
        patch_norm=tokens["patch_norm"],
        dropout=dropout,
        windows=tokens["windows"],
        name="encoder",
        **norm,
    )
    x = encoder(patches(x))  # (batch, tokens, width)
    places = {"grid": encoder.grid, "num_prefix": encoder.num_prefix}
    block |= {"relative": places if position == "relative" else None, "dropout": dropout, **norm}
    block["rotary"] = None if rotary is None else {**rotary_options(rotary), **places}
    windows = windows_of_blocks(tokens["windows"], tokens["whole_blocks"], sizes.depth, places)
    if patch_dropout:
        positions = {"rotary": rotary, "position": position, "block_positions": tokens["block_positions"]}
        x = dropout_of(patch_dropout, encoder, pooling=pooling, **positions)(x)
    x = norm_layer("norm_pre", **norm)(x) if tokens["pre_norm"] else x

    for i in range(sizes.depth):  # (batch, tokens, width)
        x = Positions(name=f"position_{i}", dtype=dtype)(x) if tokens["block_positions"] and i else x
        rate = stochastic_depth * i / max(sizes.depth - 1, 1)
        of_block = {**block, "windows": windows[i], "stochastic_depth": rate, "name": f"block_{i}"}
        x = TransformerBlock(sizes.num_heads, sizes.mlp_dim, **of_block)(x)

    x = norm_layer("norm", **norm)(x) if final_norm == "before" else x
    pool = {**pool, "gelu": block["gelu"], "epsilon": norm["epsilon"], "dtype": dtype}
    pooled = TokenPool(pooling, num_prefix=encoder.num_prefix, name="pool", **pool)(x)  # (batch, width)
    pooled = norm_layer("norm", **norm)(pooled) if final_norm == "after" else pooled
    if not isinstance(representation_size, (bool, type(None))):
        checks.whole(representation_size=representation_size)
    if representation_size:
        size = sizes.width if representation_size is True else representation_size
        pooled = keras.layers.Dense(size, activation="tanh", name="pre_logits", dtype=dtype)(pooled)

    outputs = _head(num_classes, "head")(pooled) if num_classes else pooled  # (batch, classes)
    if num_classes and tokens["distilled"]:
        second = TokenPool("first", num_prefix=1, name="pool_distilled", dtype=dtype)(x)  # the distillation token
        second = _head(num_classes, "head_distilled")(second)
        outputs = keras.layers.Average(name="logits", dtype="float32")([outputs, second])

    return Model(inputs, outputs, name=name or sizes.name)


def _head(num_classes, name):
    return keras.layers.Dense(num_classes, kernel_initializer="zeros", name=name, dtype="float32")


# Of every argument, and of every option in one.
DEFAULTS = {name: options.OPTIONS.get(name, each.default) for name, each in inspect.signature(vit).parameters.items()}

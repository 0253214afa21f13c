"""The Vision Transformer as a functional Keras model."""

import inspect
from collections.abc import Sequence

import keras

from keras_vit.layers import PatchEncoder, Patches, Positions, Rescale, TokenPool, TransformerBlock
from keras_vit.layers.attention.rotary import rotary_options
from keras_vit.layers.blocks.norms import norm
from keras_vit.layers.functional import Model
from keras_vit.layers.heads.token_pool import OF_CLASS_TOKEN, OWN_OPTIONS
from keras_vit.layers.inputs.patch_dropout import dropout_of
from keras_vit.layers.inputs.stems import patch_size_on, stem_for
from keras_vit.models import variants
from keras_vit.utils import checks


@checks.plain_arguments
def vit(
    variant: str | None = "B/16",
    *,
    # images
    image_size: int | tuple[int, int] = 224,
    channels: int = 3,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    value_range: Sequence[float] = (0, 255),
    # tokens
    stem: str | Sequence[tuple[int | str, ...]] | keras.Layer | None = None,
    patch_size: int | tuple[int, int] | None = None,
    class_token: bool | None = None,
    distilled: bool = False,
    registers: int = 0,
    position: str | None = "learned",
    class_position: bool = True,
    block_positions: bool = False,
    rotary: str | dict | None = None,
    patch_norm: bool = False,
    pre_norm: bool = False,
    patch_dropout: float = 0.0,
    # blocks
    width: int | None = None,
    depth: int | None = None,
    num_heads: int | None = None,
    mlp_dim: int | None = None,
    qkv_bias: bool = True,
    key_bias: bool = True,
    proj_bias: bool = True,
    qk_norm: bool = False,
    gelu: str = "tanh",
    swiglu: bool = False,
    sub_norm: str | None = None,
    branch_norm: bool = False,
    rms_norm: bool = False,
    epsilon: float = 1e-6,
    layer_scale: float | None = None,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    stochastic_depth: float = 0.0,
    # logits
    pooling: str = "token",
    attention_pool: dict | None = None,
    final_norm: str | None = "before",
    representation_size: int | bool | None = None,
    num_classes: int | None = 1000,
    # the model
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds a Vision Transformer with random weights, as figure 1 of the ViT paper shows it.

    Dosovitskiy et al. 2021 (arXiv:2010.11929). `keras_vit.vit` is this function with the argument `weights`; its
    docstring explains all arguments. Layer names and weight paths are public.

    Example:

    >>> vit("Ti/4", image_size=32, num_classes=10)(keras.ops.zeros((2, 32, 32, 3))).shape
    (2, 10)
    """
    plan = variants.plan(variant, patch_size, width=width, depth=depth, mlp_dim=mlp_dim, num_heads=num_heads)
    height_width = checks.pair("image_size", image_size)
    class_token = pooling in OF_CLASS_TOKEN if class_token is None else class_token
    checks.positive(channels=channels)
    if num_classes is not None:
        checks.whole(num_classes=num_classes)
    checks.switch(distilled=distilled, pre_norm=pre_norm, block_positions=block_positions)
    checks.rate(stochastic_depth=stochastic_depth, patch_dropout=patch_dropout)
    checks.above_zero(layer_scale=1.0 if layer_scale is None else layer_scale)
    checks.one_of("final_norm", final_norm, ("before", "after", None))
    checks.options("attention_pool", attention_pool or {}, OWN_OPTIONS)
    if pooling in OF_CLASS_TOKEN and not class_token:
        raise ValueError(f"pooling={pooling!r} needs the class token. Received: class_token={class_token!r}")
    if distilled and (pooling != "token" or final_norm == "after"):
        raise ValueError(
            "A distilled model needs pooling='token' and the final norm before it. "
            f"Received: pooling={pooling!r}, final_norm={final_norm!r}"
        )
    dtype = keras.dtype_policies.get(dtype)
    norms = {"rms_norm": rms_norm, "epsilon": epsilon, "dtype": dtype}

    inputs = keras.Input((*height_width, channels), name="images")
    rescale = Rescale(mean, std, metadata, value_range, name="rescale", dtype="float32")
    x = rescale(inputs)  # (batch, height, width, channels)
    stem = stem_for(stem, plan, dtype)
    x = x if stem is None else stem(x)  # (batch, rows, columns, channels)

    patches = Patches(plan.patch_size or patch_size_on(x.shape, height_width, plan.stride), name="patches", dtype=dtype)
    encoder = PatchEncoder(
        plan.width,
        class_token=class_token,
        distillation_token=distilled,
        registers=registers,
        position=None if position == "relative" else position,
        class_position=class_position,
        grid=patches.grid(x.shape),
        use_bias=not pre_norm,
        patch_norm=patch_norm,
        dropout=dropout,
        name="encoder",
        **norms,
    )
    x = encoder(patches(x))  # (batch, tokens, width)
    if patch_dropout:
        given = {"rotary": rotary, "position": position, "block_positions": block_positions, "pooling": pooling}
        x = dropout_of(patch_dropout, encoder, **given)(x)
    if rotary is not None:
        rotary = {**rotary_options(rotary), "grid": encoder.grid, "num_prefix": encoder.num_prefix}
    relative = {"grid": encoder.grid, "num_prefix": encoder.num_prefix} if position == "relative" else None
    x = norm("norm_pre", **norms)(x) if pre_norm else x

    for i in range(plan.depth):
        x = Positions(name=f"position_{i}", dtype=dtype)(x) if block_positions and i else x
        x = TransformerBlock(
            plan.num_heads,
            plan.mlp_dim,
            qkv_bias=qkv_bias,
            key_bias=key_bias,
            proj_bias=proj_bias,
            qk_norm=qk_norm,
            rotary=rotary,
            relative=relative,
            gelu=gelu,
            swiglu=swiglu,
            sub_norm=sub_norm,
            branch_norm=branch_norm,
            dropout=dropout,
            attention_dropout=attention_dropout,
            stochastic_depth=stochastic_depth * i / max(plan.depth - 1, 1),
            layer_scale=layer_scale,
            name=f"block_{i}",
            **norms,
        )(x)  # (batch, tokens, width)

    x = norm("norm", **norms)(x) if final_norm == "before" else x
    pool = {"num_heads": plan.num_heads, "mlp_dim": plan.mlp_dim, "gelu": gelu, **(attention_pool or {})}
    pool |= {"epsilon": epsilon, "dtype": dtype, "name": "pool"}
    pooled = TokenPool(pooling, num_prefix=encoder.num_prefix, **pool)(x)  # (batch, width)
    pooled = norm("norm", **norms)(pooled) if final_norm == "after" else pooled
    if representation_size:
        size = plan.width if representation_size is True else representation_size
        pooled = keras.layers.Dense(size, activation="tanh", name="pre_logits", dtype=dtype)(pooled)

    outputs = _head(num_classes, "head")(pooled) if num_classes else pooled  # (batch, classes)
    if num_classes and distilled:
        second = TokenPool("first", num_prefix=1, name="pool_distilled", dtype=dtype)(x)  # the distillation token
        second = _head(num_classes, "head_distilled")(second)
        outputs = keras.layers.Average(name="logits", dtype="float32")([outputs, second])

    return Model(inputs, outputs, name=name or plan.name)


def _head(num_classes, name):
    return keras.layers.Dense(num_classes, kernel_initializer="zeros", name=name, dtype="float32")


DEFAULTS = {argument: parameter.default for argument, parameter in inspect.signature(vit).parameters.items()}

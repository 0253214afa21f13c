"""Vision Transformers as functional Keras models: one function."""

import math

import keras

from keras_vit import checks, variants
from keras_vit.layers import ConvStem, PatchEncoder, Patches, Rescale, ResNetStem, TokenPool, TransformerBlock
from keras_vit.layers.mlp import GELUS

FINAL_NORMS = ("before", "after", None)


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
    swiglu=False,
    epsilon=1e-6,
    pre_norm=False,
    final_norm="before",
    mean=0.5,
    std=0.5,
    stem=None,
    width=None,
    depth=None,
    mlp_dim=None,
    num_heads=None,
    patch_size=None,
    metadata=None,
    name=None,
    dtype=None,
):
    """Builds a Vision Transformer: pixels in, logits out.

    Dosovitskiy et al. 2021 (arXiv:2010.11929). Layers are called `images, rescale, [stem], patches, encoder,
    [norm_pre], block_0 ..., norm, pool, [pre_logits], head`; their names and weight paths are public.

    Args:
        variant: A row of `VARIANTS` and a patch size, such as `"B/16"` or `"Ti/4"`; a row of `HYBRIDS`, such as
            `"R50+L/32"`; or `None`, and `width`, `depth`, `num_heads` and `patch_size` are given.
        image_size: Positive integer or `(height, width)`, in pixels; the patch size divides it.
        channels: Colour channels of the images.
        num_classes: Number of logits; 0 or `None` for a model without a head, which returns the pooled vector.
        pooling: `"token"`, `"gap"`, `"first"`, `"last"`, `"map"` or `"none"`; see `TokenPool`.
        class_token: Whether there is a class token; `None` for only where `pooling` is `"token"`.
        distilled: DeiT's second token with a head of its own, `head_distilled`; the logits are averaged. To train each
            head on its own target, `keras.Model(model.input, [model.get_layer(n).output for n in ("head",
            "head_distilled")])` shares all weights.
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
        gelu: `"tanh"` (Google, big_vision), `"exact"` (timm, Hugging Face) or `"quick"` (OpenAI's CLIP).
        swiglu: Whether a gated MLP stands in place of the GELU's, as in DINOv2's giant; see `MLP`.
        epsilon: Of every layer normalisation.
        pre_norm: CLIP's normalisation before the first block; the projection of patches has no bias then.
        final_norm: Whether the last normalisation comes `"before"` the pooling (Google, big_vision) or `"after"`
            (timm's average pooling); `None` for none.
        mean: Mean of the pixels on a scale of 0 to 1, a number or one a channel, taken off by the first layer.
        std: Standard deviation likewise, by which the first layer divides.
        stem: What makes a map of the rescaled images, of which patches are cut: a Keras layer or model with an output
            `(batch, rows, columns, channels)`, such as `ResNetStem()` or a `keras.applications` network up to one of
            its layers; or `"conv"`, a `ConvStem` that ends at the width, or that of given `(filters, stride)` pairs,
            such as `((32, 1), (64, 2))`. The number in a variant's name stays the
            stride of patches in pixels, so that `"S/16"` with a stem of stride 16 has patches of 1; `patch_size`
            counts on the map.
        width: Channels of a token; overrides the variant's.
        depth: Number of blocks; overrides the variant's.
        mlp_dim: Hidden channels of a block's MLP; overrides the variant's; four times the width without a variant.
        num_heads: Number of attention heads, a divisor of the width; overrides the variant's.
        patch_size: Integer or `(height, width)`; overrides the variant's.
        metadata: Dictionary of plain values that travels with the model; see `Rescale`.
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
    row, number, hybrid = variants.parse(variant)
    if patch_size is None and number is None and hybrid is None:
        if variant is None:
            raise ValueError("Without a variant, `patch_size` is needed. Received: patch_size=None")
        raise variants.unknown(variant)
    given = {"width": width, "depth": depth, "mlp_dim": mlp_dim, "num_heads": num_heads}
    sizes = row._asdict() | {name: value for name, value in given.items() if value is not None}
    width, depth, num_heads = sizes["width"], sizes["depth"], sizes["num_heads"]
    checks.positive(width=width, depth=depth, num_heads=num_heads, channels=channels)
    if depth > variants.MAX_BLOCKS:
        raise ValueError(f"A model has at most {variants.MAX_BLOCKS} blocks. Received: depth={depth}")
    mlp_dim = 4 * width if sizes["mlp_dim"] is None else sizes["mlp_dim"]
    checks.positive(mlp_dim=mlp_dim)
    checks.above_zero(epsilon=epsilon, **({} if layer_scale is None else {"layer_scale": layer_scale}))
    checks.switch(distilled=distilled, class_position=class_position, qkv_bias=qkv_bias, qk_norm=qk_norm)
    checks.switch(swiglu=swiglu, pre_norm=pre_norm, **({} if class_token is None else {"class_token": class_token}))
    checks.rate(dropout=dropout, attention_dropout=attention_dropout, stochastic_depth=stochastic_depth)
    checks.one_of("gelu", gelu, GELUS)
    if num_classes not in (0, None):
        checks.positive(num_classes=num_classes)
    checks.one_of("final_norm", final_norm, FINAL_NORMS)
    if distilled and (pooling != "token" or final_norm == "after"):
        raise ValueError(
            "A distilled model pools by its tokens, after the norm: pooling='token', final_norm='before'. "
            f"Received: pooling={pooling!r}, final_norm={final_norm!r}"
        )
    if width % num_heads:
        raise ValueError(f"A width of {width} cannot be split into {num_heads} heads: it must divide evenly.")
    class_token = pooling == "token" if class_token is None else bool(class_token)
    if pooling == "token" and not class_token:
        raise ValueError("pooling='token' needs the class token. Received: class_token=False")
    height_width = checks.pair("image_size", image_size)
    dtype = keras.dtype_policies.get(dtype)
    norm = {"epsilon": epsilon, "dtype": dtype}

    inputs = keras.Input((*height_width, channels), name="images")
    x = Rescale(mean, std, metadata, name="rescale", dtype="float32")(inputs)  # (batch, height, width, channels)
    if hybrid and stem is None:
        stem = ResNetStem(hybrid.stages, name="stem", dtype=dtype)
    if stem is not None:
        x = _stem(stem, width, number, dtype)(x)  # (batch, rows, columns, channels)
        if len(x.shape) != 4 or None in x.shape[1:]:
            raise ValueError(f"A stem gives (batch, rows, columns, channels). Received: output shape {tuple(x.shape)}")
    tag = (variant or "custom").replace("+", "_").replace("/", "_")
    if patch_size is not None:
        tag = f"{tag.partition('_')[0]}_{'x'.join(map(str, dict.fromkeys(checks.pair('patch_size', patch_size))))}"
    else:
        patch_size = hybrid.patch_size if hybrid else _on_map(number, height_width, x.shape[1:3])
    patches = Patches(patch_size, name="patches", dtype=dtype)
    encoder = PatchEncoder(
        width,
        class_token=class_token,
        distillation_token=distilled,
        registers=registers,
        position=position,
        class_position=class_position,
        grid=patches.grid(x.shape),
        use_bias=not pre_norm,
        dropout=dropout,
        name="encoder",
        dtype=dtype,
    )
    x = encoder(patches(x))  # (batch, tokens, width)
    if pre_norm:
        x = keras.layers.LayerNormalization(name="norm_pre", **norm)(x)
    for i in range(depth):
        x = TransformerBlock(
            num_heads,
            mlp_dim,
            qkv_bias=qkv_bias,
            qk_norm=qk_norm,
            gelu=gelu,
            swiglu=swiglu,
            dropout=dropout,
            attention_dropout=attention_dropout,
            stochastic_depth=stochastic_depth * i / max(depth - 1, 1),
            layer_scale=layer_scale,
            name=f"block_{i}",
            **norm,
        )(x)
    if final_norm == "before":
        x = keras.layers.LayerNormalization(name="norm", **norm)(x)
    pooled = TokenPool(
        pooling, num_prefix=encoder.num_prefix, num_heads=num_heads, mlp_dim=mlp_dim, gelu=gelu, name="pool", **norm
    )(x)  # (batch, width)
    if final_norm == "after":
        pooled = keras.layers.LayerNormalization(name="norm", **norm)(pooled)
    if representation_size:
        size = width if representation_size is True else representation_size
        pooled = keras.layers.Dense(size, activation="tanh", name="pre_logits", dtype=dtype)(pooled)
    outputs = _head(pooled, num_classes, "head") if num_classes else pooled
    if num_classes and distilled:
        # The token after the class token.
        second = TokenPool("first", num_prefix=1, name="pool_distilled", dtype=dtype)(x)
        outputs = keras.layers.Average(name="logits", dtype="float32")(
            [outputs, _head(second, num_classes, "head_distilled")]
        )
    model = keras.Model(inputs, outputs, name=name or f"vit_{tag}")
    model.dtype_policy = dtype  # by which `compile` knows that float16 needs its loss scaled
    return model


def _stem(stem, width, number, dtype):
    """Returns the layer called "stem" that `vit`'s argument stands for."""
    if stem == "conv":
        halvings = math.log2(number) if number else 0
        if halvings < 1 or halvings % 1:
            raise ValueError(
                "stem='conv' halves the image until patches of the variant's size are single: a power of two. "
                f"Received: patches of {number}"
            )
        return ConvStem([width >> i for i in reversed(range(int(halvings)))], name="stem", dtype=dtype)
    if isinstance(stem, (tuple, list)):
        if any(not isinstance(convolution, (tuple, list)) or len(convolution) != 2 for convolution in stem):
            raise ValueError(f"A stem of convolutions is pairs of (filters, stride). Received: stem={stem!r}")
        return ConvStem(*zip(*stem), name="stem", dtype=dtype)
    if isinstance(stem, keras.Model):
        if len(stem.inputs) != 1 or len(stem.outputs) != 1:
            raise ValueError(f"A stem has one input and one output. Received: {stem.name!r}")
        return keras.Model(stem.inputs[0], stem.outputs[0], name="stem")  # the same layers and weights
    if not isinstance(stem, keras.layers.Layer):
        raise ValueError(
            f"`stem` is 'conv', (filters, stride) pairs, a Keras layer or a Keras model. Received: stem={stem!r}"
        )
    if not stem.built:
        stem.name = "stem"
    return stem


def _on_map(number, image, map_size):
    """Returns the patch size on a map that gives tokens a stride of `number` pixels."""
    if tuple(image) == tuple(map_size):
        return number
    patch = [number * on_map / pixels for on_map, pixels in zip(map_size, image)]
    if any(side < 1 or side % 1 for side in patch):
        raise ValueError(
            f"A stem that makes a map of {map_size[0]} x {map_size[1]} of an image of {image[0]} x {image[1]} "
            f"leaves no patches of {number} pixels. Pass `patch_size`, counted on the map."
        )
    return tuple(int(side) for side in patch)


def _head(x, num_classes, name):
    return keras.layers.Dense(num_classes, kernel_initializer="zeros", name=name, dtype="float32")(x)

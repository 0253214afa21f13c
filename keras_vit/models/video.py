"""Video Vision Transformers: clips in, logits out."""

import inspect
from collections.abc import Sequence
from typing import Literal

import keras

from keras_vit.layers import Frames, PatchEncoder, Patches, Rescale, TimeSteps, TokenPool, TransformerBlock, Tubelets
from keras_vit.layers.blocks.norms import norm as norm_layer
from keras_vit.layers.functional import Model
from keras_vit.layers.inputs.stems import patch_size_on, stem_for
from keras_vit.models import options, variants
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Rate, Whole, among, typed

POSITIONS = ("learned", "sincos1d", None)
POOLINGS = ("token", "gap", "first", "none")
TOKENS = ("class_token", "class_position")  # the options of tokens that a model of clips has


@typed
@options.explained
def video_vit(
    variant: str | None = "B/16",
    *,
    frames: Positive = 16,
    tubelet: Positive = 2,
    time_depth: Whole = 0,
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
    position: among(POSITIONS) = "learned",
    norm: dict | None = None,
    pool_epsilon: float | None = None,
    block: dict | None = None,
    dropout: Rate = 0.0,
    stochastic_depth: Rate = 0.0,
    pooling: among(POOLINGS) = "token",
    final_norm: Literal["before", "after"] | None = "before",
    num_classes: int | None = 400,
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds a Vision Transformer of clips: several frames in, logits out.

    Arnab et al. 2021 (arXiv:2103.15691): model 1, joint attention over space and time, as VideoMAE has it too (Tong et
    al. 2022, arXiv:2203.12602); with `time_depth`, model 2, a spatial encoder of each time step and a temporal one over
    the results. The layers are called `clips, frames, rescale, [apart, stem, together], patches, tubelets, encoder,
    block_0, block_1, ..., [norm], pool, [norm], [steps, time_0, time_1, ..., time_norm, time_pool], head`. Their names
    and weight paths are public. After the input, no tensor has more than four axes.

    Args:
        variant: As in `vit`, without hybrids. Defaults to `"B/16"`.
        frames: Frames of a clip. Defaults to `16`.
        tubelet: Frames of a tubelet, a divisor of `frames`. Defaults to `2`.
        time_depth: Blocks of the temporal encoder of model 2, in the paper 4; 0 for model 1. Defaults to `0`.
        image_size: Size of the frames in pixels, as in `vit`. Defaults to `224`.
        channels: As in `vit`. Defaults to `3`.
        mean: As in `vit`. Defaults to `0.5`.
        std: As in `vit`. Defaults to `0.5`.
        value_range: As in `vit`. Defaults to `(0, 255)`.
        stem: As in `vit`: it sees each frame alone. Defaults to `None`.
        patch_size: As in `vit`. Defaults to `None`.
        width: As in `vit`. Defaults to `None`.
        depth: As in `vit`. Defaults to `None`.
        num_heads: As in `vit`. Defaults to `None`.
        mlp_dim: As in `vit`. Defaults to `None`.
        tokens: `class_token` and `class_position`, as in `vit`. Defaults to `None`.
        position: `"learned"`, `"sincos1d"` over all tubelets, as in VideoMAE, or `None`. Defaults to `"learned"`.
        norm: As in `vit`. Defaults to `None`.
        pool_epsilon: Epsilon of the last normalization; `None` for that of `norm`. Defaults to `None`.
        block: As in `vit`. Defaults to `None`.
        dropout: As in `vit`. Defaults to `0.0`.
        stochastic_depth: As in `vit`. Defaults to `0.0`.
        pooling: `"token"`, `"gap"`, `"first"` or `"none"`, as in `vit`. Defaults to `"token"`.
        final_norm: As in `vit`. Defaults to `"before"`.
        num_classes: As in `vit`. Defaults to `400`, those of Kinetics.
        metadata: As in `vit`. Defaults to `None`.
        name: Name of the model. Defaults to `None`, such as `"vivit_B_16x2"`.
        dtype: As in `vit`. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `(batch, frames, height, width, channels)`, pixels from 0 to 255, to
        `(batch, num_classes)` logits, float32.

    Raises:
        ValueError: For an unknown or hybrid variant, or an argument outside the above.

    Example:

    >>> video_vit("Ti/8", frames=8, image_size=32, num_classes=10)(keras.ops.zeros((2, 8, 32, 32, 3))).shape
    (2, 10)
    """
    sizes = variants.sizes_of(variant, patch_size, width=width, depth=depth, mlp_dim=mlp_dim, num_heads=num_heads)
    if sizes.stages is not None:
        raise ValueError(
            f"`variant` must be a size and a patch size, such as 'B/16'. Received: variant={checks.shown(variant)}"
        )
    options.check_names({"tokens": tokens}, ("tokens",))
    others = {name: value for name, value in options.unusual("tokens", tokens).items() if name not in TOKENS}
    if others:
        raise ValueError(f"A model of clips has no other tokens than a class token. Received: tokens={others!r}")
    tokens, norm, block = (options.complete(*each) for each in (("tokens", tokens), ("norm", norm), ("block", block)))
    height, width = checks.pair("image_size", image_size)
    checks.whole(num_classes=num_classes or 0)
    checks.above_zero(pool_epsilon=norm["epsilon"] if pool_epsilon is None else pool_epsilon)
    class_token = pooling == "token" if tokens["class_token"] is None else tokens["class_token"]
    if pooling == "token" and not class_token:
        raise ValueError(f"pooling={pooling!r} needs the class token. Received: class_token={class_token!r}")
    if time_depth and (pooling == "none" or position == "sincos1d"):
        raise ValueError(
            "A temporal encoder needs one vector for each time step, and learned positions or none. "
            f"Received: time_depth={time_depth}, pooling={pooling!r}, position={position!r}"
        )
    dtype = keras.dtype_policies.get(dtype)
    norm = {**norm, "dtype": dtype}
    last = norm if pool_epsilon is None else {**norm, "epsilon": pool_epsilon}

    clips = keras.Input((frames, height, width, channels), name="clips")
    x = Frames(frames, name="frames", dtype="float32")(clips)  # (batch, frames * height, width, channels)
    x = Rescale(mean, std, metadata, value_range, name="rescale", dtype="float32")(x)
    stem = stem_for(stem, sizes, dtype)
    if stem is not None:
        x = stem(Frames(frames, apart=True, name="apart", dtype=dtype)(x))  # (batch * frames, rows, columns, channels)
        x = Frames(frames, name="together", dtype=dtype)(x)  # (batch, frames * rows, columns, channels)
    of_frame = (None, x.shape[1] // frames, *x.shape[2:])
    patches = Patches(
        sizes.patch_size or patch_size_on(of_frame, (height, width), sizes.stride), name="patches", dtype=dtype
    )
    rows, columns = patches.grid(of_frame)  # no patch is in two frames
    tubelets = Tubelets(frames, tubelet, fold=time_depth > 0, name="tubelets", dtype=dtype)
    x = tubelets(patches(x))  # (batch, steps * rows * columns, values); or (batch * steps, rows * columns, values)
    encoder = PatchEncoder(
        sizes.width,
        class_token=class_token,
        position=position,
        class_position=tokens["class_position"],
        grid=(rows if time_depth else tubelets.steps * rows, columns),
        dropout=dropout,
        name="encoder",
        **norm,
    )
    x = encoder(x)

    block |= {"dropout": dropout, **norm}
    every = sizes.depth + time_depth
    rates = [stochastic_depth * i / max(every - 1, 1) for i in range(every)]
    for i, rate in enumerate(rates[: sizes.depth]):
        x = TransformerBlock(sizes.num_heads, sizes.mlp_dim, stochastic_depth=rate, name=f"block_{i}", **block)(x)
    x = norm_layer("norm", **last)(x) if final_norm == "before" else x
    x = TokenPool(pooling, num_prefix=encoder.num_prefix, name="pool", dtype=dtype)(x)  # (batch [* steps], width)
    x = norm_layer("norm", **last)(x) if final_norm == "after" else x

    if time_depth:
        x = TimeSteps(tubelets.steps, name="steps", dtype=dtype)(x)  # (batch, 1 + steps, width)
        for i, rate in enumerate(rates[sizes.depth :]):
            x = TransformerBlock(sizes.num_heads, sizes.mlp_dim, stochastic_depth=rate, name=f"time_{i}", **block)(x)
        x = norm_layer("time_norm", **norm)(x)
        x = TokenPool("token", num_prefix=1, name="time_pool", dtype=dtype)(x)  # (batch, width)
    if num_classes:
        x = keras.layers.Dense(num_classes, kernel_initializer="zeros", name="head", dtype="float32")(x)
    return Model(clips, x, name=name or f"{sizes.name.replace('vit_', 'vivit_', 1)}x{tubelet}")


ARGUMENTS = tuple(inspect.signature(video_vit).parameters)

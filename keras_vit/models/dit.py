"""DiT: a Transformer that leads from noise to images."""

import inspect
from collections.abc import Sequence

import keras

from keras_vit.layers import AdaptiveBlock, AdaptiveHead, PatchEncoder, Patches, Rescale, TimeEmbedding
from keras_vit.layers.attention.rotary import rotary_options
from keras_vit.layers.functional import Model
from keras_vit.models import options, variants
from keras_vit.utils import checks, resampling
from keras_vit.utils.typed import Positive, Rate, Switch, typed

INPUTS = ("images", "times", "labels")
XL = variants.Variant(1152, 28, 4608, 16, "Peebles and Xie 2023 (arXiv:2212.09748), table 1")


@typed
@options.explained
def dit(
    variant: str | None = "S/2",
    *,
    image_size: int | tuple[int, int] = 32,
    channels: Positive = 4,
    out_channels: int | None = None,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    value_range: Sequence[float] = (-1, 1),
    patch_size: int | tuple[int, int] | None = None,
    width: int | None = None,
    depth: int | None = None,
    num_heads: int | None = None,
    mlp_dim: int | None = None,
    norm: dict | None = None,
    mlp_epsilon: float | None = None,
    block: dict | None = None,
    rotary: str | dict | None = None,
    dropout: Rate = 0.0,
    time_scale: float = 1000.0,
    time_closed: bool = False,
    own_conditions: Switch = False,
    num_classes: Positive = 1000,
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds a diffusion Transformer, which predicts the noise in an image, or the velocity to one without.

    Peebles and Xie 2023 (arXiv:2212.09748), section 3.2, "DiT with adaLN-Zero". The layers are called `images, times,
    labels, rescale, patches, encoder, time, label, condition, silu, block_0, block_1, ..., head`. Their names and
    weight paths are public. `keras_vit.sample` draws images with a model that was trained by `Generate`.

    Positions are learned, and begin as sines and cosines (those of the paper stay as they begin).

    Args:
        variant: As in `vit`, without hybrids; or `"XL/2"`, the paper's largest. Defaults to `"S/2"`.
        image_size: Size of the images, or of the latents of an autoencoder, as in `vit`. Defaults to `32`.
        channels: Channels of the images. Defaults to `4`, those of latents.
        out_channels: Channels of the output; `None` for `channels`. Published models have twice as many: the second
            half is for their variance. Defaults to `None`.
        mean: As in `vit`. Defaults to `0.5`.
        std: As in `vit`. Defaults to `0.5`.
        value_range: As in `vit`: with the defaults, numbers go in as they are. Defaults to `(-1, 1)`.
        patch_size: As in `vit`. Defaults to `None`.
        width: As in `vit`. Defaults to `None`.
        depth: As in `vit`. Defaults to `None`.
        num_heads: As in `vit`. Defaults to `None`.
        mlp_dim: As in `vit`. Defaults to `None`.
        norm: As in `vit`; the normalizations have no weights but those by the root mean square, and the head's is by
            mean and variance. Defaults to `None`.
        mlp_epsilon: Epsilon of the normalizations before the MLPs, if it is another. Defaults to `None`.
        block: As in `vit`; see `AdaptiveBlock`. Defaults to `None`.
        rotary: As in `vit`. Defaults to `None`.
        dropout: As in `vit`. Defaults to `0.0`.
        time_scale: Factor of the times; see `TimeEmbedding`. Defaults to `1000.0`, for times from 0 to 1.
        time_closed: See `closed` in `TimeEmbedding`. Defaults to `False`.
        own_conditions: Whether each block has times and labels of its own, `time_0`, `label_0` and so on, as diffusers
            writes its models; the last layer has those of the first. Defaults to `False`.
        num_classes: Number of classes; the label of this number means none of them. Defaults to `1000`.
        metadata: Dictionary of plain values that is saved with the model; see `Rescale`. Defaults to `None`.
        name: Name of the model. Defaults to `None`, such as `"dit_S_2"`.
        dtype: As in `vit`. Times are float32, labels int32 and the output float32 under any. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `{"images": (batch, height, width, channels), "times": (batch,), "labels":
        (batch,)}`, int32 labels from 0 to `num_classes`, to `(batch, height, width, out_channels)`, float32.

    Raises:
        ValueError: For an unknown or hybrid variant, patches that do not divide the images, or an argument outside the
            above.

    Example:

    >>> model = dit(None, image_size=28, channels=1, patch_size=4, width=96, depth=4, num_heads=4, num_classes=10)
    >>> model({"images": keras.ops.zeros((2, 28, 28, 1)), "times": keras.ops.zeros(2), "labels": np.array([3, 10])})
    """
    sizes = sizes_of(variant, patch_size, width=width, depth=depth, mlp_dim=mlp_dim, num_heads=num_heads)
    if sizes.stages is not None:
        raise ValueError(
            f"`variant` must be a size and a patch size, such as 'S/2'. Received: variant={checks.shown(variant)}"
        )
    norm, block = options.complete("norm", norm), options.complete("block", block)
    height_width = checks.pair("image_size", image_size)
    patch_size = checks.pair("patch_size", sizes.patch_size or sizes.stride)
    checks.positive(out_channels=channels if out_channels is None else out_channels)
    if any(side % part for side, part in zip(height_width, patch_size)):
        raise ValueError(
            f"`image_size` must be a multiple of the patch size. Received: {height_width} with patches of {patch_size}"
        )
    dtype = keras.dtype_policies.get(dtype)
    norm = {**norm, "dtype": dtype}

    images = keras.Input((*height_width, channels), name="images")
    times = keras.Input((), name="times", dtype="float32")
    labels = keras.Input((), name="labels", dtype="int32")
    pixels = Rescale(mean, std, metadata, value_range, name="rescale", dtype="float32")(images)
    patches = Patches(patch_size, name="patches", dtype=dtype)
    grid = patches.grid(pixels.shape)
    encoder = PatchEncoder(sizes.width, class_token=False, grid=grid, dropout=dropout, name="encoder", dtype=dtype)
    x = encoder(patches(pixels))  # (batch, tokens, width)
    encoder.position_embedding.assign(resampling.sincos_2d(grid, sizes.width, inclusive=False)[None])

    def condition(mark):
        time = TimeEmbedding(sizes.width, scale=time_scale, closed=time_closed, name=f"time{mark}", dtype=dtype)(times)
        normal = keras.initializers.RandomNormal(stddev=0.02)
        table = keras.layers.Embedding(num_classes + 1, sizes.width, normal, name=f"label{mark}", dtype=dtype)
        both = keras.layers.Add(name=f"condition{mark}", dtype=dtype)([time, table(labels)])
        return keras.layers.Activation("silu", name=f"silu{mark}", dtype=dtype)(both)  # (batch, width)

    places = {"grid": grid, "num_prefix": 0}
    block |= {"rotary": None if rotary is None else {**rotary_options(rotary), **places}, "dropout": dropout, **norm}
    conditions = [condition(f"_{i}") for i in range(sizes.depth)] if own_conditions else [condition("")]
    for i in range(sizes.depth):
        of_block = {**block, "mlp_epsilon": mlp_epsilon, "name": f"block_{i}"}
        x = AdaptiveBlock(sizes.num_heads, sizes.mlp_dim, **of_block)(x, conditions[own_conditions and i])
    of_head = {"epsilon": norm["epsilon"], "name": "head", "dtype": "float32"}
    head = AdaptiveHead(out_channels or channels, patch_size, grid, **of_head)
    inputs = dict(zip(INPUTS, (images, times, labels)))
    return Model(inputs, head(x, conditions[0]), name=name or sizes.name)


def sizes_of(variant, patch_size, **overrides):
    """Returns the sizes of a variant, as `variants.sizes_of`; `"XL"` is one too."""
    largest = isinstance(variant, str) and variant.partition("/")[0] == "XL"
    row = XL._asdict() if largest else {}
    overrides = {name: row.get(name) if value is None else value for name, value in overrides.items()}
    sizes = variants.sizes_of(variant.replace("XL", "L", 1) if largest else variant, patch_size, **overrides)
    return sizes._replace(name=sizes.name.replace("vit_L" if largest else "vit_", "dit_XL" if largest else "dit_", 1))


def is_dit(model):
    """Returns whether a model is one from `dit`: it takes noisy images, times and labels."""
    inputs = getattr(model, "input", None) if isinstance(model, keras.Model) else None
    return isinstance(inputs, dict) and set(inputs) == set(INPUTS)


def classes_of(model):
    """Returns the number of classes of a model from `dit`; the label of this number means none of them."""
    return next(layer for layer in model.layers if layer.name in ("label", "label_0")).input_dim - 1


ARGUMENTS = tuple(inspect.signature(dit).parameters)

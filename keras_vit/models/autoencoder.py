"""The two parts of an autoencoder of latents: from images to what a latent DiT draws, and back."""

import math
from collections.abc import Sequence

import keras

from keras_vit.layers import Rescale
from keras_vit.layers.base import LAST
from keras_vit.layers.functional import Model
from keras_vit.models.backbone import keeper
from keras_vit.models.kinds import note
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Switch, typed

AUTOENCODER = "autoencoder"  # in the metadata of a DiT of latents: where their autoencoder is
LATENTS = "takes_latents"  # in the metadata of a decoder: its input is no image
EPSILON = 1e-6  # of all normalizations
SPAN = 8.0  # half of the range that `Rescale` counts latents by; they may be outside


@typed
def latent_encoder(
    *,
    image_size: int | tuple[int, int] | None = None,
    latent_size: int | tuple[int, int] | None = None,
    channels: Positive = 3,
    latent_channels: Positive = 4,
    widths: Sequence[int] = (128, 256, 512, 512),
    depth: Positive = 2,
    groups: Positive = 32,
    attention: Switch = True,
    projection: Switch = True,
    scaling_factor: float = 0.18215,
    shift_factor: float = 0.0,
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds the encoder of diffusers' `AutoencoderKL` (Rombach et al. 2022, arXiv:2112.10752, section 3.1).

    Latents are on the scale of the diffusion model: `(latent - shift_factor) * scaling_factor`.

    Args:
        image_size: Pixels of the images, an integer or `(height, width)`: multiples of `2 ** (levels - 1)`.
        latent_size: Size of the latents, in place of `image_size`.
        channels: Channels of the images.
        latent_channels: Channels of the latents.
        widths: Channels of each level, from the finest on; each level but the last halves the size.
        depth: Residual blocks of each level.
        groups: Groups of the normalizations.
        attention: Whether there is an attention block at the coarsest level.
        projection: Whether there is a convolution of 1 x 1 on the side of the latents.
        scaling_factor: See above.
        shift_factor: See above.
        metadata: Dictionary of plain values that is saved with the model; see `Rescale`.
        name: Name of the model.
        dtype: Precision policy; the attention is computed in float32 under any. No float16, which overflows.

    Returns:
        A functional `keras.Model` from pixels, 0 to 255, `(batch, height, width, channels)`, to the mean and the
        logarithm of the variance of latents, float32 `(batch, rows, columns, 2 * latent_channels)`.

    Raises:
        ValueError: For sizes that do not fit, or float16.
    """
    (height, width), factor = _sizes(image_size, latent_size, widths, groups, dtype)
    layers = _Layers(groups, dtype)
    images = keras.Input((height * factor, width * factor, channels), name="images")
    x = layers.conv(Rescale(0.5, 0.5, metadata, name="rescale", dtype="float32")(images), widths[0], "conv_in")
    for i, units in enumerate(widths):
        for j in range(depth):
            x = layers.residual(x, units, f"down_{i}_res_{j}")
        if i < len(widths) - 1:
            x = keras.layers.ZeroPadding2D(((0, 1), (0, 1)), data_format=LAST, name=f"down_{i}_pad", dtype=dtype)(x)
            x = layers.conv(x, units, f"down_{i}_conv", strides=2, padding="valid")
    x = layers.conv(layers.normed(layers.middle(x, attention), "norm_out"), 2 * latent_channels, "conv_out")
    x = layers.conv(x, 2 * latent_channels, "projection", size=1) if projection else x
    log, spread = 2 * math.log(scaling_factor), scaling_factor
    scale = [spread] * latent_channels + [1.0] * latent_channels
    offset = [-shift_factor * spread] * latent_channels + [log] * latent_channels
    x = keras.layers.Rescaling(scale, offset, name="latents", dtype="float32")(x)
    return _noted(Model(images, x, name=name or "latent_encoder"), "latents")


@typed
def latent_decoder(
    *,
    image_size: int | tuple[int, int] | None = None,
    latent_size: int | tuple[int, int] | None = None,
    channels: Positive = 3,
    latent_channels: Positive = 4,
    widths: Sequence[int] = (128, 256, 512, 512),
    depth: Positive = 2,
    groups: Positive = 32,
    attention: Switch = True,
    projection: Switch = True,
    scaling_factor: float = 0.18215,
    shift_factor: float = 0.0,
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds the decoder of diffusers' `AutoencoderKL`; the arguments are those of `latent_encoder`.

    Returns:
        A functional `keras.Model` from latents on the scale of the diffusion model, `(batch, rows, columns,
        latent_channels)`, to pixels, float32 `(batch, height, width, channels)`: 0 to 255, a little beyond at edges.

    Raises:
        ValueError: As `latent_encoder`.
    """
    size, _ = _sizes(image_size, latent_size, widths, groups, dtype)
    layers = _Layers(groups, dtype)
    latents = keras.Input((*size, latent_channels), name="images")
    std, mean = scaling_factor / (2 * SPAN), 0.5 - shift_factor * scaling_factor / (2 * SPAN)
    about = {**(metadata or {}), LATENTS: True}
    x = Rescale(mean, std, about, (-SPAN, SPAN), name="rescale", dtype="float32")(latents)  # latent / scale + shift
    x = layers.conv(x, latent_channels, "projection", size=1) if projection else x
    x = layers.middle(layers.conv(x, widths[-1], "conv_in"), attention)
    for i, units in enumerate(reversed(widths)):
        for j in range(depth + 1):
            x = layers.residual(x, units, f"up_{i}_res_{j}")
        if i < len(widths) - 1:
            x = keras.layers.UpSampling2D(2, data_format=LAST, name=f"up_{i}_twice", dtype=dtype)(x)
            x = layers.conv(x, units, f"up_{i}_conv")
    x = layers.conv(layers.normed(x, "norm_out"), channels, "conv_out")
    x = keras.layers.Rescaling(127.5, 127.5, name="pixels", dtype="float32")(x)
    return _noted(Model(latents, x, name=name or "latent_decoder"), "image")


def takes_latents(model):
    """Returns whether a model is a decoder of latents."""
    layer = keeper(model) if isinstance(model, keras.Model) else None
    return bool(layer is not None and layer.metadata.get(LATENTS))


def _noted(model, kind):
    note(model, kind)
    return model


def _sizes(image_size, latent_size, widths, groups, dtype):
    """Returns the size of the latents, `(rows, columns)`, and how many times larger images are."""
    if (image_size is None) == (latent_size is None):
        raise ValueError(
            "Either `image_size` or `latent_size` must be passed. "
            f"Received: image_size={image_size!r}, latent_size={latent_size!r}"
        )
    factor = 2 ** (len(widths) - 1)
    if wrong := [width for width in widths if width % groups]:
        raise ValueError(f"`groups` must divide all widths. Received: groups={groups} with {wrong[0]}")
    if "float16" in (name := keras.dtype_policies.get(dtype).name) and "bfloat16" not in name:
        raise ValueError(
            f"`dtype` must not be float16: the values of published autoencoders overflow. Received: {name}"
        )
    if latent_size is not None:
        return checks.pair("latent_size", latent_size), factor
    size = checks.pair("image_size", image_size)
    if any(side % factor for side in size):
        raise ValueError(f"`image_size` must be a multiple of {factor}. Received: image_size={image_size!r}")
    return tuple(side // factor for side in size), factor


class _Layers:
    """Makes the layers that both parts have, in one precision."""

    def __init__(self, groups, dtype):
        self.groups = groups
        self.dtype = dtype

    def conv(self, x, units, name, size=3, strides=1, padding="same"):
        options = {"strides": strides, "padding": padding, "data_format": LAST, "dtype": self.dtype}
        return keras.layers.Conv2D(units, size, name=name, **options)(x)

    def norm(self, x, name):
        return keras.layers.GroupNormalization(self.groups, -1, EPSILON, name=name, dtype=self.dtype)(x)

    def normed(self, x, name):
        return keras.layers.Activation("silu", name=f"{name}_silu", dtype=self.dtype)(self.norm(x, name))

    def residual(self, x, units, name):
        y = self.conv(self.normed(x, f"{name}_norm1"), units, f"{name}_conv1")
        y = self.conv(self.normed(y, f"{name}_norm2"), units, f"{name}_conv2")
        x = x if x.shape[-1] == units else self.conv(x, units, f"{name}_shortcut", size=1)
        return keras.layers.Add(name=f"{name}_add", dtype=self.dtype)([x, y])

    def middle(self, x, attention):
        """Two residual blocks at the coarsest level, and between them one head of attention over all places."""
        rows, columns, units = x.shape[1:]
        x = self.residual(x, units, "mid_res_0")
        if attention:
            tokens = keras.layers.Reshape((rows * columns, units), name="mid_tokens", dtype="float32")
            tokens = tokens(self.norm(x, "mid_norm"))  # (batch, rows * columns, units)
            attend = keras.layers.MultiHeadAttention(1, units, name="mid_attention", dtype="float32")
            y = keras.layers.Reshape((rows, columns, units), name="mid_map", dtype=self.dtype)(attend(tokens, tokens))
            x = keras.layers.Add(name="mid_add", dtype=self.dtype)([x, y])
        return self.residual(x, units, "mid_res_1")

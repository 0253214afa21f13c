"""An autoencoder of latents in one model, from images to images: as it is trained, and its two parts."""

import keras
from keras import ops

from keras_vit.layers.functional import Model
from keras_vit.models.autoencoder import latent_decoder, latent_encoder
from keras_vit.models.backbone import variables_of
from keras_vit.models.inputs import metadata_of
from keras_vit.models.kinds import note

LATENTS, DECODER = "latents", "decoder"  # layers: the last one of the encoder, and the decoder, a model inside
SIZES, SCALE = "autoencoder_sizes", "latent_scale"  # in the metadata: arguments of both parts, and how latents scale
ARGUMENTS = ("image_size", "channels", "latent_channels", "widths", "depth", "groups", "attention", "projection",
             "metadata", "name", "dtype")  # fmt: skip
BUILDERS = {"encoder": latent_encoder, "decoder": latent_decoder}


def autoencoder(*, metadata=None, name=None, dtype=None, **sizes):
    """Builds the encoder and the decoder of latents in one model; latents are not scaled yet.

    Args:
        metadata, name, dtype: As in `latent_encoder`.
        **sizes: `image_size`, `channels`, `latent_channels`, `widths`, `depth`, `groups`, `attention` and `projection`
            of `latent_encoder`.

    Returns:
        A functional `keras.Model` from pixels, 0 to 255, `(batch, height, width, channels)`, to pixels of the same
        shape, float32: the decoder's, of the mean of the latents. They may leave 0 to 255 a little.

    Raises:
        ValueError: As `latent_encoder`.
    """
    noted = {name: [*value] if isinstance(value, tuple) else value for name, value in sizes.items()}
    own = {**(metadata or {}), SIZES: {name: value for name, value in noted.items() if name != "image_size"}}
    encoder = latent_encoder(**sizes, scaling_factor=1.0, metadata=own, dtype=dtype)
    decoder = latent_decoder(**sizes, scaling_factor=1.0, name=DECODER, dtype=dtype)
    mean, _ = ops.split(encoder.output, 2, axis=-1)
    model = Model(encoder.input, decoder(mean), name=name or "autoencoder")
    note(model, "image")
    return model


def is_autoencoder(model):
    """Returns whether a model is from `autoencoder`."""
    return {LATENTS, DECODER} <= {layer.name for layer in getattr(model, "layers", ())}


def encoder_of(model):
    """Returns the encoder in an autoencoder, with its layers: from pixels to the unscaled latents' distribution."""
    return keras.Model(model.input, model.get_layer(LATENTS).output)


def sizes_of(model):
    """Returns the arguments of an autoencoder's parts, a dictionary, without the size of images."""
    return dict(metadata_of(model)[SIZES])


def scale_of(model):
    """Returns `scaling_factor` and `shift_factor` of an autoencoder's latents, a dictionary; `{}` before they are."""
    return dict(metadata_of(model).get(SCALE, {}))


def part_of(model, part, **overrides):
    """Returns the encoder or the decoder of an autoencoder as a model of its own, with its weights, for scaled latents.

    Args:
        model: A trained model from `autoencoder`.
        part: `"encoder"` or `"decoder"`.
        **overrides: `image_size` or `latent_size`, by default as in training; `dtype`, `name`, `metadata`.

    Raises:
        ValueError: If the latents of the model have no scale: it was not trained.
    """
    scale = scale_of(model)
    if not scale:
        raise ValueError(
            f"The latents of an autoencoder must have a scale, which training measures. Received: {model.name!r}"
        )
    size = {} if {"image_size", "latent_size"} & set(overrides) else {"image_size": model.input_shape[1:3]}
    made = BUILDERS[part](**size, **sizes_of(model), **scale, **overrides)
    values = variables_of(encoder_of(model) if part == "encoder" else model.get_layer(DECODER))
    for path, variable in variables_of(made).items():
        variable.assign(values[path])
    return made

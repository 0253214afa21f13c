"""The decoder of a DiT of latents: where it is, and how it makes images of what was drawn."""

import functools

import keras
import numpy as np

from keras_vit.models.autoencoder import AUTOENCODER, takes_latents
from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.models.whole_autoencoder import SCALE
from keras_vit.utils import checks
from keras_vit.utils.by_file import cached

PIXELS = 2**18  # of images that are decoded at once: a decoder's maps are much larger than what it returns


def decoder_of(model, decoder=None):
    """Returns the decoder of a model from `dit`, a `keras.Model`; `None` of a model that draws images themselves.

    Args:
        model: The model. If its metadata say where the autoencoder is, the decoder is loaded from there, once.
        decoder: The decoder, or where it or its autoencoder is, in place of that.

    Raises:
        ValueError: If there is none at that place, or it takes other latents. The message says where it was looked for.
        TypeError: If `decoder` is neither a model nor a path.
    """
    shape = image_shape(model)
    if decoder is None:
        place = metadata_of(model).get(AUTOENCODER)
        if place is None:
            return None
        try:
            decoder = decoder_at(place, shape[:2])
        except (ValueError, OSError, ImportError) as error:
            raise ValueError(
                f"{model.name!r} draws latents of an autoencoder, whose decoder is looked for at {place!r}: pass "
                f"decoder=, a model or where the autoencoder is now. Received: {str(error).splitlines()[0]}"
            ) from None
        check_scale(model, place)
    elif not isinstance(decoder, keras.Model):
        place = checks.path("decoder", decoder)
        decoder = decoder_at(decoder if "://" in str(decoder) else str(place), shape[:2])
    if not takes_latents(decoder) or tuple(decoder.input_shape[1:]) != shape:
        raise ValueError(
            f"`decoder` must be one of latents of {shape}, as from_checkpoint(..., part='decoder', "
            f"latent_size={shape[:2]}) returns. Received: {decoder.name!r}, which takes {decoder.input_shape[1:]}"
        )
    return decoder


def check_scale(model, place):
    """Raises ValueError if the autoencoder at a place has another scale than when a model was trained in its latents.

    Args:
        model: Model from `dit`, whose metadata may say the scale.
        place: Where the autoencoder is.
    """
    from keras_vit.checkpoints.autoencoder import sizes_of

    trained = metadata_of(model).get(SCALE)
    if trained is not None and [*trained] != (now := [*sizes_of(place).scale]):
        raise ValueError(
            f"{model.name!r} was trained in latents of the scale and shift {trained}: the autoencoder at {place!r} "
            f"must have them. Received: {now}. Was it trained again?"
        )


def decoded(decoder, latents):
    """Returns images of latents, -1 to 1, float32 `(count, height, width, channels)`; a few at a time.

    Args:
        decoder: As `decoder_of` returns.
        latents: float32 `(count, rows, columns, channels)`.
    """
    height, width = decoder.output_shape[1:3]
    size = min(max(PIXELS // (height * width), 1), len(latents))
    run, parts = _compiled(decoder), []
    for first in range(0, len(latents), size):
        some = latents[first : first + size]
        filled = np.concatenate([some, np.repeat(some[-1:], size - len(some), axis=0)])
        parts.append(keras.ops.convert_to_numpy(run.predict_on_batch(filled))[: len(some)] / 127.5 - 1)
    return np.concatenate(parts)


@cached(1)
def decoder_at(place, size):
    """Returns the decoder at a place for latents of a size, in float32."""
    from keras_vit.checkpoints.pretrained import from_pretrained

    return from_pretrained(place, part="decoder", latent_size=size, dtype="float32")


@functools.lru_cache(maxsize=1)
def _compiled(decoder):
    """Returns a decoder, compiled, without a change of the caller's model."""
    model = keras.Model(decoder.inputs, decoder.outputs)
    model.compile(jit_compile=keras.backend.backend() != "torch")
    return model

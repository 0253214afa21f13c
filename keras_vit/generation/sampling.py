"""Draws images of classes, or of texts, with a DiT."""

import os
from collections.abc import Sequence

import keras
import numpy as np

from keras_vit.generation.asked import asked_of
from keras_vit.generation.latents import decoded, decoder_of
from keras_vit.generation.sampler import METHODS, drawn
from keras_vit.models import schedules
from keras_vit.models.dit import none_of
from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.traits import traits_of
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

DRAWING = ("velocity", "noise")  # what a model gives that can be followed from noise to images
UNGUIDED = "unguided"  # in the metadata of one that never saw an image without its class
FAR, MANY = 2.0, 0.5  # from 0, where pixels are from -1 to 1; share of values so far. Noise has 4.6 %


def sample(
    model: keras.Model,
    labels: int | str | Sequence,
    *,
    steps: int = 25,
    guidance: float = 2.0,
    seed: int = 0,
    method: str = "euler",
    path: bool = False,
    decoder: keras.Model | str | os.PathLike | None = None,
    batch_size: int = 64,
) -> np.ndarray:
    """Draws images from noise, of given classes or texts, as one compiled loop.

    Each image starts from normal noise, which depends on the seed and on the image's place alone, not on the backend or
    the batch size. It follows the velocity that the model predicts from time 0 to 1 (rectified flow, Liu et al. 2023,
    arXiv:2209.03003). A published DiT predicts noise, which is removed in the steps of DDIM (Song et al. 2021,
    arXiv:2010.02502), without new noise. Latents are decoded, a few at a time. The first call for a model, number of
    steps and batch size is compiled.

    Args:
        model: A model that `Generate` trained, such as `from_pretrained("mnist_dit")`; or a published DiT with its
            autoencoder, such as `from_pretrained("hf://facebook/DiT-XL-2-256")`.
        labels: A class for each image, or one alone: indices, or names in the model's file; `None` for no class. Of a
            model that draws texts: a text for each image, or one alone, such as `"a red circle"`; `None` for no text.
            Or ids, integers `(images, length)`.
        steps: Number of steps.
        guidance: Guidance scale, at least 0 (Ho and Salimans 2022, arXiv:2207.12598): with 1, the model's own velocity;
            with more, images are clearer and less diverse. With any other value than 1, each velocity is computed
            twice.
        seed: Seed of the noise.
        method: `"euler"`, or `"heun"`, which computes nearly two velocities a step, and follows the true path more
            closely.
        path: Whether to return each step from noise to image.
        decoder: Of a model that draws latents, the decoder of their autoencoder, a model as from
            `from_checkpoint(path, part="decoder")`, or its path or address. `None` for that at the place in the model's
            metadata.
        batch_size: Number of images that are drawn at once.

    Returns:
        uint8 `(images, height, width, channels)`; with `path` `(images, steps + 1, height, width, channels)`.

    Raises:
        ValueError: For another model, such as a published DiT without the settings of its noise; if there is no decoder
            where it is looked for; for labels that the model lacks, a text without a word or with too many, a negative
            guidance, no step, or another argument outside the above; if the model returns numbers that are not finite.

    Warns:
        UserWarning: If the guidance is so large that most values are far outside the range of pixels: they are clipped.
            For words that the model does not know.

    Example:

    >>> keras_vit.sample(keras_vit.from_pretrained("mnist_dit"), [7, 7, 3]).shape
    (3, 28, 28, 1)
    """
    how = {"steps": steps, "guidance": guidance, "seed": seed, "method": method, "path": path, "decoder": decoder}
    return np.concatenate([*drawn_in_parts(model, labels, **how, batch_size=batch_size)])


def drawn_in_parts(model, labels, *, steps, guidance, seed, method="euler", path=False, decoder=None, batch_size=64):
    """Returns a generator of the images of `sample`, `batch_size` at a time; its arguments are checked at once."""
    checks.model(model)
    checks.positive(steps=steps, batch_size=batch_size)
    checks.whole(seed=seed)
    checks.not_negative(guidance=guidance)
    checks.one_of("method", method, tuple(METHODS))
    checks.switch(path=path)
    check_drawing(model, guidance)
    schedules.of(metadata_of(model), steps)  # raises for too many
    if guidance != 1:
        none_of(model)  # raises for a model that does not say it
    decoder = decoder_of(model, decoder)
    labels, random = asked_of(model, labels), np.random.default_rng(seed)

    def parts():
        size, warned = min(batch_size, len(labels)), guidance == 1
        for first in range(0, len(labels), size):
            some = labels[first : first + size]
            noise = random.standard_normal((len(some), *image_shape(model)), "float32")
            images = drawn(model, noise, some, steps, float(guidance), method, path, size)
            if not np.isfinite(images).all():
                raise ValueError(f"The model must return finite numbers. Received: NaN or infinity of {model.name!r}")
            if decoder is not None:
                images = decoded(decoder, images.reshape(-1, *images.shape[-3:])).reshape(
                    *images.shape[:-3], *decoder.output_shape[1:]
                )
            far = float((np.abs(images[:, -1] if path else images) > FAR).mean())
            if far > MANY and not warned:
                warned = True
                warn(
                    f"The guidance is too large: {far:.0%} of the values are over {FAR:g} times as far from gray as "
                    f"black and white, and are clipped. Received: guidance={guidance:g}"
                )
            yield as_bytes(images)

    return parts()


def check_drawing(model, guidance=1.0):
    """Raises ValueError unless images can be drawn with a model, and with this guidance."""
    about = traits_of(model, "Images are drawn with a DiT, as of `Generate`.", structure="dit")
    if about.gives not in DRAWING:
        raise ValueError(
            "Images are drawn with a model that `Generate` trained, or a published DiT that comes with its autoencoder "
            "and the settings of its noise: load the folder with model_index.json, transformer/, vae/ and scheduler/. "
            f"Received: {model.name!r}, which does not say what it predicts"
        )
    if guidance != 1 and metadata_of(model).get(UNGUIDED):
        raise ValueError(
            "A model that always saw the class, label_drop=0, has no guidance: it must be 1. "
            f"Received: guidance={guidance} with {model.name!r}"
        )


def as_bytes(images):
    """Returns images from -1 to 1 as uint8."""
    return np.clip(np.rint((images + 1) * 127.5), 0, 255).astype("uint8")

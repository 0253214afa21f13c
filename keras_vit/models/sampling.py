"""Draws images of classes with a DiT."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_vit.models.dit import classes_of, is_dit
from keras_vit.models.inputs import image_shape, metadata_of
from keras_vit.models.kinds import name_of
from keras_vit.models.outputs import distinct
from keras_vit.models.sampler import METHODS, drawn
from keras_vit.utils import checks

VELOCITY = "velocity"  # what a model that can be followed from noise to images gives


def sample(
    model: keras.Model,
    labels: int | str | Sequence,
    *,
    steps: int = 25,
    guidance: float = 2.0,
    seed: int = 0,
    method: str = "euler",
    path: bool = False,
    batch_size: int = 64,
) -> np.ndarray:
    """Draws images from noise, of given classes, as one compiled loop.

    Each image begins with normal noise, of which the seed and the image's place decide alone: the same on every backend
    and for every batch size. It follows the velocity that the model says from time 0 to 1 (rectified flow, Liu et al.
    2023, arXiv:2209.03003). The first call for a model, number of steps and batch size is compiled.

    Args:
        model: A model that `Generate` trained, such as `from_pretrained("mnist_dit")`.
        labels: A class for each image, or one alone: indices, or names in the model's file; `None` for no class.
        steps: Number of steps.
        guidance: Factor of what the class adds to the velocity (Ho and Salimans 2022, arXiv:2207.12598): with 1 the
            model's own, with more images are clearer and less various. Other factors than 1 compute each velocity
            twice.
        seed: Seed of the noise.
        method: `"euler"`, or `"heun"`, which computes nearly twice as many velocities in as many steps, and is closer
            to the true path.
        path: Whether to return each step from noise to image.
        batch_size: Images that are drawn at once.

    Returns:
        uint8 `(images, height, width, channels)`; with `path` `(images, steps + 1, height, width, channels)`.

    Raises:
        ValueError: For another model, such as a published DiT, which predicts noise in latents; for labels that the
            model lacks, a negative guidance, no step, or another argument outside the above; if the model returns
            numbers that are not finite.

    Example:

    >>> keras_vit.sample(keras_vit.from_pretrained("mnist_dit"), [7, 7, 3]).shape
    (3, 28, 28, 1)
    """
    checks.model(model)
    checks.positive(steps=steps, batch_size=batch_size)
    checks.whole(seed=seed)
    checks.not_negative(guidance=guidance)
    checks.one_of("method", method, tuple(METHODS))
    checks.switch(path=path)
    check_drawing(model)
    labels = labels_of(model, labels)
    noise = np.random.default_rng(seed).standard_normal((len(labels), *image_shape(model)), "float32")
    found = drawn(model, noise, labels, steps, float(guidance), method, path, batch_size)
    if not np.isfinite(found).all():
        raise ValueError(f"The model must return finite numbers. Received: NaN or infinity of {model.name!r}")
    return as_bytes(found)


def check_drawing(model):
    """Raises ValueError unless images can be drawn with a model."""
    if not is_dit(model):
        raise ValueError(f"Images are drawn with a DiT, as of `Generate`. Received: {model.name!r}")
    if name_of(model) != VELOCITY:
        raise ValueError(
            "Images are drawn with a model that says a velocity, trained by `Generate`; published DiTs predict noise "
            f"in an autoencoder's latents. Received: {model.name!r}, which does not say so"
        )


def labels_of(model, labels):
    """Returns the labels of images, int32 `(images,)`; raises ValueError for one that the model lacks.

    Args:
        model: A model from `dit`.
        labels: As in `sample`.
    """
    count, names = classes_of(model), distinct(tuple(metadata_of(model).get("labels") or ()))
    given = [labels] if labels is None or isinstance(labels, (str, int, float, np.integer)) else list(labels)
    known = {None: count, **{name: i for i, name in enumerate(names)}, **{i: i for i in range(count + 1)}}
    if not given:
        raise ValueError("`labels` must have a class for each image. Received: none")
    wrong = [each for each in given if isinstance(each, (bool, float)) or each not in known]
    if wrong:
        listed = f", {', '.join(map(repr, names[:10]))}{', ...' * (len(names) > 10)}" if names else ""
        raise ValueError(
            f"`labels` must be classes, 0 to {count - 1}{listed}; {count} or None for none. Received: {wrong[0]!r}"
        )
    return np.array([known[each] for each in given], "int32")


def as_bytes(images):
    """Returns images from -1 to 1 as uint8."""
    return np.clip(np.rint((images + 1) * 127.5), 0, 255).astype("uint8")

"""Images between noise and themselves, for rectified flow."""

import tensorflow as tf

from keras_vit.models.schedules import shifted

DRAWN = {"normal": tf.random.stateless_normal, "uniform": tf.random.stateless_uniform}


def from_noise(examples, seed, latents=None):
    """Returns a batch with normal noise as its images, the time 0 of each, and the images as `"originals"`.

    Args:
        examples: As in `Task.batch`.
        seed: Integer tensor, `(2,)`.
        latents: Of latents, how many times smaller they are than images, and their channels.
    """
    images = examples["images"]
    shape = tf.shape(images)
    if latents is not None:
        shape = tf.concat([shape[:1], shape[1:3] // latents[0], latents[1:]], 0)
    noise = tf.random.stateless_normal(shape, seed)
    if latents is not None:
        height, width = (side // latents[0] for side in images.shape[1:3])
        noise = tf.ensure_shape(noise, (None, height, width, latents[1]))
    return {**examples, "images": noise, "times": tf.zeros(tf.shape(images)[:1]), "originals": images}


def apart(seed):
    """Returns a seed for what must not depend on the times that `on_the_way` draws, such as which text is taken."""
    return tf.random.fold_in(seed, 3)


def on_the_way(examples, seed, *given):
    """Returns `(x, y)`: images on their way from noise, with times and labels or texts; and their velocities.

    Liu et al. 2023 (arXiv:2209.03003), equation 1: `x = (1 - t) noise + t image`, and the velocity `image - noise`.

    Args:
        examples: What `from_noise` returns.
        seed: Integer tensor, `(2,)`.
        given: The other arguments of `asked_at`.
    """
    noise, images = examples["images"], examples["originals"] / 127.5 - 1
    asked = asked_at(examples, seed, *given)
    t = asked["times"][:, None, None, None]
    return {"images": (1 - t) * noise + t * images, **asked}, images - noise


def before_encoding(examples, seed, *given):
    """Returns `(x, y)` of a `LatentLearner`, which encodes the images itself; arguments as of `on_the_way`.

    `y` is `-noise`: what it returns is the velocity without the latent.
    """
    noise = examples["images"]
    spread = tf.random.stateless_normal(tf.shape(noise), tf.random.fold_in(seed, 4))
    asked = asked_at(examples, seed, *given)
    return {"images": noise, **asked, "pixels": examples["originals"], "spread": spread}, -noise


def asked_at(examples, seed, times, shift, drop, asked, none):
    """Returns random `"times"`, and the labels or texts, some of them left out.

    Args:
        examples: What `from_noise` returns.
        seed: Integer tensor, `(2,)`.
        times: `"uniform"`, or `"normal"` for the sigmoid of a normal number.
        shift: As in `models.schedules.shifted`.
        drop: Share of the labels, or texts, that are left out.
        asked: `"labels"` or `"texts"`, a row of ids each.
        none: The label, or the row of ids, in their place.
    """
    given = tf.cast(examples[asked], "int32")
    count = tf.shape(given)[:1]
    time = DRAWN[times](count, tf.random.fold_in(seed, 1))
    time = shifted(tf.sigmoid(time) if times == "normal" else time, shift)
    left_out = tf.random.stateless_uniform(count, tf.random.fold_in(seed, 2)) < drop
    given = tf.where(tf.reshape(left_out, (-1, *[1] * (len(given.shape) - 1))), tf.constant(none, "int32"), given)
    return {"times": time, asked: given}

"""Images between noise and themselves, for rectified flow."""

import tensorflow as tf

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


def on_the_way(examples, seed, times, drop, none):
    """Returns `(x, y)`: images on their way from noise, with times and labels; and their velocities.

    Liu et al. 2023 (arXiv:2209.03003), equation 1: `x = (1 - t) noise + t image`, and the velocity `image - noise`.

    Args:
        examples: What `from_noise` returns.
        seed: Integer tensor, `(2,)`.
        times: `"uniform"`, or `"normal"` for the sigmoid of a normal number.
        drop: Share of the labels that are left out.
        none: The label in their place.
    """
    noise, images = examples["images"], examples["originals"] / 127.5 - 1
    time, labels = _asked(examples, seed, times, drop, none)
    t = time[:, None, None, None]
    return {"images": (1 - t) * noise + t * images, "times": time, "labels": labels}, images - noise


def before_encoding(examples, seed, times, drop, none):
    """Returns `(x, y)` of a `LatentLearner`, which encodes the images itself; arguments as of `on_the_way`.

    `y` is `-noise`: what it returns is the velocity without the latent.
    """
    noise = examples["images"]
    time, labels = _asked(examples, seed, times, drop, none)
    spread = tf.random.stateless_normal(tf.shape(noise), tf.random.fold_in(seed, 3))
    x = {"images": noise, "times": time, "labels": labels, "pixels": examples["originals"], "spread": spread}
    return x, -noise


def _asked(examples, seed, times, drop, none):
    """Returns random times, and the labels, some of them left out."""
    count = tf.shape(examples["images"])[:1]
    time = DRAWN[times](count, tf.random.fold_in(seed, 1))
    time = tf.sigmoid(time) if times == "normal" else time
    left_out = tf.random.stateless_uniform(count, tf.random.fold_in(seed, 2)) < drop
    return time, tf.where(left_out, none, tf.cast(examples["labels"], "int32"))

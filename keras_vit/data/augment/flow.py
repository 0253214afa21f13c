"""Images between noise and themselves, for rectified flow."""

import tensorflow as tf

DRAWN = {"normal": tf.random.stateless_normal, "uniform": tf.random.stateless_uniform}


def from_noise(examples, seed):
    """Returns a batch with normal noise as its images, the time 0 of each, and the images as `"originals"`.

    Args:
        examples: As in `Task.batch`.
        seed: Integer tensor, `(2,)`.
    """
    images = examples["images"]
    noise = tf.random.stateless_normal(tf.shape(images), seed)
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
    noise, images, labels = examples["images"], examples["originals"] / 127.5 - 1, examples["labels"]
    count = tf.shape(noise)[:1]
    time = DRAWN[times](count, tf.random.fold_in(seed, 1))
    time = tf.sigmoid(time) if times == "normal" else time
    left_out = tf.random.stateless_uniform(count, tf.random.fold_in(seed, 2)) < drop
    labels = tf.where(left_out, none, tf.cast(labels, "int32"))
    t = time[:, None, None, None]
    return {"images": (1 - t) * noise + t * images, "times": time, "labels": labels}, images - noise

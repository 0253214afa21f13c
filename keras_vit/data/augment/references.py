"""References of images: a second picture of the same thing, or the same picture, shifted and turned a little."""

import math

import tensorflow as tf

from keras_vit.data.readers.decoding import decode

SHIFT = 8.0  # pixels, at most, in each direction
TURN = math.radians(5)  # at most, to either side
UNRELATED, ITSELF = 0.25, 0.125  # shares of references in training: of another image, and without more detail


def referenced(examples, margin, seed):
    """Returns examples with `"references"`, sharp pictures of what the images show, without a border around both.

    Args:
        examples: `"images"`, float32 `(batch, height, width, channels)`, 0..255. They may have `"references"`: pixels,
            or one encoded file. Else each is its image, shifted by up to 8 pixels and turned by up to 5 degrees, and
            mirrored at the edges.
        margin: Pixels of the border.
        seed: Integer tensor, `(2,)`, from which all randomness comes.
    """
    images = examples["images"]
    references = examples.get("references")
    if references is None:
        references = _moved(images, tf.random.fold_in(seed, 5))
    elif references.dtype == tf.string:
        references = tf.cast(decode(references[0], images.shape[3])[None], "float32")
    elif images.shape[3] == 1:
        references = tf.image.rgb_to_grayscale(references)
    inner = [each[:, margin:-margin, margin:-margin] for each in (images, references)]
    return {**examples, **dict(zip(("images", "references"), inner))}


def some_useless(examples, seed):
    """Returns examples, of whose references some help nothing, as in use.

    On average a quarter are those of the next image of the batch, and an eighth are the image itself, enlarged by cubic
    convolution.
    """
    images, references = examples["images"], examples["references"]
    drawn = tf.random.stateless_uniform(tf.shape(references)[:1], tf.random.fold_in(seed, 6))[:, None, None, None]
    itself = tf.image.resize(images, tf.shape(references)[1:3], "bicubic", antialias=True)
    itself = tf.clip_by_value(tf.round(itself), 0.0, 255.0)
    mixed = tf.where(drawn < UNRELATED, tf.roll(references, 1, 0), references)
    return {**examples, "references": tf.where(drawn > 1 - ITSELF, itself, mixed)}


def _moved(images, seed):
    """Returns images, each shifted and turned by random numbers; enlarged before, since bilinear pixels are blurred."""
    count, height, width = tf.shape(images)[0], *(tf.cast(tf.shape(images)[i], "float32") for i in (1, 2))
    y, x, angle = tf.unstack(tf.random.stateless_uniform((3, count), seed, -1.0, 1.0))
    cos, sin = tf.cos(TURN * angle), tf.sin(TURN * angle)
    middle = (width - 1) / 2, (height - 1) / 2
    start_x = middle[0] + SHIFT * x - cos * middle[0] + sin * middle[1]
    start_y = middle[1] + SHIFT * y - sin * middle[0] - cos * middle[1]
    zero = tf.zeros_like(cos)
    rows = [2 * cos, -2 * sin, 2 * start_x + 0.5, 2 * sin, 2 * cos, 2 * start_y + 0.5, zero, zero]
    moved = tf.raw_ops.ImageProjectiveTransformV3(
        images=tf.image.resize(images, 2 * tf.shape(images)[1:3], "bicubic"),
        transforms=tf.stack(rows, 1),
        output_shape=tf.shape(images)[1:3],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="REFLECT",
    )
    return tf.ensure_shape(tf.clip_by_value(tf.round(moved), 0.0, 255.0), images.shape)


def cut_reference(item, cut, size):
    """Cuts one reference where its image was cut; a row of `targets.KINDS`.

    Args:
        item: A scalar string, an encoded image; or pixels, `(height, width, 3)`. As large as the image.
        cut: A `cuts.Cut`.
        size: `(height, width)` of the result.

    Returns:
        float32 tensor, `(height, width, 3)`, 0..255.
    """
    image = decode(item, 3)
    text = "A reference must have the size of its image."
    with tf.control_dependencies([tf.debugging.assert_equal(tf.shape(image)[:2], cut.shape, text)]):
        image = tf.cast(image, "float32")
    box = image[cut.start[0] : cut.start[0] + cut.extent[0], cut.start[1] : cut.start[1] + cut.extent[1]]
    image = tf.image.resize(box, cut.grid, antialias=True)
    if cut.window is not None:
        image = image[cut.window[0] : cut.window[0] + size[0], cut.window[1] : cut.window[1] + size[1]]
    if cut.flip is not None:
        image = tf.cond(cut.flip, lambda: tf.reverse(image, [1]), lambda: image)
    return tf.ensure_shape(image, (*size, 3))

"""Images at their own size, one by one, for a task that scores them whole."""

import tensorflow as tf

from keras_vit.data import deep_source, inspection
from keras_vit.data.orientation import orientations
from keras_vit.data.readers.decoding import decode


def whole_arrays(source, recipe, size):
    """Yields every image once, in order, as `pipeline.evaluation_arrays` does, but alone and at its own size.

    Its sides are cut to multiples of what `Task.data_shape` adds for one pixel more.

    Args:
        source: Result of `sources.load`.
        recipe: A `Recipe`; its `task` is read.
        size: `(height, width, channels)` of the images that the model takes; the channels are read.
    """
    look_up, task = source.reader(), recipe.task
    (*ones, channels), twos = (task.data_shape((side, side, size[2])) for side in (1, 2))
    steps = [two - one for one, two in zip(ones, twos)]

    def read(keys):
        items = look_up(keys)
        known = orientations(items["images"])[0] if deep_source.are_encoded(items["images"], source) else None
        image = deep_source.opened({"images": items["images"][0]}, source, recipe.data, channels)["images"]
        image = decode(image, channels, known)
        height, width = (tf.shape(image)[i] // steps[i] * steps[i] for i in (0, 1))
        return {**items, "images": tf.cast(image[None, :height, :width], "float32")}

    def prepare(number, examples):
        examples = deep_source.in_units(examples, recipe.data)
        return task.prepare(examples, tf.stack([tf.zeros((), "int64"), number]))

    examples = source.in_order(1).map(read).enumerate().map(prepare).prefetch(2)
    with inspection.named(source):
        yield from examples.as_numpy_iterator()

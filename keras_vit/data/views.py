"""Several views of each video for evaluation: parts of its time, and crops of its frames."""

import functools

import numpy as np
import tensorflow as tf

from keras_vit.data import inspection
from keras_vit.data.augment import crops
from keras_vit.data.augment.cuts import center_cut
from keras_vit.data.packing import folded, packed, unfolded, unpacked
from keras_vit.data.readers.image_files import Rule
from keras_vit.utils import clip_files, reading
from keras_vit.utils.sampling import check_crops


def view_arrays(source, recipe, size):
    """Yields every video once, in order, as `pipeline.evaluation_arrays` does, with all its views.

    Args:
        source: A `data.clip_source.Clips`.
        recipe: A `Recipe`; its `task` and `data` are read.
        size: `(frames, height, width, channels)` of the clips that the model takes.

    Yields:
        Dictionaries of arrays: `"images"`, float32 `(batch, views, frames, height, width, channels)`, 0..255, and the
        targets. A batch has about as many clips as one of the recipe, and one video at least.

    Raises:
        ValueError: If a file can no longer be read, with its name.
    """
    sampling = recipe.task.clips
    prepare = preparer(size, recipe.data, sampling)
    choices = sampling.choices

    def read(place):
        return prepare(source.clip(place, choose) for choose in choices)

    count = max(recipe.data.batch_size // sampling.count, 1)
    with inspection.named(source):
        for batch in reading.batches(read, range(len(source)), count):
            for error in batch.errors.values():
                raise error
            targets = {name: column[batch.images] for name, column in source.targets.items()}
            yield {"images": np.stack([*batch.pixels.values()]), **targets}


def reader(size, data, sampling):
    """Returns the function from a file to its views, float32 `(views, frames, height, width, channels)`.

    Arguments are as in `view_arrays`; threads may call the function.
    """
    prepare = preparer(size, data, sampling)
    return lambda path: prepare(clip_files.read_clip(path, 3, choose) for choose in sampling.choices)


def preparer(size, data, sampling):
    """Returns the function from parts of a video, an iterable of arrays, to all their crops, in their order."""
    frames, height, width, channels = size
    check_crops(sampling.crops, data.resize, (height, width))
    shape = (height, width, frames * channels)
    rule = Rule(*(getattr(data, name) for name in Rule._fields))

    def images_of(clip):
        gray = clip.shape[-1] != channels
        image = unpacked(packed(clip), shape[2]) if gray else folded(clip)
        if rule.resize is None and image.shape == shape:
            return [image.astype("float32")]
        return _cropped(shape, rule, sampling.crops, image.dtype.name)(tf.constant(image))

    return lambda parts: np.stack([unfolded(np.asarray(image), frames) for clip in parts for image in images_of(clip)])


def averaged(function, task, most):
    """Returns the function of clips that averages over views where there are several, an axis after that of the batch.

    Args:
        function: From clips, `(batch, frames, height, width, channels)`, to logits, `(batch, classes)`.
        task: A `ClassifyClips`.
        most: Clips that the function is given at once.
    """

    def run(clips):
        if clips.ndim == 5:
            return function(clips)
        every = clips.reshape(-1, *clips.shape[2:])
        outputs = np.concatenate([function(every[i : i + most]) for i in range(0, len(every), most)])
        return task.averaged(outputs.reshape(*clips.shape[:2], -1))

    return run


@functools.lru_cache(16)
def _cropped(size, rule, count, dtype):
    """Returns the function from an image to one crop, its center, or to three along its longer side."""

    def cropped(image):
        if count == 1:
            return [crops.evaluation_image(image, size, rule)]
        shape = tf.shape(image)[:2]
        cut = center_cut(shape, size, rule)
        whole = cut.window is not None  # all of the image is resized, and a window of that is seen
        room = tf.convert_to_tensor(cut.grid - tf.constant(size[:2]) if whole else shape - cut.extent)
        center = tf.stack(cut.window if whole else tf.unstack(cut.start))
        longer = tf.one_hot(tf.argmax(room), 2, dtype="int32")
        places = [center * (1 - longer), center, center * (1 - longer) + room * longer]
        moved = [cut._replace(**{"window" if whole else "start": tf.unstack(place)}) for place in places]
        return [crops.make(image, each, size, rule.method, rule.antialias) for each in moved]

    return tf.function(cropped, autograph=False).get_concrete_function(tf.TensorSpec((None, None, size[2]), dtype))

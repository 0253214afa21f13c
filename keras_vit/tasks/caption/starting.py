"""The model that `Caption` starts from: a published one that writes, or one of a run."""

from keras_vit.models.captioner import MARKS, is_captioner, words_of
from keras_vit.tasks.texts import check_images, sizes_for
from keras_vit.utils.by_file import cached


def loaded(task, image_size=None, channels=None):
    """Returns the model of `task.start`, which writes as before, with the task's tokenizer in its metadata.

    Args:
        task: A `Caption` with `start`.
        image_size: Size of the images, an integer or `(height, width)`; `None` for the model's own.
        channels: Channels of the images; `None` for the model's own.

    Raises:
        ValueError: For another kind of model, or one that does not fit the task's texts or images.
    """
    model = _writer(task.start, **sizes_for(task.start, image_size))
    image, text = model.get_layer("image"), model.get_layer("text")
    check_images(image, image_size, channels)
    task.check_words_of(task.start)
    words = words_of(text)
    if task.length > words.length:
        raise ValueError(
            f"The model of task.start writes at most {words.length} ids. Received: task.length={task.length}"
        )
    if task.words or task.tokens:
        tokenizer, end = task.ids_of(), words.metadata["end"]
        if tokenizer.size > words.vocabulary or tokenizer.end != end:
            raise ValueError(
                f"The tokenizer must be that of task.start, with {words.vocabulary} ids and the end {end}. "
                f"Received: {tokenizer.size} ids and the end {tokenizer.end}"
            )
    if task.tokens:
        words.metadata = words.metadata | {"tokens": task.tokens}
    for tower in (image, text):  # a file keeps what was frozen
        tower.trainable = False
        tower.trainable = True
    return model


@cached(4)
def marks_by(start):
    """Returns the ids of start, end and padding with which a model writes, cached.

    They may differ from those of its tokenizer: TrOCR begins with the id that ends a text, BLIP with one of its own.
    """
    return marks_of(_writer(start))


def marks_of(model):
    """Returns the ids of start, end and padding with which a captioner writes."""
    metadata = words_of(model.get_layer("text")).metadata
    return tuple(int(metadata[mark]) for mark in MARKS)


def _writer(start, **sizes):
    from keras_vit.checkpoints.pretrained import from_pretrained

    model = from_pretrained(start, part="both", **sizes)
    if not is_captioner(model):
        raise ValueError(
            f"`start` must be a model that writes about images, such as TrOCR or BLIP. Received: {str(start)!r}"
        )
    return model

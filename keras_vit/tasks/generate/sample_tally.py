"""Scores of drawn images beside real ones."""

import functools

import keras
import numpy as np

from keras_vit.tasks.generate.moments import Moments, frechet

BATCH, SIDE = 64, 8  # images of which features are computed at once; pixels of a thumbnail's side, at most


class SampleTally:
    """Fréchet distance of thumbnails; with a judge, that of its features, and the share of images that it reads right.

    Thumbnails are means over areas, of at most 8 x 8 pixels from -1 to 1. Of vectors, sums and products are kept, so
    that memory does not grow.

    Args:
        judge: A source of `from_pretrained`, a classifier of the same classes and size of images; or `None`.
        keep: Ignored.
    """

    def __init__(self, judge=None, keep=False):
        self.judge = judge and judge_of(judge)
        self.right = 0
        self.thumbnails = Moments(), Moments()  # of drawn images, and of real ones
        self.features = Moments(), Moments()

    def add(self, examples, outputs):
        for moments, images in zip(self.thumbnails, (outputs, examples["originals"])):
            moments.add(thumbnails(images))
        if self.judge is None:
            return None
        from scipy.special import softmax

        features, logits = self.judge(outputs)
        labels = np.asarray(examples["labels"])
        self.right += int((logits.argmax(-1) == labels).sum())
        self.features[0].add(features)
        self.features[1].add(self.judge(examples["originals"])[0])
        return softmax(logits, -1)[np.arange(len(labels)), labels]

    def result(self):
        if not self.thumbnails[0].count:
            return {}
        of_judge = {"accuracy": self.right / self.features[0].count} if self.judge else {}
        of_judge |= {"frechet": frechet(*self.features)} if self.judge else {}
        return {**of_judge, "thumbnail_frechet": frechet(*self.thumbnails)}

    def figures(self):
        return {}


def thumbnails(images):
    """Returns images, 0 to 255, as vectors of the means over areas, -1 to 1, `(images, values)`."""
    images = np.asarray(images, "float32") / 127.5 - 1
    _, height, width, _ = images.shape
    rows, columns = (np.linspace(0, side, min(side, SIDE) + 1).astype(int)[:-1] for side in (height, width))
    sums = np.add.reduceat(np.add.reduceat(images, rows, axis=1), columns, axis=2)
    areas = np.outer(np.diff([*rows, height]), np.diff([*columns, width]))[..., None]
    return (sums / areas).reshape(len(images), -1)


@functools.lru_cache(maxsize=2)
def judge_of(source):
    """Returns the function from images, 0 to 255, to a classifier's features and logits; it is loaded once.

    Features are what its last layer takes.

    Raises:
        ValueError: If it is no classifier of images; in the call, for images of another size.
    """
    from keras_vit.checkpoints.pretrained import from_pretrained

    model = from_pretrained(source)
    head = model.layers[-1]
    if not isinstance(head, keras.layers.Dense) or len(model.output_shape) != 2:
        raise ValueError(f"The judge must be a classifier of images. Received: judge={source!r}")
    both, shape = keras.Model(model.input, [head.input, head.output]), tuple(model.input_shape[1:])

    def judge(images):
        images = np.asarray(images, "float32")
        if images.shape[1:] != shape:
            raise ValueError(f"The judge {source!r} takes images of {shape}. Received: {images.shape[1:]}")
        return both.predict(images, BATCH, verbose=0)

    return judge

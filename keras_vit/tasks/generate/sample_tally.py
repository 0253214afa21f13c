"""Scores of generated images against real images."""

import keras
import numpy as np

from keras_vit.models.inputs import IMAGES
from keras_vit.models.metadata import stated_labels
from keras_vit.preparing.pixel_range import range_of
from keras_vit.tasks.generate.moments import Moments, frechet
from keras_vit.tasks.tally import Tally
from keras_vit.utils import checks
from keras_vit.utils.by_file import cached
from keras_vit.utils.losses import end_of

FRECHET = "thumbnail_frechet"
SCORES = ("accuracy", "frechet", FRECHET)  # of which the last needs no judge
BATCH, SIDE = 64, 8  # images in a batch of the judge; largest side of a thumbnail


class SampleTally(Tally):
    """Fréchet distance of thumbnails; with a judge, also the Fréchet distance of its features, and its accuracy.

    Thumbnails are means over areas, of at most 8 x 8 pixels from -1 to 1. Memory does not grow with the images.

    Args:
        judge: A source of `from_pretrained`: a classifier with the same classes and image size; or `None`.
    """

    def __init__(self, judge=None):
        super().__init__()
        self.judge = judge and judge_of(judge)
        self.right = 0
        self.thumbnails = Moments(), Moments()  # of generated images, and of real images
        self.features = Moments(), Moments()

    def add(self, examples, outputs):
        """Counts a batch, and returns the judge's probability of each image's class, `(batch,)`, or `None`.

        Args:
            examples: `"originals"`, real images, `(batch, height, width, channels)`, 0..255; `"labels"`, `(batch,)`.
            outputs: Generated images, `(batch, height, width, channels)`, 0..255.
        """
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
        shares = logits if self.judge.end else softmax(logits, -1)
        return shares[np.arange(len(labels)), labels]

    def result(self):
        if not self.thumbnails[0].count:
            return {}
        scores = {FRECHET: frechet(*self.thumbnails)}
        if self.judge:
            scores = {"accuracy": self.right / self.features[0].count, "frechet": frechet(*self.features), **scores}
        return scores


def thumbnails(images):
    """Returns thumbnails, float32 `(batch, values)`, -1..1, of images, `(batch, height, width, channels)`, 0..255."""
    images = np.asarray(images, "float32") / 127.5 - 1
    _, height, width, _ = images.shape
    rows, columns = (np.linspace(0, side, min(side, SIDE) + 1).astype(int)[:-1] for side in (height, width))
    sums = np.add.reduceat(np.add.reduceat(images, rows, axis=1), columns, axis=2)
    areas = np.outer(np.diff([*rows, height]), np.diff([*columns, width]))[..., None]
    return (sums / areas).reshape(len(images), -1)


class Judge:
    """A classifier, as a function from images to features and outputs.

    It takes images, `(batch, height, width, channels)`, 0..255. It returns the input of its last dense layer,
    `(batch, width)`, and its outputs, `(batch, classes)`.

    Args:
        source: A source of `from_pretrained`.
    """

    def __init__(self, source):
        from keras_vit.checkpoints.pretrained import from_pretrained

        model = from_pretrained(source)
        heads = [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)]
        one = len(getattr(model, "inputs", ())) == 1 and len(model.input_shape) == IMAGES
        if not heads or not one or len(model.output_shape) != 2 or range_of(model) != checks.BYTES:
            raise ValueError(f"The judge must be a classifier of images, 0 to 255. Received: judge={source!r}")
        self.source = source
        self.shape = tuple(model.input_shape[1:])
        self.names = tuple(stated_labels(model) or ())
        self.count = model.output_shape[-1]
        self.end = end_of(model)
        self.model = keras.Model(model.input, [heads[-1].input, model.output])

    def check(self, names, shape=None):
        """Raises ValueError unless it has these classes in this order, and takes images of this shape."""
        if self.count != len(names) or (self.names and self.names != tuple(names)):
            own = f"{self.count} classes{': ' if self.names else ''}{', '.join(self.names)}"
            raise ValueError(
                f"The judge must have the classes of the data, {', '.join(names)!s:.100}. Received: judge="
                f"{self.source!r} with {own!s:.100}"
            )
        if shape not in (None, self.shape):
            raise ValueError(f"The judge {self.source!r} takes images of {self.shape}. Received: {shape}")

    def __call__(self, images):
        return self.model.predict(np.asarray(images, "float32"), BATCH, verbose=0)


@cached(2)
def judge_of(source):
    """Returns the `Judge` of a source, cached: it is loaded once."""
    return Judge(source)

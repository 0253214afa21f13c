"""Scores of drawn images, by a classifier that was not used in training them."""

import functools

import keras
import numpy as np

BATCH = 64


class SampleTally:
    """Share of the drawn images that a classifier reads as their class, and the Fréchet distance to real ones.

    The classifier's features are what its last layer takes. Memory does not grow: of the features, sums and products
    are kept.

    Args:
        judge: A source of `from_pretrained`; `None` for no scores.
        keep: Ignored.
    """

    def __init__(self, judge=None, keep=False):
        self.judge = judge and _Judge.of(judge)
        self.right = 0
        self.images = Moments()
        self.drawn = Moments()

    def add(self, examples, outputs):
        if self.judge is None:
            return None
        from scipy.special import softmax

        features, logits = self.judge(outputs)
        labels = np.asarray(examples["labels"])
        self.right += int((logits.argmax(-1) == labels).sum())
        self.drawn.add(features)
        self.images.add(self.judge(examples["originals"])[0])
        return softmax(logits, -1)[np.arange(len(labels)), labels]

    def result(self):
        if not self.drawn.count:
            return {}
        return {
            "accuracy": self.right / self.drawn.count,
            "frechet": frechet(self.drawn, self.images),
        }

    def figures(self):
        return {}


class _Judge:
    """A function from images, 0 to 255, to a classifier's features and logits."""

    def __init__(self, source):
        from keras_vit.checkpoints.pretrained import from_pretrained

        model = from_pretrained(source)
        head = model.layers[-1]
        if not isinstance(head, keras.layers.Dense) or len(model.output_shape) != 2:
            raise ValueError(f"The judge must be a classifier of images. Received: judge={source!r}")
        self.source = source
        self.shape = tuple(model.input_shape[1:])
        self.model = keras.Model(model.input, [head.input, head.output])

    @classmethod
    @functools.lru_cache(maxsize=2)
    def of(cls, source):
        """Returns the same one for the same source: it is loaded once."""
        return cls(source)

    def __call__(self, images):
        images = np.asarray(images, "float32")
        if images.shape[1:] != self.shape:
            raise ValueError(
                f"The judge {self.source!r} takes images of the shape {self.shape}. Received: {images.shape[1:]}"
            )
        features, logits = self.model.predict(images, BATCH, verbose=0)
        return features, logits


class Moments:
    """Number, sum and products of vectors, float64."""

    def __init__(self):
        self.count = 0
        self.sum = 0.0
        self.products = 0.0

    def add(self, vectors):
        vectors = np.asarray(vectors, "float64")
        self.count += len(vectors)
        self.sum = self.sum + vectors.sum(0)
        self.products = self.products + vectors.T @ vectors

    @property
    def mean(self):
        return self.sum / self.count

    @property
    def covariance(self):
        """The unbiased one."""
        return (self.products - self.count * np.outer(self.mean, self.mean)) / max(self.count - 1, 1)


def frechet(one, other):
    """Returns the Fréchet distance of two normal distributions with the moments of features.

    `|m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))` (Dowson and Landau 1982; Heusel et al. 2017, arXiv:1706.08500,
    equation 6). The trace of the root is the sum of the roots of the eigenvalues of `C1^(1/2) C2 C1^(1/2)`.

    Args:
        one: `Moments`.
        other: `Moments` of as many features.
    """
    values, vectors = np.linalg.eigh(one.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ other.covariance @ root), 0))
    traces = np.trace(one.covariance) + np.trace(other.covariance)
    return float(np.square(one.mean - other.mean).sum() + traces - 2 * roots.sum())

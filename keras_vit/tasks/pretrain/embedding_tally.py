"""The score of embeddings: how often an image's nearest neighbors have its label."""

import numpy as np

from keras_vit.tasks.pretrain.neighbors import knn_accuracy
from keras_vit.tasks.tally import Tally

KEPT = 5000  # largest number of embeddings for the accuracy of neighbors


class EmbeddingTally(Tally):
    """Accuracy of nearest neighbors, each image among all others, if the data have labels.

    Images with a negative label are unlabeled, and do not count. Of more than 5,000 images, a random sample of 5,000 is
    kept, the same in each run.
    """

    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng(0)
        self.keys = np.zeros(0)
        self.vectors = None
        self.labels = np.zeros(0, "int64")

    def add(self, examples, outputs):
        """Counts a batch.

        Args:
            examples: Dictionary that may have `"labels"`, integers, `(batch,)`.
            outputs: Embeddings, `(batch, width)`.
        """
        if "labels" not in examples:
            return
        labeled = examples["labels"] >= 0  # some datasets have -1 for unlabeled images
        outputs = np.asarray(outputs, "float32")[labeled]
        self.keys = np.concatenate([self.keys, self.random.random(len(outputs))])
        self.labels = np.concatenate([self.labels, examples["labels"][labeled]])
        self.vectors = outputs if self.vectors is None else np.concatenate([self.vectors, outputs])
        if len(self.keys) > KEPT:
            best = np.sort(np.argpartition(self.keys, KEPT)[:KEPT])
            self.keys = self.keys[best]
            self.labels = self.labels[best]
            self.vectors = self.vectors[best]

    def result(self):
        if len(self.keys) < 2:
            return {}
        return {"knn_accuracy": knn_accuracy(self.vectors, self.labels)}

    def figures(self):
        from keras_vit import plots

        if len(self.keys) < 3:
            return {}
        return {"Embeddings, projected to two principal components": plots.plot_embedding(*self._points())}

    def _points(self):
        from keras_vit.explain import project

        return project(self.vectors), self.labels

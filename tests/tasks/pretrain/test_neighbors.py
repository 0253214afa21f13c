import numpy as np

from keras_vit.tasks.pretrain.neighbors import knn_accuracy
from tests.checkpoints.helpers import unexpected


def test_by_hand():
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(40, 5)) + 1, rng.integers(0, 3, 40)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    right = 0
    for i in range(40):
        others = [j for j in np.argsort(-cosine[i]) if j != i][:7]
        votes = [sum(np.exp(cosine[i, j] / 0.07) for j in others if labels[j] == c) for c in range(3)]
        right += np.argmax(votes) == labels[i]
    assert knn_accuracy(vectors, labels, neighbors=7) == right / 40


def test_separate_classes_and_length():
    angle = np.concatenate([np.linspace(0, 0.1, 30), np.linspace(2, 2.1, 30)])
    vectors = np.stack([np.cos(angle), np.sin(angle)], 1) * np.arange(1, 61)[:, None]  # only the direction counts
    assert knn_accuracy(vectors, np.arange(60) // 30) == 1.0
    assert knn_accuracy(vectors[:2], [0, 0]) == 1.0 and knn_accuracy(vectors[:2], [0, 1]) == 0.0


def test_bad_input():
    vectors = np.ones((3, 2))
    assert not unexpected(
        [
            (lambda: knn_accuracy(vectors, [0, 1]), r"labels of shape \(2,\)"),
            (lambda: knn_accuracy(vectors[:1], [0]), "at least two"),
            (lambda: knn_accuracy(vectors * np.nan, [0, 1, 1]), "finite"),
            (lambda: knn_accuracy(vectors, [-1, 0, 0]), "class indices"),
            (lambda: knn_accuracy(vectors, [0, 1, 1], neighbors=0), "`neighbors` must be a positive integer"),
        ]
    )

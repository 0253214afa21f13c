import re

import numpy as np

from keras_vit.inspecting import exact, labels, probabilities
from keras_vit.inspecting.graph import Graph, graph
from keras_vit.inspecting.pictures import NONE, Pictures


class Fixed:
    """Probabilities that are given, in the place of classifiers."""

    classes = 3


def test_confident_learning_is_that_of_the_paper(monkeypatch):
    """Worked out by hand. Thresholds, the mean probability of each class over its pictures: 0.6, 0.7 and 0.8."""
    each = np.array(
        [
            [0.9, 0.1, 0.0],
            [0.1, 0.8, 0.1],  # of class 0, above the threshold of class 1
            [0.8, 0.2, 0.0],
            [0.2, 0.7, 0.1],
            [0.0, 0.2, 0.8],
            [0.35, 0.65, 0.0],  # of class 0, below the threshold of class 1: not sure enough
        ]
    )
    each[5] = [0.6, 0.4, 0.0]
    classes = np.array([0, 0, 0, 1, 2, 0])
    monkeypatch.setattr(probabilities, "blocks", lambda *_: [(np.arange(3), each[:3]), (np.arange(3, 6), each[3:])])
    suggested, margins, accuracy = labels.contradicted(Fixed, None, classes)
    assert suggested.tolist() == [NONE, 1, NONE, NONE, NONE, NONE]
    np.testing.assert_allclose([margins[1], accuracy], [0.7, 5 / 6])


def test_neighbors_vote():
    """As in `knn`, each with a weight by its similarity; those without a label do not."""
    near = Graph(np.array([[1, 2], [0, 2], [0, 1]]), np.array([[0.1, 0.17]] * 3, "float32"))
    weights = np.array([1, np.exp(-1)]) / (1 + np.exp(-1))
    np.testing.assert_allclose(labels.shares(np.array([0, 0, 1]), near, 0, 2), weights, rtol=1e-5)
    np.testing.assert_allclose(labels.shares(np.array([0, NONE, 1]), near, 0, 2), [0, 1])
    np.testing.assert_allclose(labels.shares(np.array([0, NONE, NONE]), near, 0, 2), [0, 0])


def test_both_must_contradict():
    """A label that the neighbors vote for is not listed, however sure the classifier is."""
    rng, kinds = np.random.default_rng(0), np.arange(60) % 2
    vectors = rng.normal(0, 0.2, (60, 6)) + np.eye(6)[kinds]
    texts = ["ab"[kind] for kind in kinds]
    texts[0], web = "b", graph(vectors)
    pictures = Pictures([str(i) for i in range(60)], []).labeled(texts)
    found, _ = labels.find(pictures, vectors, web, np.arange(60), exact.alone(60))
    assert [one.row for one in found] == [0] and 0.5 < found[0].score <= 1
    web.neighbors[0] = np.flatnonzero(pictures.labels == 1)[1:11]
    assert labels.find(pictures, vectors, web, np.arange(60), exact.alone(60))[0] == []


def test_pictures_without_a_label_and_rare_classes_are_not_judged():
    rng = np.random.default_rng(0)
    kinds = np.arange(90) % 3
    vectors = rng.normal(0, 0.2, (90, 6)) + np.eye(6)[kinds]
    texts = [("a", "b", None)[kind] for kind in kinds]
    texts[0], texts[2] = "b", "rare"
    pictures = Pictures([str(i) for i in range(90)], []).labeled(texts)
    found, remark = labels.find(pictures, vectors, graph(vectors), np.arange(90), exact.alone(90))
    assert [(one.file, one.label, one.suggested) for one in found] == [("0", "b", "a")]
    assert found[0].score > 0.5
    assert re.fullmatch("Labels: the classifier predicts 9.*% of the labels that it did not see. Many .*", remark)


def test_a_classifier_that_knows_nothing_does_not_judge():
    """Of labels that the vectors say nothing about."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100, 4))
    pictures = Pictures([str(i) for i in range(100)], []).labeled(["ab"[i % 4 == 0] for i in range(100)])
    found, remark = labels.find(pictures, vectors, graph(vectors), np.arange(100), exact.alone(100))
    assert not found and remark.endswith("the most frequent class is 75.0%; it cannot judge")

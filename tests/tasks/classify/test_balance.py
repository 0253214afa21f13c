import numpy as np

from keras_vit.tasks.classify.balance import class_weights


def test_rare_classes_count_more():
    counts = np.array([30, 9, 0, 1])
    weights = class_weights(counts)
    np.testing.assert_allclose(weights[[0, 1, 3]], [40 / 90, 40 / 27, 40 / 3])
    assert np.isclose(weights @ counts, counts.sum())
    assert weights[2] == 1 and (class_weights(counts * 0) == 1).all()

import numpy as np
import pytest
from scipy.special import log_softmax

from keras_vit.tasks.caption.word_loss import WordLoss

pytestmark = pytest.mark.backend


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_each_image_s_words_are_averaged(smoothing):
    logits = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    words = np.array([[1, 2, -1, -1], [0, 3, 4, 1], [-1] * 4])
    logs, wanted = log_softmax(logits.astype("float64"), -1), []
    for row, ids in zip(logs, words):
        each = [(1 - smoothing) * row[i, id] + smoothing * row[i].mean() for i, id in enumerate(ids) if id >= 0]
        wanted.append(-np.mean(each) if each else 0)
    found = np.asarray(WordLoss(smoothing).call(words, logits))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert WordLoss.from_config(WordLoss(smoothing).get_config()).label_smoothing == smoothing

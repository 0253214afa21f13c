import keras
import numpy as np
import pytest

from keras_vit.models.map_outputs import predict
from keras_vit.utils import images
from keras_vit.utils.resampling import resize_matrix

pytestmark = pytest.mark.backend

LOGITS = np.random.default_rng(0).normal(size=(3, 4, 5, 3)).astype("float32") * 3


def test_resizes_as_keras_does():
    larger = np.asarray(keras.ops.image.resize(LOGITS, (9, 7))).argmax(-1)
    np.testing.assert_array_equal(predict(LOGITS[0], (9, 7)), larger[0])


@pytest.mark.parametrize("size", [(4, 5), (9, 40), (3, 2), (40, 5)])
def test_classes_at_another_size_are_those_of_resized_logits(size, monkeypatch):
    rows, columns = (resize_matrix(have, want, "bilinear") for have, want in zip(LOGITS.shape[1:], size))
    resized = np.einsum("tr,uc,rcx->tux", rows, columns, LOGITS[0].astype("float64"))
    for values in (1, 2**22):
        monkeypatch.setattr(images, "STRIP", values)
        found = predict(LOGITS[0], size)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, resized.argmax(-1))

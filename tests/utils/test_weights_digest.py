import keras
import pytest

from keras_vit import vit
from keras_vit.utils.weights_digest import weights_digest

pytestmark = pytest.mark.backend


def test_the_weights_alone_count(tmp_path):
    model = vit("mu/4", image_size=8, num_classes=3, dropout=0.1)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    digest = weights_digest(model)
    assert len(digest) == 64 and weights_digest(again) == digest
    again.weights[0].assign(again.weights[0] * 1.5 + 1)
    assert weights_digest(again) != digest

import keras
import pytest

import keras_vit
from keras_vit.training.optimizers import SGD, AdamW, Schedule

pytestmark = pytest.mark.backend


def test_they_are_found_by_name():
    assert keras_vit.optimizers.AdamW is AdamW
    assert keras.saving.get_registered_object("keras_vit>AdamW") is AdamW
    assert issubclass(SGD, keras.optimizers.SGD) and Schedule("linear", 1.0, steps=10)(5) == 0.5

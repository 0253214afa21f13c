import numpy as np
import pytest

import keras_vit
from keras_vit.tasks.caption.caption_writer import caption_writer
from tests.captions import small
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend


@slow_on_jax
def test_any_number_of_images_is_written_about():
    model = small()
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3)).astype("float32")
    wanted = keras_vit.generate_text(model, [*images], length=6, batch_size=5)
    write = caption_writer(model, 6)
    for count in (3, 5, 2):  # a larger batch than the first, and a smaller one
        found = write(images[:count])
        assert found.shape == (count, 6) and found.dtype == np.float32
        np.testing.assert_array_equal(found[:, :-1], wanted.ids[:count, 1:])
        np.testing.assert_allclose(found[:, -1], np.exp(wanted.scores[:count]), rtol=1e-4)
    assert caption_writer(model, 6) is write


@slow_on_jax
def test_the_weights_are_those_of_each_call():
    model = small()
    images = np.full((2, 8, 8, 3), 90.0, "float32")
    write = caption_writer(model, 6)
    before = write(images)
    for weight in model.get_layer("text").weights:
        weight.assign(np.random.default_rng(1).normal(0, 0.5, weight.shape))
    assert not np.array_equal(write(images), before)
    wanted = keras_vit.generate_text(model, [*images], length=6)
    np.testing.assert_array_equal(write(images)[:, :-1], wanted.ids[:, 1:])

import keras
import numpy as np
import pytest

from keras_vit.tasks import dense
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

SMALL = dict(variant="mu/8", image_size=(32, 48), tokens={"class_token": True, "registers": 1})


def test_an_encoder_has_neither_head_nor_pooling():
    encoder = dense.encoder({**SMALL, "num_classes": 3, "pooling": "none"}, 3, "segmenter")
    assert encoder.output_shape == (None, 2 + 24, 32)
    for wrong in ({"num_classes": 4}, {"pooling": "map"}):
        with pytest.raises(ValueError, match="A detector's head is the task's"):
            dense.encoder({**SMALL, **wrong}, 3, "detector")
    with pytest.raises(ValueError, match="Received: head='old'"):
        dense.encoder({**SMALL, "head": "old"}, 3, "detector")


def test_tokens_become_a_map_in_their_places():
    encoder = dense.encoder(SMALL, 3, "segmenter")
    tokens = dense.patches(encoder, encoder.output)
    model = keras.Model(encoder.input, [encoder.output, dense.feature_map(encoder, tokens, "map")])
    tokens, places = map(np.asarray, model(np.random.default_rng(0).uniform(0, 255, (2, 32, 48, 3))))
    assert places.shape == (2, 4, 6, 32)
    np.testing.assert_array_equal(places[:, 1, 2], tokens[:, 2 + 6 + 2])


@slow_on_jax
def test_dpt_begins_where_it_is_told():
    encoder = dense.encoder(SMALL, 3, "segmenter")
    output = dense.dpt(encoder, 3, 8, np.array([1.0, 2.0, 3.0]))
    found = np.asarray(keras.Model(encoder.input, output)(np.zeros((1, 32, 48, 3))))
    np.testing.assert_allclose(found[0, 0, 0], [1, 2, 3])
    assert np.ptp(found, axis=(0, 1, 2)).max() == 0

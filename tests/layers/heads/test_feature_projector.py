import numpy as np
import pytest

from keras_vit.layers.heads.feature_projector import FeatureProjector
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend


def test_layer(tmp_path):
    make = lambda dtype: FeatureProjector(6, steps=2, dtype=dtype)  # noqa: E731
    run_layer_test(make, (2, 3, 4, 8), (2, 3, 4, 6), ["first", "last", "norm"], tmp_path)


def test_cells_are_normalized_and_halves_must_be_whole():
    output = np.asarray(FeatureProjector(6)(np.random.default_rng(0).normal(size=(2, 3, 4, 8))))
    np.testing.assert_allclose(output.mean(-1), 0, atol=1e-5)
    with pytest.raises(ValueError, match="an even number. Received: filters=5"):
        FeatureProjector(5)

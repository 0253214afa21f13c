import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.data.sources import Source
from keras_vit.training.compiling import class_weights, compile_model, prepare
from tests.training.small import RECIPE, SOURCE, tiny


def test_rare_classes_count_more():
    source = Source(SOURCE.images, {"labels": np.array([0] * 30 + [1] * 9 + [2], "int32")}, SOURCE.class_names)
    weights = class_weights(source)
    np.testing.assert_allclose(weights, [40 / 90, 40 / 27, 40 / 3])
    assert np.mean(weights[source.labels]) == pytest.approx(1)


def test_a_sigmoid_starts_where_its_bias_says(tmp_path):
    recipe = config.override(RECIPE, {"optim.loss": "sigmoid", "optim.head_bias": -2.0, "augment.mixup": 0})
    model = prepare(tiny(), recipe.optim)
    loss = compile_model(model, recipe, 5).test_on_batch(SOURCE.images, np.eye(3)[SOURCE.labels])[0]
    assert loss == pytest.approx(2 * np.log1p(np.exp(-2)) + np.log1p(np.exp(2)), rel=1e-5)


@pytest.mark.parametrize("words, said", [({"optim.accumulate": 16}, "at most 15.*Received: 16")])
def test_an_impossible_recipe_is_refused(words, said):
    with pytest.raises(ValueError, match=said):
        compile_model(tiny(), config.override(RECIPE, words), 5)


def test_a_peak_that_is_never_reached_is_warned_of():
    with pytest.warns(UserWarning, match="never reaches its peak"):
        compile_model(tiny(), config.override(RECIPE, {"optim.warmup_epochs": 4.0}), 5)

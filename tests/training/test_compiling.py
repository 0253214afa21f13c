import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.tasks import Classify
from keras_vit.training.compiling import compile_model
from tests.training.small import RECIPE, SOURCE, tiny

LOSSES = Classify().compiled(SOURCE)


@pytest.mark.parametrize("words, said", [({"optim.accumulate": 16}, "at most 15.*Received: 16")])
def test_an_impossible_recipe_is_refused(words, said):
    with pytest.raises(ValueError, match=said):
        compile_model(tiny(), config.override(RECIPE, words).optim, 5, LOSSES)


def test_a_peak_that_is_never_reached_is_warned_of():
    with pytest.warns(UserWarning, match="never reaches its peak"):
        compile_model(tiny(), config.override(RECIPE, {"optim.warmup_epochs": 4.0}).optim, 5, LOSSES)

import contextlib
import dataclasses

import pytest

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.models import remat
from keras_vit.tasks import Classify
from keras_vit.training.compiling import compile_model, compile_run
from keras_vit.training.loop import Run
from tests.training.small import RECIPE, SOURCE, tiny

LOSSES = Classify().compiled(SOURCE)


def test_a_peak_that_is_never_reached_is_warned_of():
    with pytest.warns(UserWarning, match="never reaches its peak"):
        compile_model(tiny(), config.override(RECIPE, {"optim.warmup_epochs": 4.0}).optim, 5, LOSSES)


def test_half_precision_that_gains_nothing_is_warned_of():
    with pytest.warns(UserWarning, match="Training in float16 takes"):
        compile_model(tiny(dtype="mixed_float16"), RECIPE.optim, 5, LOSSES)


def test_blocks_that_a_task_adds_are_rematerialized_too(tmp_path, monkeypatch):
    inside = []

    @contextlib.contextmanager
    def scope(optim):
        inside.append(optim.remat)
        yield
        inside.pop()

    class Watched(Classify):
        def learner(self, model, teacher=None):
            assert inside == [True]
            return super().learner(model, teacher)

    monkeypatch.setattr(remat, "scope", scope)
    recipe = dataclasses.replace(config.override(RECIPE, {"optim.remat": True}), task=Watched())
    assert compile_run(Run(recipe, tiny(), SOURCE, SOURCE, tmp_path)).compiled and not inside

"""What a task takes none of: rows of a table, with the reason."""

import dataclasses

import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Data, Optim, Recipe, Task
from keras_vit.tasks import refusals
from tests.checkpoints.helpers import unexpected


class Places(Task):
    refuses = {"task.classes": "It has no classes.", **refusals.of_whole("maps")}


class More(Places):
    refuses = refusals.each(("optim.freeze", "model.pooling", "model.num_classes"), "It is new.")


def test_the_first_reason_is_said_with_all_settings_that_it_is_of():
    def checked(task, model=(), **parts):
        return lambda: task.check(Recipe(name="x", model=dict(model), task=task, **parts))

    calls = [
        (checked(More(("a",))), r"It has no classes. Received: task.classes=\('a',\)"),
        (
            checked(Places(), augment=Augment(mixup=0.2, cutmix=1.0)),
            "MixUp, CutMix and RandAugment do not change maps. Received: augment.mixup=0.2, augment.cutmix=1.0",
        ),
        (checked(More(), augment=Augment(randaugment=2)), "do not change maps. Received: augment.randaugment=2"),
        (checked(More(), data=Data(resize=32)), "Maps are scored whole: .*None. Received: data.resize=32"),
        (checked(More(), optim=Optim(freeze=0)), "It is new. Received: optim.freeze=0"),
        (checked(More(), dict(pooling="gap", num_classes=3)), "Received: model.pooling='gap', model.num_classes=3"),
        (lambda: More(("a",)).check(), "It has no classes"),
    ]
    assert not unexpected(calls)
    checked(More(), dict(pooling="none", num_classes=0))()
    checked(Places(), optim=Optim(freeze="all"))()
    checked(Task(("a",)), augment=Augment(mixup=0.2))()
    More().check()


@dataclasses.dataclass(frozen=True, repr=False)
class Made(Task):
    refuses = {"task.options": "It has none."}

    options: dict = dataclasses.field(default_factory=dict)


class Unknown(Task):
    refuses = {"task.tpyo": "It does not exist."}


class Deep(Task):
    refuses = {"augment.layers.first": "It does not exist."}


def test_rows_name_settings_and_defaults_may_be_made():
    recipe = Recipe(name="x", model={})
    Made().check(recipe)
    calls = [
        (lambda: Made(options={"a": 1}).check(), "It has none. Received: task.options={'a': 1}"),
        (lambda: Unknown().check(), "must name settings, such as 'augment.flip'. Received: 'task.tpyo'"),
        (lambda: Deep().check(recipe), "Received: 'augment.layers.first'"),
    ]
    assert not unexpected(calls)
    Deep().check()  # without a recipe its own settings alone

import types

import keras
import numpy as np
import pytest

from keras_vit.config import Augment, Recipe
from keras_vit.tasks import Regress

pytestmark = pytest.mark.backend

NUMBERS = np.float32([[10, 0], [20, 4], [30, 2]])
SMALL = dict(variant="mu/4", image_size=8)


def source(numbers=NUMBERS):
    return types.SimpleNamespace(targets={"numbers": np.float32(numbers)})


def test_a_model_begins_with_the_mean_in_the_users_units(tmp_path):
    task = Regress(names=("age", "weight")).on(source(), {})
    model = task.model(**SMALL)
    images = np.zeros((2, 8, 8, 3), "float32")
    np.testing.assert_allclose(np.asarray(model(images)), [[20, 2]] * 2, atol=1e-5)
    model.get_layer("head").bias.assign([1, -1])
    deviation = NUMBERS.std(0)
    expected = [[20 + deviation[0], 2 - deviation[1]]] * 2
    np.testing.assert_allclose(np.asarray(model(images)), expected, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        np.asarray(keras.models.load_model(tmp_path / "model.keras")(images)), expected, rtol=1e-5
    )
    loss = task.compiled(source())["loss"]
    np.testing.assert_allclose(float(loss(np.float32([[20, 2]]), model(images)[:1])), 1, rtol=1e-5)


def test_the_model_says_the_units():
    task = Regress(names=("a", "b"), mean=(10.0, 100.0), deviation=(2.0, 50.0))
    model = task.model(variant=None, width=8, depth=1, num_heads=1, mlp_dim=8, patch_size=4, image_size=4)
    asked = Regress(names=("a", "b"))
    assert asked.of_model(model) == task  # as a run's file has it, for the scores of `evaluate`


def test_data_must_have_the_numbers():
    with pytest.raises(ValueError, match=r"the numbers of the task, \('age',\). Received: 2 for each image"):
        Regress(names=("age",)).on(source())
    constant = source([[1, 5], [2, 5]])
    task = Regress(names=("a", "b")).on(constant)
    assert task.deviation == (0.5, 1.0)
    with pytest.raises(
        ValueError, match="'b' must not be the same number, in float32, for all training images.* Received: 5 2 times"
    ):
        task.settled(constant)
    times = source([[1.7e9, 5], [1.7e9 + 300, 6]])  # seconds since 1970
    with pytest.raises(ValueError, match="'a' must differ by more than float32 tells apart.*, in steps of 128"):
        task.settled(times)
    assert Regress(names=("a", "b"), mean=(0.0, 0.0), deviation=(1.0, 2.0)).on(source()).deviation == (1.0, 2.0)


@pytest.mark.parametrize(
    "options, parts, message",
    [
        (dict(names=()), {}, r"one name or more, all different. Received: names=\(\)"),
        (dict(names=("a", "a")), {}, "all different"),
        (dict(mean=(1.0, 2.0)), {}, r"Regress.mean must be a number for each of \('number',\). Received: \(1.0, 2.0\)"),
        (dict(deviation=(0.0,)), {}, r"Regress.deviation must be above 0. Received: \(0.0,\)"),
        (dict(classes=("a",)), {}, r"has no classes. Received: task.classes=\('a',\)"),
        ({}, dict(augment=Augment(mixup=0.2)), "Received: augment.mixup=0.2"),
    ],
)
def test_settings_that_contradict_each_other(options, parts, message):
    with pytest.raises(ValueError, match=message):
        Regress(**options).check(Recipe("x", SMALL, **parts))


def test_the_model_is_of_the_tasks_numbers():
    with pytest.raises(ValueError, match="outputs are the numbers of the task, 1. Received: model.num_classes=3"):
        Regress().check(Recipe("x", {**SMALL, "num_classes": 3}))
    with pytest.raises(ValueError, match=r"one vector for each image. Received: output shape \(None, 4, 1\)"):
        Regress().model(**SMALL, pooling="none")


def test_answers_are_numbers_with_what_is_true():
    task = Regress(names=("age", "weight"))
    assert task.answer(np.float32([20, 2])) == {"age": 20, "weight": 2}
    said = task.caption(np.float32([20.123, 2]), {"numbers": np.float32([21, 2])})
    assert said == "age 20.12 (true 21), weight 2 (true 2)"


def test_scores_are_in_the_unit_of_a_number_or_in_standard_deviations():
    several, one = Regress(names=("age_years", "weight")), Regress(names=("age_years",))
    assert several.titled("mae") == ("mean error", "standard deviations")  # of numbers in different units
    assert several.titled("rmse_age_years") == ("root mean squared error of age", "years")
    assert several.titled("mae_weight") == ("mean error of weight", "")
    assert several.titled("r2_age_years") == ("R2 of age", "")
    assert [one.titled(name)[1] for name in ("mae", "rmse", "r2", "loss")] == ["years", "years", "", ""]

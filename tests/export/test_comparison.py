import dataclasses
import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import vit
from keras_vit.export import comparison
from keras_vit.export.examples import sample
from keras_vit.models import kinds
from keras_vit.traits import Traits


@pytest.fixture(scope="module")
def model():
    model = vit("mu/4", image_size=8, channels=1, num_classes=3)
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 3)))
    return model


def test_a_faithful_runtime_passes(model, tmp_path):
    images = sample(Traits(model), None)
    report = comparison.compare_with_model(tmp_path, Traits(model), images, lambda x: np.asarray(model(x)), {"ADD": 2})
    assert report.max_abs_diff == report.mean_abs_diff == 0 and report.agreement == 1 and report.ms["all"] > 0
    assert "2 operators: ADD 2" in str(report)


def test_other_logits_are_an_error(model, tmp_path):
    for fault in (lambda y: y + 0.1, lambda y: y * np.nan, lambda y: -y):
        run = lambda x, fault=fault: fault(np.asarray(model(x)))  # noqa: E731
        with pytest.raises(RuntimeError, match="does not match the model: outputs differ by up to"):
            comparison.compare_with_model(tmp_path, Traits(model), sample(Traits(model), None), run, {})


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16"])
def test_a_copy_that_computes_a_little_else_is_an_error_in_mixed_precision(dtype, tmp_path):
    class Scaled(keras.layers.Layer):
        """Its configuration misses its factor, a difference that the mean over a few classes would hide."""

        factors = (1.0, 1.0, 1.0)

        def call(self, x):
            return x * keras.ops.convert_to_tensor(self.factors, x.dtype)

    whole = vit("mu/4", image_size=8, channels=1, num_classes=3, dtype=dtype)
    whole.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 3)))
    layer = Scaled(dtype=dtype)
    model = keras.Model(whole.input, layer(whole.output))
    images = sample(Traits(model), None)
    assert comparison.float32_of(Traits(model), images) is not model
    layer.factors = (1.0, 1.25, 1.0)
    model = keras.Model(whole.input, layer(whole.output))
    with pytest.raises(RuntimeError, match=r"on a copy by its layers' `get_config` differ from the model's by up to"):
        comparison.compare_with_model(tmp_path, Traits(model), images, None, {})


def test_a_flex_operator_is_an_error(model, tmp_path):
    with pytest.raises(RuntimeError, match="FlexErf"):
        comparison.compare_with_model(
            tmp_path, Traits(model), sample(Traits(model), None), None, {"ADD": 1, "FlexErf": 2}
        )


def test_images_of_the_caller_are_used_and_checked(model):
    images = np.full((2, 8, 8, 1), 7, "uint8")
    np.testing.assert_array_equal(sample(Traits(model), images), images)
    with pytest.raises(ValueError, match=r"shape=\(2, 9, 8, 1\)"):
        sample(Traits(model), np.zeros((2, 9, 8, 1)))


def test_integers_may_differ_more_but_not_by_anything(model, tmp_path):
    images = sample(Traits(model), None)
    run = lambda x: np.asarray(model(x)) + 0.02 * np.ptp(np.asarray(model(images)))  # noqa: E731
    assert comparison.compare_with_model(tmp_path, Traits(model), images, run, {}, quantize="int8").agreement == 1
    for quantize in (None, "float16"):
        with pytest.raises(RuntimeError, match="does not match the model"):
            comparison.compare_with_model(tmp_path, Traits(model), images, run, {}, quantize=quantize)
    with pytest.raises(RuntimeError, match="of the mean deviation"):
        comparison.compare_with_model(
            tmp_path, Traits(model), images, lambda x: -np.asarray(model(x)), {}, quantize="int8"
        )


def test_probabilities_of_many_classes_are_compared_too(tmp_path):
    model = vit("mu/4", image_size=8, num_classes=1000)
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 1000)))
    wrong = lambda x: np.full((len(x), 1000), 1e-3)  # noqa: E731
    with pytest.raises(RuntimeError, match="of the mean deviation"):
        comparison.compare_with_model(
            tmp_path, Traits(model), sample(Traits(model), None), wrong, {}, quantize="int8", probabilities=True
        )


def test_accuracy_is_counted_where_classes_are_known(model, tmp_path):
    images = sample(Traits(model), None)
    classes = np.asarray(model(images)).argmax(-1)
    classes[0] = (classes[0] + 1) % 3
    run, score = lambda x: np.asarray(model(x)), comparison.scorer(Traits(model), images, classes, None)
    report = comparison.compare_with_model(tmp_path, Traits(model), images, run, {}, score=score)
    assert report.accuracy == {"of this file": 7 / 8, "of the model": 7 / 8} and report.score == "top-1"
    assert "top-1 of this file 87.50%" in str(report)
    report = comparison.compare_with_model(
        tmp_path, Traits(model), images, run, {}, score=lambda _: {}
    )  # a task without targets
    assert report.accuracy is None


def test_a_model_that_says_always_the_same_is_warned_of(tmp_path):
    model = vit("mu/4", image_size=8, channels=1, num_classes=3)
    with pytest.warns(UserWarning, match="the comparison shows nothing"):
        comparison.compare_with_model(
            tmp_path, Traits(model), sample(Traits(model), None), lambda x: np.asarray(model(x)), {}
        )


def test_classes_are_those_of_the_images(model):
    with pytest.raises(ValueError, match="images=None"):
        comparison.scorer(Traits(model), None, [1], None)
    with pytest.raises(ValueError, match="2 images and 1 classes"):
        comparison.scorer(Traits(model), np.zeros((2, 8, 8, 1)), np.array([1]), None)


def test_a_single_logit_is_compared_over_the_images(tmp_path):
    model = vit("mu/4", image_size=8, num_classes=1)
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 1)))
    images = sample(Traits(model), None)
    assert comparison.compare_with_model(
        tmp_path, Traits(model), images, lambda x: np.asarray(model(x)) * 1.001, {}, quantize="int8"
    )
    with pytest.raises(RuntimeError, match="of the mean deviation"):
        comparison.compare_with_model(
            tmp_path, Traits(model), images, lambda x: np.asarray(model(x))[::-1], {}, quantize="int8"
        )


def test_the_facts_are_json_whatever_was_measured(tmp_path):
    @dataclasses.dataclass
    class Found:
        largest: float = float("inf")
        parts: tuple = ({"ms": float("nan")},)

    comparison.write_json(tmp_path / "a.json", Found(), labels=["a"])
    read = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert read == {"labels": ["a"], "report": {"largest": None, "parts": [{"ms": None}]}}


def test_classes_are_for_classifiers_alone(model):
    images = np.zeros((8, 8, 8, 3))
    for other in (vit("mu/4", image_size=8, num_classes=1), vit("mu/4", image_size=8, num_classes=0, pooling="none")):
        with pytest.raises(ValueError, match="`classes` are for classifiers of two classes or more"):
            comparison.scorer(Traits(other), images, np.zeros(8, int), None)
    with pytest.raises(ValueError, match="Received: both"):
        comparison.scorer(Traits(model), images[..., :1], np.zeros(8, int), lambda outputs: {})


def test_each_number_is_compared_in_its_own_range(model, tmp_path):
    kinds.note(model, "numbers")
    scale = np.array([1e5, 1.0, 1e-3], "float32")
    units = keras.layers.Rescaling(scale.tolist(), (7 * scale).tolist(), name="units")
    numbers = keras.Model(model.input, units(model.output), name="numbers")
    kinds.note(numbers, "numbers")
    images = sample(Traits(numbers), None)
    report = comparison.compare_with_model(tmp_path, Traits(numbers), images, lambda x: np.asarray(numbers(x)), {})
    assert report.own_diff == 0 and "and 0.0% of a number's own range" in str(report)
    for i in range(3):
        off = np.eye(3)[i] * scale * 0.1
        run = lambda x, off=off: np.asarray(numbers(x)) + off  # noqa: E731
        with pytest.raises(RuntimeError, match="does not match the model"):
            comparison.compare_with_model(tmp_path, Traits(numbers), images, run, {})
    wanted = np.asarray(numbers(images))
    for outputs in (wanted[:, :2], wanted):
        comparison.close([outputs], [outputs], Traits(numbers), "here", 1e-3)
    with pytest.raises(RuntimeError, match="differ from the model's by up to 0.0001, of a range of"):
        comparison.close([wanted + [0, 0, 1e-4]], [wanted], Traits(numbers), "here", 1e-3)

import dataclasses
import json
import types
import warnings

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.config import Augment, Recipe, from_dict, override, to_dict
from keras_vit.models import kinds
from keras_vit.runs import output_files
from keras_vit.tasks import Classify

pytestmark = pytest.mark.backend

LABELS = np.array([[1, 0, 0], [1, 1, 0], [0, -1, 0], [0, 0, -1]], "int8")
SMALL = dict(variant="mu/4", image_size=8, num_classes=3)


def source(labels=LABELS, names=("cat", "dog", "owl")):
    held = {"multilabels": np.asarray(labels, "int8")}
    return types.SimpleNamespace(targets=held, class_names=names, check_labels=lambda: None)


def task(**options):
    return Classify(multilabel=True, classes=("cat", "dog", "owl"), **options)


def test_multilabel_survives_everything_that_is_done_with_a_recipe():
    plain = Recipe("x", SMALL, task=Classify(label_smoothing=0.1))
    changed = override(plain, {"task.multilabel": True, "task.loss": "asymmetric"})
    assert changed.task.multilabel and changed.task.label_smoothing == 0.1
    again = from_dict(json.loads(json.dumps(to_dict(changed))))
    assert again == changed and to_dict(changed)["task"]["kind"] == "Classify"
    assert eval(repr(changed.task), {"Classify": Classify}) == changed.task
    assert dataclasses.replace(changed.task, head_bias=-2.0).multilabel and type(changed.task) is Classify
    assert Classify() != Classify(multilabel=True)
    kept = [to_dict(Recipe("x", SMALL, task=one))["task"] for one in (Classify(), Classify(multilabel=True))]
    assert ["thresholds" in one for one in kept] == [False, True]  # as in files of runs that were made before


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(loss="softmax"), "a sigmoid each: a softmax has one label. Received: loss='softmax'"),
        (dict(metrics=("balanced_accuracy",)), "scores of their own, map, macro_f1, micro_f1. Received: metrics="),
        (dict(distill="hard", teacher="x"), "by distill='soft'.* Received: distill='hard'"),
        (dict(thresholds=(0.5, 0.5)), r"from 0 to 1 for each class, 3. Received: \(0.5, 0.5\)"),
        (dict(thresholds=(0.5, 0.5, 2.0)), "thresholds must be a number from 0 to 1"),
    ],
)
def test_settings_that_contradict_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        Classify(multilabel=True, **options).check(Recipe("x", SMALL))


def test_a_class_of_ones_own_has_the_same_rules():
    own = type("Own", (Classify,), {"temperature": 2.0})
    assert own(multilabel=True).targets == ("multilabels",) and own().targets == ("labels",)
    assert own(multilabel=True).gives == "labels" and own().gives == "classes"
    back = dataclasses.replace(Classify(multilabel=True, loss="sigmoid"), multilabel=False)
    assert back == Classify(loss="sigmoid") and back.best == ("val_accuracy", "max")


@pytest.mark.parametrize(
    "options, error, message",
    [
        (dict(multilabel="yes"), TypeError, "Classify.multilabel must be bool. Received: 'yes'"),
        (
            dict(thresholds=(0.5, 0.5)),
            ValueError,
            r"thresholds needs multilabel=True. Received: thresholds=\(0.5, 0.5\)",
        ),
        (dict(loss="asymmetric"), ValueError, "for several labels, multilabel=True. Received: loss='asymmetric'"),
        (dict(loss="hinge"), TypeError, "Classify.loss must be one of 'softmax', .* Received: 'hinge'"),
    ],
)
def test_options_of_several_labels_need_several_labels(options, error, message):
    with pytest.raises(error, match=message):
        Classify(**options)


def test_classes_without_an_image_are_named():
    on = Classify(multilabel=True).on(source(), {"num_classes": None})
    assert on.classes == ("cat", "dog", "owl") and on.columns == {"classes": on.classes}
    with pytest.warns(UserWarning, match="No training image has 'owl': the model cannot learn them"):
        assert on.settled(source()) == {"num_classes": 3}
    run = types.SimpleNamespace(validation=source())
    with pytest.warns(UserWarning, match="No validation image has 'owl': no part of .*, and with the threshold 0.5"):
        on.callbacks(run)
    many = source(np.eye(2, 30), tuple(map(str, range(30))))
    with pytest.warns(UserWarning, match="has '2', .*'11' and 18 more:"):
        Classify(multilabel=True).on(many).settled(many)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on.settled(source(np.eye(3)))
    with pytest.raises(ValueError, match="One image or more must have a label. Received: 2 images without any"):
        on.on(source(np.zeros((2, 3))))
    with pytest.raises(ValueError, match="two classes or more. Received: cat"):
        Classify(multilabel=True).on(source([[1], [0]], ("cat",)))


def test_answers_begin_with_what_reaches_its_threshold():
    output = np.log([0.4 / 0.6, 0.8 / 0.2, 0.3 / 0.7])
    on = task(thresholds=(0.3, 0.9, 0.2))
    assert list(on.answer(output)) == ["cat", "owl", "dog"] and on.answer(output)["dog"] == pytest.approx(0.8)
    assert [name for name, _ in on.listed(output, 1)] == ["cat", "owl"]  # all that hold
    assert list(on.marked(on.answer(output))) == ["[cat]", "[owl]", "dog"]
    assert list(task().answer(output)) == ["dog", "cat", "owl"] and task().thresholds_by_name()["owl"] == 0.5
    rows = output_files.KINDS["labels"].entries(on, output, "a.png", [("owl", 0.3), ("dog", 0.8)], None)
    assert rows == [
        {"image_id": "a.png", "name": "owl", "value": 0.3, "threshold": 0.2, "holds": True},
        {"image_id": "a.png", "name": "dog", "value": 0.8, "threshold": 0.9, "holds": False},
    ]


def test_captions_count_only_what_is_known():
    on, output = task(), np.array([2.0, 2.0, -2.0])
    assert on.caption(output, {"multilabels": [1, 1, 0]}) == "cat, dog"
    assert on.caption(output, {"multilabels": [1, -1, 0]}) == "cat"
    assert on.caption(output, {"multilabels": [1, 0, 0]}) == "cat; predicted cat, dog"
    assert on.caption(-np.abs(output), {"multilabels": [0, 0, 1]}) == "owl; predicted no label"


def test_thresholds_are_in_the_models_metadata_and_not_of_other_weights():
    model = vit(**SMALL)
    metadata = model.get_layer("rescale").metadata
    kinds.note(model, task().gives)
    metadata["thresholds"] = [0.1, 0.2, 0.3]
    assert task().of_model(model).thresholds == (0.1, 0.2, 0.3)
    assert task(thresholds=(0.5, 0.5, 0.5)).of_model(model).thresholds == (0.5, 0.5, 0.5)  # the recipe's
    metadata["thresholds"] = [0.1, "x", 0.3]
    assert task().of_model(model).thresholds == ()
    task(head_bias=-3.0).learner(model)
    assert "thresholds" not in metadata
    np.testing.assert_array_equal(model.get_layer("head").bias, [-3] * 3)


def test_blended_labels_are_unknown_if_either_is():
    tf = pytest.importorskip("tensorflow")
    examples = {"images": tf.random.stateless_uniform((4, 8, 8, 3), (1, 2)), "multilabels": tf.constant(LABELS)}
    _, plain = task().batch(examples, None, None)
    np.testing.assert_array_equal(plain, LABELS)
    before = np.roll(LABELS, 1, axis=0)
    for augment in (Augment(mixup=0.5), Augment(cutmix=1.0), Augment(mixup=0.5, cutmix=1.0)):
        for seed in range(3):
            images, mixed = task().batch(examples, augment, tf.constant([seed, 7], "int64"))
            mixed = np.asarray(mixed)
            assert images.shape == (4, 8, 8, 3)
            share = mixed[1, 1]  # dog is in the second image alone
            expected = share * np.maximum(LABELS, 0) + (1 - share) * np.maximum(before, 0)
            unknown = (LABELS < 0) | ((before < 0) & (share < 1))
            np.testing.assert_allclose(mixed, np.where(unknown, -1, expected), atol=1e-6)


def test_distillation_compares_each_class_by_itself():
    from keras_vit import Distiller

    student, teacher = vit(**SMALL), vit(**SMALL)
    learner = task(distill="soft", teacher="x", temperature=2.0).learner(student, teacher)
    assert isinstance(learner, Distiller) and learner.kind == "several"
    logits = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    teacher.get_layer("head").bias.assign([1.0, -2.0, 0.5])
    images = np.zeros((2, 8, 8, 3), "float32")
    p, q = (1 / (1 + np.exp(-np.asarray(x) / 2)) for x in (teacher(images), logits))
    expected = 4 * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).sum(-1)
    np.testing.assert_allclose(np.asarray(learner.from_teacher(images, logits)), expected, rtol=1e-4)
    assert isinstance(keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(learner)), Distiller)

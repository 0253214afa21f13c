import keras
import numpy as np
import pytest
from scipy.special import softmax

from keras_vit import config
from keras_vit.config import changes, plain
from keras_vit.tasks import Classify
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
LABELS, OUTPUTS = RNG.integers(0, 3, 50), RNG.normal(size=(50, 3))


@keras.saving.register_keras_serializable(package="tests")
class Share(keras.metrics.Metric):
    """The share of images whose true class has a probability above a threshold."""

    def __init__(self, threshold=0.5, name="share", **kwargs):
        super().__init__(name=name, **kwargs)
        self.threshold = threshold
        self.mean = keras.metrics.Mean()

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.mean.update_state(keras.ops.cast(keras.ops.sum(y_true * y_pred, -1) > self.threshold, "float32"))

    def result(self):
        return self.mean.result()

    def get_config(self):
        return {**super().get_config(), "threshold": self.threshold}


@keras.saving.register_keras_serializable(package="tests")
def gap(y_true, y_pred):
    return keras.ops.sum(keras.ops.abs(y_true - y_pred), -1)


def scored(*metrics):
    tally = Classify(classes=tuple("abc"), metrics=metrics).tally()
    for i in range(0, 50, 20):
        tally.add({"labels": LABELS[i : i + 20]}, OUTPUTS[i : i + 20])
    assert tuple(tally.result()) == tally.scores
    return tally.result()


@slow_on_jax
def test_metrics_of_keras_and_ones_own_are_as_on_all_images_at_once():
    probabilities, truth = softmax(OUTPUTS, -1).astype("float32"), np.eye(3, dtype="float32")[LABELS]
    objects = (
        keras.metrics.F1Score(average="macro", name="macro"),
        keras.metrics.TopKCategoricalAccuracy(k=2),
        Share(threshold=0.3),
        keras.metrics.MeanMetricWrapper(gap, name="wrapped"),
    )
    found = scored(*objects, "keras.metrics.SparseCategoricalCrossentropy", gap, "keras.metrics.F1Score()")
    each = theirs(keras.metrics.F1Score(), truth, probabilities)
    assert found == pytest.approx(
        {metric.name: float(theirs(metric, truth, probabilities)) for metric in objects}
        | {"sparse_categorical_crossentropy": -np.log(probabilities[np.arange(50), LABELS]).mean()}
        | {"gap": np.abs(truth - probabilities).sum(-1).mean()}
        | {f"f1_score {name}": float(value) for name, value in zip("abc", each)},
        rel=1e-5,
    )


@keras.saving.register_keras_serializable(package="tests")
class Nameless(Share):
    def __init__(self, name=None, **kwargs):
        super().__init__(name=name, **kwargs)


def test_a_metric_without_a_name_has_one_that_stays():
    for _ in range(3):
        assert [*scored(Nameless)] == ["nameless"]


def theirs(metric, truth, probabilities):
    metric.reset_state()
    metric.update_state(truth, probabilities)
    return keras.ops.convert_to_numpy(metric.result())


def test_they_survive_files_and_the_command_line():
    task = Classify(metrics=["f1", Share(threshold=0.3), keras.metrics.AUC, gap])
    assert task.metrics == ("f1", "tests>Share(name='share', threshold=0.3)", "keras.metrics.AUC", "tests>gap")
    recipe = config.Recipe(name="x", model={}, task=task)
    assert plain.from_dict(plain.to_dict(recipe)) == recipe
    for word, metrics in {
        'task.metrics=("f1","auc")': ("f1", "auc"),
        "task.metrics=f1": ("f1",),
        "task.metrics=keras.metrics.F1Score(average='macro')": ("keras.metrics.F1Score(average='macro')",),
    }.items():
        assert changes.override(recipe, changes.parse([word])).task.metrics == metrics


@pytest.mark.parametrize(
    "metrics, said",
    [
        ("f2", r"one of accuracy, .*, matthews, .*Received: 'f2'"),
        ("keras.metrics.F2Score", "of Keras, such as 'keras.metrics.F1Score'.*Received: 'keras.metrics.F2Score'"),
        ("tests>Missing", "your recipe's file. Received: 'tests>Missing'"),
        ("keras.metrics.F1Score(average=", "written as keras.metrics.F1Score"),
        ("keras.metrics.F1Score('macro')", "written as keras.metrics.F1Score"),
        ("keras.metrics.F1Score(average=open)", "written as keras.metrics.F1Score"),
        ("keras.metrics.F1Score(average='most')", "compare labels and probabilities.*Invalid `average`"),
        ("keras.metrics.Mean", "compare labels and probabilities.*update_state takes values"),
        ("keras.metrics.CategoricalCrossentropy(from_logits=True)", "probabilities.*from_logits=True is for logits"),
        ("keras.metrics.Accuracy", "wrong predictions alike: it is for predicted indices"),
        ("keras.metrics.MeanIoU(num_classes=3)", "wrong predictions alike: it is for predicted indices"),
        (
            "keras.metrics.IoU(num_classes=2, target_class_ids=[0])",
            "wrong predictions alike: it is for predicted indices",
        ),
        ("keras.metrics.TopKCategoricalAccuracy(k=3)", "alike: .*or for more classes"),
        ("keras.metrics.CategoricalAccuracy(name='accuracy')", "another name than loss, .*Received: accuracy"),
        (Share(name="loss"), "another name than loss, .*Received: loss"),
        (("auc", "keras.metrics.AUC", "keras.metrics.AUC(num_thresholds=9)"), "differ in name: give one a `name`"),
        ((), "one metric or more"),
        (("f1", "f1"), "all different"),
        ("partial_auc", "is for two classes. Received: 3 classes"),
        ("top_5_accuracy", "six classes or more. Received: 3 classes"),
    ],
)
def test_what_is_no_metric_is_refused(metrics, said):
    with pytest.raises(ValueError, match=said):
        Classify(classes=tuple("abc"), metrics=metrics).tally()


def test_an_unknown_name_is_refused_with_the_recipe():
    with pytest.raises(ValueError, match="one of accuracy"):
        config.check_recipe(config.Recipe(name="x", model={}, task=Classify(metrics=("f2",))))
    with pytest.raises(ValueError, match="one that sum to one|sum to one"):
        Classify(classes=tuple("abc"), loss="sigmoid", metrics=("log_loss",)).tally()
    with pytest.raises(TypeError, match="Received: 3"):
        Classify(metrics=3)


def test_what_a_file_cannot_name_is_refused():
    class Mine(Share):
        pass

    for metric, said in (
        (Mine(), "must be registered"),
        (lambda y_true, y_pred: y_pred, "must be registered"),
        (Share(threshold=np.zeros(3)), "settings of plain values"),
    ):
        with pytest.raises(ValueError, match=said):
            Classify(metrics=(metric,))

import functools

import keras
import numpy as np
import pytest
from keras import losses, metrics

from keras_vit import check_data, vit
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend

PIXELS = np.full((2, 4, 4, 3), 255, "uint8")
LABELS = {"sparse": np.array([0, 2]), "hot": np.eye(3)[[0, 2]], "one": np.array([0, 1])}


def model(labels, last=None):
    inner = vit("mu/4", image_size=4, num_classes=1 if labels == "one" else 3, name="mine")
    return keras.Sequential([inner, last], name="mine") if last is not None else inner


def own(y_true, y_pred):
    return -keras.ops.sum(y_true * keras.ops.log(y_pred + 1e-7), axis=-1)


# A loss of probabilities, the labels that it takes, and what to write instead.
OF_PROBABILITIES = [
    ("sparse_categorical_crossentropy", "sparse", r"SparseCategoricalCrossentropy\(from_logits=True\)"),
    (["sparse_categorical_crossentropy"], "sparse", r"SparseCategoricalCrossentropy\(from_logits=True\)"),
    ({"head": losses.SparseCategoricalCrossentropy()}, "sparse", r"SparseCategoricalCrossentropy\(from_logits=True\)"),
    (losses.sparse_categorical_crossentropy, "sparse", r"SparseCategoricalCrossentropy\(from_logits=True\)"),
    (functools.partial(losses.sparse_categorical_crossentropy), "sparse", "SparseCategoricalCrossentropy"),
    ("categorical_crossentropy", "hot", r"keras.losses.CategoricalCrossentropy\(from_logits=True\)"),
    (losses.CategoricalCrossentropy(label_smoothing=0.1), "hot", r"from_logits=True, label_smoothing=0.1\)"),
    ("categorical_focal_crossentropy", "hot", r"CategoricalFocalCrossentropy\(from_logits=True\)"),
    ("kl_divergence", "hot", r"keras.losses.CategoricalCrossentropy\(from_logits=True\)"),
    (own, "hot", r"keras.losses.CategoricalCrossentropy\(from_logits=True\)"),
    ("binary_crossentropy", "hot", r"keras.losses.BinaryCrossentropy\(from_logits=True\)"),
    ("binary_crossentropy", "one", r"BinaryCrossentropy\(from_logits=True\).*Activation\(.sigmoid.\)"),
    (losses.BinaryFocalCrossentropy(gamma=3), "one", r"BinaryFocalCrossentropy\(from_logits=True, gamma=3\)"),
]
OF_LOGITS = [
    (losses.SparseCategoricalCrossentropy(from_logits=True), "sparse"),
    (functools.partial(losses.sparse_categorical_crossentropy, from_logits=True), "sparse"),
    (losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), "hot"),
    (losses.BinaryFocalCrossentropy(from_logits=True), "hot"),
    (losses.BinaryCrossentropy(from_logits=True), "one"),
]


@slow_on_jax
@pytest.mark.parametrize("loss, labels, instead", OF_PROBABILITIES)
def test_a_loss_of_probabilities_needs_a_model_of_probabilities(loss, labels, instead):
    logits = model(labels)
    logits.compile("adam", loss)
    for data in ((PIXELS, LABELS[labels]), ([(PIXELS, LABELS[labels])],)):
        with pytest.raises(ValueError, match=f"returns logits: it would not learn.*{instead}.*'mine'"):
            check_data(logits, *data)
    for last in (keras.layers.Softmax(), keras.layers.Activation("sigmoid")):
        if labels != "one" or not isinstance(last, keras.layers.Softmax):
            probabilities = model(labels, last)
            probabilities.compile("adam", loss["head"] if isinstance(loss, dict) else loss, metrics=["accuracy"])
            check_data(probabilities, PIXELS, LABELS[labels])


@pytest.mark.parametrize("loss, labels", OF_LOGITS)
def test_a_loss_of_logits_needs_a_model_of_logits(loss, labels):
    logits = model(labels)
    logits.compile("adam", loss)
    check_data(logits, PIXELS, LABELS[labels])
    probabilities = model(labels, keras.layers.Activation("sigmoid"))
    probabilities.compile("adam", loss)
    with pytest.raises(ValueError, match="takes logits, but the model ends in a softmax.*from_logits=False"):
        check_data(probabilities, PIXELS, LABELS[labels])


def test_other_losses_and_models_pass():
    for loss, labels in (("hinge", "one"), ("categorical_hinge", "hot"), (None, "sparse")):
        other = model(labels)
        other.compile("adam", loss)
        check_data(other, PIXELS, LABELS[labels])
    image = keras.Input((4, 4, 3))  # two models, averaged after their softmax
    parts = [keras.Sequential([model("sparse"), keras.layers.Softmax()], name=name) for name in "ab"]
    both = keras.layers.Average()([part(image) for part in parts])
    both = keras.Model(image, both)
    both.compile("adam", "sparse_categorical_crossentropy")
    check_data(both, PIXELS, LABELS["sparse"])


@slow_on_jax
def test_a_model_that_was_refused_does_not_learn_and_the_one_in_its_place_does():
    for made, loss, moves in (
        (model("sparse"), "sparse_categorical_crossentropy", False),
        (model("sparse"), losses.SparseCategoricalCrossentropy(from_logits=True), True),
        (model("sparse", keras.layers.Softmax()), "sparse_categorical_crossentropy", True),
    ):
        made.compile("sgd", loss, run_eagerly=True)
        before = [keras.ops.convert_to_numpy(v) for v in made.trainable_variables]
        made.fit(PIXELS, LABELS["sparse"], verbose=0)
        moved = max(np.abs(keras.ops.convert_to_numpy(v) - b).max() for v, b in zip(made.trainable_variables, before))
        assert (moved > 0) == moves


def test_a_metric_of_probabilities_is_refused_with_what_to_write():
    loss = losses.BinaryCrossentropy(from_logits=True)
    logits, probabilities = model("one"), model("one", keras.layers.Activation("sigmoid"))
    for metric, instead in (
        ("accuracy", "metrics.BinaryAccuracy(threshold=0)"),
        ("acc", "metrics.BinaryAccuracy(threshold=0)"),
        ("binary_accuracy", "metrics.BinaryAccuracy(threshold=0)"),
        (metrics.BinaryAccuracy(), "metrics.BinaryAccuracy(threshold=0)"),
        (metrics.Precision(), "metrics.Precision(thresholds=0)"),
        (metrics.AUC(), "metrics.AUC(from_logits=True)"),
        ("binary_crossentropy", "metrics.BinaryCrossentropy(from_logits=True)"),
        (metrics.BinaryCrossentropy(), "metrics.BinaryCrossentropy(from_logits=True)"),
    ):
        logits.compile("adam", loss, **{"weighted_metrics" if metric == "acc" else "metrics": [metric]})
        with pytest.raises(ValueError, match="where class 1 begins at 0") as refused:
            check_data(logits, PIXELS, LABELS["one"])
        assert f"metrics=[keras.{instead}]" in str(refused.value)
        right = eval(instead, {"metrics": metrics})
        logits.compile("adam", loss, metrics=[right])
        check_data(logits, PIXELS, LABELS["one"])
        probabilities.compile("adam", "binary_crossentropy", metrics=[metric])
        check_data(probabilities, PIXELS, LABELS["one"])
    several = model("sparse")
    several.compile("adam", losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    check_data(several, PIXELS, LABELS["sparse"])

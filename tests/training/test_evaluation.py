import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.training import evaluation
from tests.training.small import RECIPE, SOURCE, tiny


def test_accuracy_counts_every_image():
    logits = evaluation.logits_of(lambda images: np.eye(3)[SOURCE.labels[: len(images)]], RECIPE, SOURCE, (8, 8, 1))
    expected = np.mean([SOURCE.labels[i] == SOURCE.labels[i % 8] for i in range(40)])
    assert evaluation.measure(("accuracy",), *logits) == {"accuracy": pytest.approx(expected)}


def test_a_model_is_measured_by_its_own_predictions():
    model = tiny()
    logits, labels = evaluation.logits_of(evaluation.predictor(model), RECIPE, SOURCE, (8, 8, 1))
    assert logits.shape == (40, 3) and (labels == SOURCE.labels).all()
    expected = {"accuracy": pytest.approx(np.mean(logits.argmax(-1) == labels))}
    assert evaluation.measure_model(model, RECIPE, SOURCE) == expected

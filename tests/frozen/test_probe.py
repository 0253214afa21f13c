import numpy as np
import pytest

import keras_vit

pytestmark = pytest.mark.backend


@pytest.fixture(scope="module")
def labels(index):
    return ["light" if "light" in path else "dark" for path in index.paths]


def test_the_head_is_the_classifier(index, model, labels):
    before = [weight.copy() for weight in model.get_weights()]
    found = keras_vit.probe(index, labels, model=model)
    assert found.classes == ["dark", "light"] and found.accuracy == 1
    logits = np.asarray(found.model(keras_vit.preprocess(model, [index.file(i) for i in range(11)])))
    assert [found.classes[i] for i in logits.argmax(1)] == labels
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))
    assert "labels" not in (model.get_layer("rescale").metadata or {})
    assert found.model.get_layer("rescale").metadata["labels"] == ["dark", "light"]


def test_logits_are_scikit_learn_s(index, model):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    labels = [f"class {i % 3}" for i in range(11)]
    found = keras_vit.probe(index, labels, model=model)
    scaler = StandardScaler().fit(index.vectors)
    vectors = scaler.transform(index.vectors)
    classifier = LogisticRegression(C=found.strength, max_iter=1000).fit(vectors, labels)
    logits = np.asarray(found.model(keras_vit.preprocess(model, [index.file(i) for i in range(11)])))
    np.testing.assert_allclose(logits, classifier.decision_function(vectors), atol=1e-3)


def test_it_is_a_vit_that_can_be_saved_and_read_again(index, model, labels, tmp_path):
    found = keras_vit.probe(index, labels, model=model).model
    found.save(tmp_path / "probe.keras")
    again = keras_vit.from_pretrained(tmp_path / "probe.keras")
    images = keras_vit.preprocess(model, [index.file(0)])
    np.testing.assert_allclose(np.asarray(again(images)), np.asarray(found(images)), atol=1e-5)
    assert keras_vit.from_pretrained(tmp_path / "probe.keras", num_classes=5).output_shape == (None, 5)


def test_bad_input(index, model):
    with pytest.raises(ValueError, match="Each class needs two images. Received: one of 'b'"):
        keras_vit.probe(index, ["a"] * 10 + ["b"], model=model)
    with pytest.raises(ValueError, match="Received: validation=0"):
        keras_vit.probe(index, validation=0.0, model=model)
    with pytest.raises(ValueError, match="Received: validation=1.5"):
        keras_vit.probe(index, validation=1.5, model=model)


def test_rare_classes_are_on_both_sides(index, model):
    labels = ["rare"] * 2 + ["usual"] * 9
    for validation in (0.01, 0.9):
        assert keras_vit.probe(index, labels, model=model, validation=validation).classes == ["rare", "usual"]
    with pytest.raises(ValueError, match="`seed` must be an integer, 0 or more. Received: seed=-1"):
        keras_vit.probe(index, labels, model=model, seed=-1)


@pytest.mark.filterwarnings("error:The structure of `inputs`")
def test_it_takes_one_array_as_any_vit(index, model, labels):
    found = keras_vit.probe(index, labels, model=model).model
    assert isinstance(found.input_shape, tuple) and found(np.zeros((1, 12, 8, 3))).shape == (1, 2)


def test_of_equal_accuracies_the_surer_answer_is_taken(index, model, labels):
    found = keras_vit.probe(index, labels, model=model)
    assert found.accuracy == 1 and found.strength > 1e-4  # much regularization is as accurate, and says 50 %


def test_the_temperature_of_the_old_head_is_left_out(index, model, labels):
    model.get_layer("rescale").metadata["temperature"] = 0.5
    found = keras_vit.probe(index, labels, model=model).model
    assert found.get_layer("rescale").metadata["labels"] and "temperature" not in found.get_layer("rescale").metadata
    del model.get_layer("rescale").metadata["temperature"]

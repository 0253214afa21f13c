import keras
import numpy as np
import pytest

from keras_vit import load_run, vit
from keras_vit.models.outputs import (
    count_classes,
    labels_beside,
    logits_of,
    probabilities_of,
    read_labels,
    returns_probabilities,
    write_labels,
)
from keras_vit.runs.trained import forward

pytestmark = pytest.mark.backend

NAMES = ("a", "", " b ", "c\u2028d", "e\x0bf\x0c\x1c\x85g", "h\u2029", "é", "\udce9", "")


def test_names_of_classes_hold_any_character_of_a_line(tmp_path):
    write_labels(tmp_path / "labels.txt", NAMES)
    assert read_labels(tmp_path / "labels.txt") == NAMES
    for text, names in (("a\nb", ("a", "b")), ("a\r\nb\r\n", ("a", "b")), ("", ())):
        (tmp_path / "labels.txt").write_bytes(text.encode())
        assert read_labels(tmp_path / "labels.txt") == names


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "\ud800", "a\udc00"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="A class name must be one line of UTF-8"):
        write_labels(tmp_path / "labels.txt", ["é", name])
    assert not (tmp_path / "labels.txt").exists()


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\n", "utf-8-sig")
    assert read_labels(tmp_path / "labels.txt") == ("cat", "dog")


def test_names_lie_beside_a_model(tmp_path):
    assert labels_beside(tmp_path / "model.keras") is None
    write_labels(tmp_path / "labels.txt", "ab")
    assert labels_beside(tmp_path / "model.keras") is None  # of nothing that is known
    (tmp_path / "recipe.json").write_text("{}")
    assert labels_beside(tmp_path / "best.keras") == ("a", "b")
    write_labels(tmp_path / "best.labels.txt", "xyz")
    assert labels_beside(tmp_path / "best.keras") == ("x", "y", "z")


def softmax_inside():
    inputs = keras.Input((4,))
    return keras.Model(inputs, keras.ops.softmax(keras.layers.Dense(2)(inputs)))


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        (lambda: [keras.layers.Dense(2)], False),
        (lambda: [keras.layers.Dense(2, activation="softmax")], True),
        (lambda: [keras.layers.Dense(2), keras.layers.Softmax()], True),
        (lambda: [keras.layers.Dense(2), keras.layers.Activation("sigmoid")], True),
        (lambda: [softmax_inside()], True),
    ],
)
def test_probabilities_are_known_by_the_end_of_a_model(last, wanted):
    assert returns_probabilities(keras.Sequential([keras.Input((4,)), *last()])) == wanted


def test_logits_are_of_two_classes_or_more():
    """By a softmax they give the model's probabilities; one output is of the second of two classes."""
    inputs = keras.Input((4,))
    z = np.array([[-1.0], [2.0]])
    positive = 1 / (1 + np.exp(-z))
    for outputs, activation, wanted in (
        (z, None, np.hstack([1 - positive, positive])),
        (positive, "sigmoid", np.hstack([1 - positive, positive])),
        (np.array([[0.2, 0.3, 0.5]]), "softmax", np.array([[0.2, 0.3, 0.5]])),
        (np.log([[0.2, 0.3, 0.5]]), None, np.array([[0.2, 0.3, 0.5]])),
    ):
        model = keras.Model(inputs, keras.layers.Dense(outputs.shape[1], activation=activation)(inputs))
        logits = logits_of(model, outputs)
        shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        np.testing.assert_allclose(shares, wanted, atol=1e-12)
        assert logits.shape[1] == count_classes(model)


def test_one_sigmoid_for_each_class_keeps_its_probabilities():
    inputs, shares = keras.Input((4,)), np.array([[0.7, 0.2, 0.4], [1.0, 0.0, 0.5]])
    model = keras.Model(inputs, keras.layers.Dense(3, activation="sigmoid")(inputs))
    np.testing.assert_array_equal(probabilities_of(model, shares), shares)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits_of(model, shares))), shares, atol=1e-12)


@pytest.mark.parametrize("end", [None, "sigmoid"])
def test_one_logit_is_that_of_the_second_of_two_classes(end, tmp_path):
    single = vit("mu/4", image_size=8, num_classes=1)
    single.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 1)))
    model = single if end is None else keras.Model(single.input, keras.layers.Activation(end)(single.output))
    model.save(tmp_path / "one.keras")
    found = load_run(tmp_path / "one.keras")
    assert found.class_names == ("0", "1") == load_run(model).class_names
    images = np.random.default_rng(1).integers(0, 256, (2, 8, 8, 3)).astype("float32")
    output = forward(model, eager=True)(images)[0]
    yes = 1 / (1 + np.exp(-float(keras.ops.convert_to_numpy(single(images))[0, 0])))
    np.testing.assert_allclose([found.task.answer(output)[name] for name in "01"], [1 - yes, yes], rtol=1e-5)

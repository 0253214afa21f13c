import dataclasses

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Contrast, Recipe  # noqa: E402
from keras_vit.data.memory import Source  # noqa: E402
from keras_vit.data.readers import texts  # noqa: E402

IMAGES = np.zeros((3, 8, 8, 3), "uint8")
SOURCE = Source(IMAGES, {"texts": texts.together([("a red car", "red"), ("a cat",), ("two cats", "cats", "cat")])})
TASK = Contrast(length=5)


def test_words_are_learned_from_the_training_texts_and_kept_by_the_model():
    task = TASK.on(SOURCE)
    assert {"cat", "cats", "c", "##r"} <= {*task.words} and task.on(SOURCE) is task
    few = dataclasses.replace(TASK, vocabulary=3).on(SOURCE)
    assert few.rows()[0] < task.rows()[0]  # letters only
    model = task.model(variant="mu/4", image_size=8)
    assert TASK.of_model(model).words == task.words
    assert task.text_of(task.ids_of()("a red cat")[0]) == "a red cat"
    with pytest.raises(ValueError, match=r"Contrast has no words: it learns them from data"):
        TASK.ids_of()


def test_letters_are_learned_with_capitals_and_blanks():
    task = dataclasses.replace(TASK, letters=True, length=12)
    source = dataclasses.replace(SOURCE, targets={"texts": texts.together([("AB 1",), ("b  a",), ("é!",)])})
    task = task.on(source)
    assert task.words == ("<pad>", "<end>", "<unknown>", *" !1ABabé")
    assert [task.text_of(row) for row in task.read(source).targets["texts"]] == ["AB 1", "b a", "é!"]
    other = texts.together([("AB",), ("C",), ("a b",)])
    with pytest.warns(UserWarning, match="1 of 3 texts have words or signs that the model does not know"):
        task.read(dataclasses.replace(source, targets={"texts": other}))


def test_all_texts_are_trained_on_and_the_first_is_measured():
    task = TASK.on(SOURCE)
    ids_of = task.ids_of()
    measured, trained = task.read(SOURCE).targets["texts"], task.read(SOURCE, training=True).targets["texts"]
    np.testing.assert_array_equal(measured, ids_of(["a red car", "a cat", "two cats"]))
    assert trained.shape == (3, 3, 5) and trained.dtype == np.int32
    np.testing.assert_array_equal(trained[2], ids_of(["two cats", "cats", "cat"]))
    np.testing.assert_array_equal(trained[1, 1:], -1)
    drawn = [task.prepare({"texts": tf.constant(trained)}, (0, i))["texts"].numpy() for i in range(40)]
    assert {tuple(rows[0]) for rows in drawn} == {*map(tuple, ids_of(["a red car", "red"]))}  # each of its own
    assert {tuple(rows[1]) for rows in drawn} == {tuple(ids_of("a cat")[0])}
    assert len({tuple(rows[2]) for rows in drawn}) == 3
    again = task.prepare({"texts": tf.constant(trained)}, (0, 7))["texts"].numpy()
    np.testing.assert_array_equal(again, drawn[7])


def test_long_texts_are_cut_counted_and_said():
    task = dataclasses.replace(TASK, length=3, words=("<pad>", "<end>", "<unknown>", "red", "car", "cat", "a"))
    with pytest.warns(UserWarning, match="1 of 3 texts have more than 3 ids and are cut: task.length"):
        ids = task.read(SOURCE).targets["texts"]
    assert ids[0, -1] == task.rows()[1]  # the end is kept
    with pytest.raises(ValueError, match="at most 3 tokens"):
        task.ids_of("raise")("a red car")


def test_unknown_words_are_counted_and_said():
    task = dataclasses.replace(TASK, words=("<pad>", "<end>", "<unknown>", "red", "cat", "two", "a"))
    with pytest.warns(UserWarning, match="2 of 3 texts have words or signs that the model does not know"):
        task.read(SOURCE)


def test_ids_of_the_caller():
    ids = np.array([[3, 4, 1, 0, 0]] * 3, "int32")
    source = Source(IMAGES, {"texts": ids})
    task = TASK.on(source)
    assert task.words == () and task.read(source).targets["texts"] is ids
    with pytest.raises(ValueError, match=r"Ids must be \(texts, 4\), below 1000.* Received: shape=\(3, 5\), up to 4"):
        dataclasses.replace(TASK, length=4).read(source)


def test_options_that_do_not_fit():
    recipe = Recipe(name="a", task=TASK, model={"variant": "mu/4", "image_size": 8}, augment=Augment(mixup=0.2))
    with pytest.raises(ValueError, match="Texts are not blended with their images. Received: augment.mixup=0.2"):
        TASK.check(recipe)
    recipe = dataclasses.replace(recipe, augment=Augment())
    with pytest.raises(ValueError, match="`words` and `tokens` exclude each other"):
        Contrast(words=("<pad>", "a"), tokens="folder").check(recipe)
    with pytest.raises(ValueError, match="not one of letters. Received: letters=True, 'folder'"):
        Contrast(letters=True, tokens="folder").check(recipe)

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.explain.class_vectors import class_vectors
from keras_vit.explain.towers import Towers, towers_of
from tests.checkpoints.helpers import unexpected
from tests.towers import LENGTH, WORDS, two_towers

pytestmark = pytest.mark.backend


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_a_vector_is_the_mean_of_prompts_of_length_1():
    towers, prompts = towers_of(two_towers()), ("a photo of a {}.", "{}")
    classes, vectors = class_vectors(towers, np.array(["cat", "red car"]), WORDS, prompts)
    ids = keras_vit.tokenizer(WORDS, LENGTH)
    for name, vector in zip(("cat", "red car"), vectors):
        each = unit(keras.ops.convert_to_numpy(towers.text(ids([prompt.format(name) for prompt in prompts]))))
        np.testing.assert_allclose(vector, unit(each.mean(0)), atol=1e-5)
    assert classes == ["cat", "red car"]


def test_the_usual_prompt_is_that_of_clip_or_of_a_table_of_words():
    for words, tokens, usual in ((None, WORDS, "a photo of a {}."), (WORDS, None, "{}")):
        towers = towers_of(two_towers(words=words))
        found = [class_vectors(towers, ["cat", "dog"], tokens, prompts)[1] for prompts in (None, usual)]
        np.testing.assert_array_equal(*found)


def test_one_class_is_enough_where_they_do_not_compete():
    image, text, scale, _ = towers_of(two_towers())
    assert class_vectors(Towers(image, text, scale, 0.0), ["cat"], WORDS, None)[1].shape == (1, 5)

    def ask(classes, prompts=None):
        return lambda: class_vectors(Towers(image, text, scale, None), classes, WORDS, prompts)

    calls = [
        (ask(["cat"]), "`classes` must be two names or more"),
        (ask(["cat", "cat"]), "Each class must be given once. Received: 'cat' twice"),
        (ask(["cat", ""]), "Each class and each prompt must be a text"),
        (ask(["cat", "dog"], "a photo"), "Each prompt must have {} instead of the name"),
    ]
    assert not unexpected(calls)

import keras
import numpy as np
import pytest

from keras_vit import sample
from keras_vit.generation.asked import asked_of
from tests.dits import given_texts, of_texts, small

pytestmark = pytest.mark.backend

IDS = given_texts()["texts"]


def test_texts_become_ids():
    model = of_texts()
    np.testing.assert_array_equal(asked_of(model, ["A red  cat", "blue", None]), IDS)
    np.testing.assert_array_equal(asked_of(model, "blue"), IDS[1:2])
    np.testing.assert_array_equal(asked_of(model, None), IDS[2:])
    for texts in (np.array(["a red cat", "blue"]), ("a red cat", np.str_("blue"))):
        np.testing.assert_array_equal(asked_of(model, texts), IDS[:2])
    for ids in (IDS, IDS.astype("int64"), keras.ops.convert_to_tensor(IDS)):
        found = asked_of(model, ids)
        np.testing.assert_array_equal(found, IDS)
        assert found.dtype == "int32"
    np.testing.assert_array_equal(asked_of(small(), ["dog", None]), [1, 3])


def test_images_are_of_their_texts():
    model = of_texts()
    images = sample(model, ["a red cat", "blue", None], steps=2)
    np.testing.assert_array_equal(images, sample(model, IDS, steps=2))
    assert (sample(model, "a red dog", steps=2) != images[:1]).any()
    assert images.shape == (3, 8, 12, 1) and images.dtype == "uint8"


def test_unknown_words_are_told_once():
    with pytest.warns(UserWarning, match="does not know these words or signs: .?green.?, .?horse") as warned:
        found = asked_of(of_texts(), ["a green cat", "a green horse", "a cat"])
    assert len(warned) == 1
    np.testing.assert_array_equal(found[0], [3, 2, 6, 1, 0])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("", "Each text must be a string with a word, or None .* Received: ''"),
        (["blue", " "], "Received: ' '"),
        ([3], "this model draws texts, not classes. Received: 3"),
        (7, "`texts` must be"),
        ([], "`texts` must have a text for each image. Received: none"),
        ([True], "Received: True"),
        ("a red cat a red dog", "A text must have at most 5 tokens: .* Received: 7 in 'a red cat a red dog'"),
        (
            np.array([1, 2]),
            r"Ids must be integers \(texts, 5\), from 0 to below 8. Received: shape=\(2,\)",
        ),
        (IDS + 1.5, "Received: shape=.*float64"),
        (IDS + 7, "from 0 to below 8"),
        (IDS - 1, "from 0 to below 8"),
        (IDS[:0], "Received: shape=\\(0, 5\\)"),
    ],
)
def test_what_cannot_be_drawn(texts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sample(of_texts(), texts, steps=1)


def test_models_without_words_take_ids():
    model = of_texts(metadata={"empty": [1, 0, 0, 0, 0]})
    assert sample(model, IDS, steps=1).shape == (3, 8, 12, 1)
    with pytest.raises(ValueError, match=r"must have a table of words, .*: pass ids, \(texts, 5\). Received: texts"):
        sample(model, "blue", steps=1)
    with pytest.raises(ValueError, match="For guidance, .* must have the ids of a text without words"):
        sample(of_texts(metadata={"words": ["<pad>", "<end>", "a"]}), "a", steps=1)
    assert sample(of_texts(metadata={"words": ["<pad>", "<end>", "a"]}), "a", steps=1, guidance=1).shape[0] == 1

import numpy as np
import pytest

from keras_vit.tasks.caption.word_tally import WordTally, distance

LETTERS = "_|abcdefghij"  # padding, an end, letters


def text_of(ids):
    return "".join(LETTERS[i] for i in ids if i > 1)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("", "", 0),
        ("abc", "", 3),
        ("", "ab", 2),
        ("kitten", "sitting", 3),
        ("abc", "abc", 0),
        ("ab", "ba", 2),
        ("a", "ba", 1),
    ],
)
def test_distance_of_two_texts(first, second, count):
    assert distance(first, second) == distance(second, first) == count


def test_exact_texts_and_wrong_characters():
    texts = np.array([[2, 3, 1, 0], [4, 5, 6, 1]])
    written = np.array([[2, 3, 1, 0, 0.9], [4, 5, 1, 0, 0.3]], "float32")
    tally = WordTally(text_of)
    shares = tally.add({"texts": texts}, written)
    np.testing.assert_allclose(shares, [1, 2 / 3])
    assert tally.result() == {"exact_match": 0.5, "character_error_rate": 1 / 5}
    assert WordTally().result() == {} and set(WordTally.scores) == set(tally.result())

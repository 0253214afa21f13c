import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.augment import texts  # noqa: E402

IDS = np.array(
    [[[5, 6, 1, 0], [7, 1, 0, 0], [8, 9, 1, 0]], [[5, 1, 0, 0], [-1] * 4, [-1] * 4]], "int32"
)  # 1 ends a text


def drawn(function, seeds, **marks):
    return [function(tf.constant(IDS), (0, i), **marks).numpy().tolist() for i in range(seeds)]


def test_one_text_of_each_image():
    found = drawn(texts.one, 40)
    assert {tuple(rows[0]) for rows in found} == {(5, 6, 1, 0), (7, 1, 0, 0), (8, 9, 1, 0)}
    assert {tuple(rows[1]) for rows in found} == {(5, 1, 0, 0)}
    assert found == drawn(texts.one, 40)


def test_some_texts_of_each_image_are_joined():
    wide = np.pad(IDS, ((0, 0), (0, 0), (0, 4)))
    wide[IDS[..., 0] < 0] = -1
    found = [texts.some(tf.constant(wide), (0, i), end=1).numpy() for i in range(200)]
    assert all(rows.shape == (2, 8) for rows in found)
    words = {tuple(rows[0][rows[0] > 1]) for rows in found}
    assert {(5, 6), (7,), (8, 9), (7, 5, 6), (5, 6, 7), (8, 9, 7, 5, 6)} <= words
    for rows in found:  # one end, after the last
        for row in rows:
            end = row.tolist().index(1)
            assert (row[:end] > 1).all() and (row[end + 1 :] == 0).all()
    counts = [len([w for w in rows[0] if w in (5, 7, 8)]) for rows in found]
    assert min(counts) == 1 and max(counts) == 3 and 1.8 < np.mean(counts) < 2.2  # 1 + 2 / 2
    assert {tuple(rows[1]) for rows in found} == {(5, 1, 0, 0, 0, 0, 0, 0)}


def test_what_is_too_long_is_cut_before_the_end():
    found = np.array(drawn(texts.some, 50, end=1))
    assert found.shape == (50, 2, 4) and {row.tolist().count(1) for row in found[:, 0]} == {1}
    without = np.array(drawn(texts.some, 50, end=None))
    assert without.shape == (50, 2, 4)


def test_texts_are_known_by_what_is_drawn_and_by_the_first():
    examples = {"texts": tf.constant([[7, 1]]), "first": tf.constant([[5, 1]])}
    assert texts.known_by(examples).numpy().tolist() == [[[7, 1], [5, 1]]]
    assert texts.known_by({"texts": tf.constant([[7, 1]])}).numpy().tolist() == [[[7, 1]]]


def test_each_word_is_written_after_the_words_before_it():
    before, words = (x.numpy().tolist() for x in texts.forced(tf.constant([[5, 6, 1, 0], [7, 1, 0, 0]]), 1, 0))
    assert before == [[1, 5, 6, 1], [1, 7, 1, 0]] and words == [[5, 6, 1, -1], [7, 1, -1, -1]]
    before, words = (x.numpy().tolist() for x in texts.forced(tf.constant([[5, 6, 1, 1], [7, 1, 1, 1]]), 1, 1))
    assert words == [[5, 6, 1, -1], [7, 1, -1, -1]]  # where the end is the padding too
    before, words = (x.numpy().tolist() for x in texts.forced(tf.constant([[9, 5, 1, 0]]), 1, 0, begun=True))
    assert before == [[9, 5, 1]] and words == [[5, 1, -1]]


def test_joined_texts_begin_once():
    ids = tf.constant([[[2, 5, 6, 1, 0, 0], [2, 7, 1, 0, 0, 0]]] * 30)
    for row in texts.some(ids, (0, 1), start=2, end=1).numpy().tolist():
        assert row in ([2, 5, 6, 1, 0, 0], [2, 7, 1, 0, 0, 0], [2, 5, 6, 7, 1, 0], [2, 7, 5, 6, 1, 0])

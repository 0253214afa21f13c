import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.data.augment.absent import BITS, MARKS, borrowed, marked, parted  # noqa: E402

IDS = np.array([[5, 1, 0], [6, 1, 0], [5, 1, 0], [7, 1, 0]], "int32")
MASKS = np.ones((4, 2, 2, 1), "uint8")
MASKS[:, 0, 0] = 255


def often(ids, images, share=1.0, times=40):
    """Returns the texts of many draws, `(times, rows)`, by their first ids, and whether their masks are empty."""
    texts, marks = parted(tf.constant(marked(ids, images)))
    drawn = [borrowed(texts, tf.constant(MASKS[: len(ids)]), marks, share, (0, i)) for i in range(times)]
    np.testing.assert_array_equal([masks[:, 0, 0] for _, masks in drawn], 255)  # void stays void
    return np.array([each.numpy()[:, 0] for each, _ in drawn]), np.array(
        [masks.numpy()[:, 1, 1, 0] for _, masks in drawn]
    )


def test_marks_follow_the_ids():
    found = marked(IDS, np.array(["a", "a", "b", "b"]))
    assert found.shape == (4, 3 + MARKS) and found.dtype == np.int32
    np.testing.assert_array_equal(found[:, :3], IDS)
    own, of_image = found[:, 3:5], found[:, 5:]
    assert (own[0] == own[2]).all() and not (own[0] & own[1]).any()
    np.testing.assert_array_equal(of_image, [own[0] | own[1]] * 2 + [own[2] | own[3]] * 2)
    ids, marks = parted(tf.constant(found))
    np.testing.assert_array_equal(ids, IDS), np.testing.assert_array_equal(marks, found[:, 3:])


def test_sentences_are_those_of_no_row_of_the_image():
    texts, masks = often(IDS, np.array([0, 0, 1, 1]))
    changed = texts != IDS[:, 0]
    np.testing.assert_array_equal(masks, np.where(changed, 0, 1))
    assert {*texts[:, 0][changed[:, 0]]} == {7} == {*texts[:, 1][changed[:, 1]]}  # never 5 or 6, which both are there
    assert {*texts[:, 2][changed[:, 2]]} == {6} == {*texts[:, 3][changed[:, 3]]}
    assert changed.any(0).all() and not changed.all(0).any()  # where there is no other, each keeps its own


def test_the_share_is_that_of_other_sentences():
    ids = np.arange(5, 9)[:, None] * np.ones(3, "int32")
    texts, _ = often(ids, np.arange(4), 0.2, 300)
    assert 0.15 < (texts != ids[:, 0]).mean() < 0.25
    assert (often(ids, np.arange(4), 0.0, 20)[0] == ids[:, 0]).all()
    again = often(ids, np.arange(4), 0.2, 300)[0]
    np.testing.assert_array_equal(texts, again)  # by the seed alone


def test_equal_sentences_and_batches_of_one_stay():
    assert (often(np.repeat(IDS[:1], 3, 0), np.arange(3))[0] == 5).all()
    assert (often(IDS[:1], np.arange(1))[0] == 5).all()


def test_sentences_with_one_meaning_are_all_own():
    several = np.full((3, 2, 3), -1, "int32")
    several[0], several[1, 0], several[2, 0] = IDS[[0, 1]], IDS[1], IDS[3]
    found = marked(several, np.arange(3))
    assert found.shape == (3, 2, 3 + MARKS) and (found[1, 1, :3] == -1).all()
    ids, marks = parted(tf.constant(found))
    assert ids.shape == (3, 2, 3) and marks.shape == (3, MARKS)
    own = marks.numpy()[:, :2]
    assert (own[0] & own[1]).any() and not (own[0] & own[2]).any()  # the first may mean what the second says


def test_more_sentences_than_bits_are_never_taken_for_others():
    count = 5 * BITS
    ids = np.stack([np.arange(count), np.ones(count)], 1).astype("int32")
    marks = marked(ids, np.arange(count) // 2)[:, 2:]
    own, of_images = marks[:, :2], marks[:, 2:]
    assert (own > 0).any(1).all() and ((own & of_images) == own).all()
    assert all((own[i] & of_images[i ^ 1]).any() for i in range(count - 1))
    apart = (own[:, None] & of_images[None]).any(-1)
    assert apart.mean() < 0.1  # few are lost by bits that two share

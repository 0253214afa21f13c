import numpy as np
import pytest

from keras_vit.models import segment_outputs
from keras_vit.models.segment_outputs import Frame

HIGH, LOW = 20.0, -20.0  # logits: sure of it, and of the opposite


def classes(*labels, count=3):
    """Returns logits of queries that are sure of their class; the last class is none."""
    logits = np.full((len(labels), count + 1), LOW, "float32")
    logits[np.arange(len(labels)), labels] = HIGH
    return logits


def drawn(*rows, high=HIGH, low=LOW):
    """Returns logits of masks, `(rows, columns, queries)`, from texts with the number of each query where it is."""
    picture = [row.split() for row in rows]
    names = sorted({name for row in picture for cell in row for name in cell} - {"."})
    inside = np.array([[[name in cell for name in names] for cell in row] for row in picture])
    return np.where(inside, high, low).astype("float32")


SAME = Frame((2, 4), (2, 4), (2, 4))


def test_outputs_are_taken_apart():
    outputs = np.arange(2 * 3 * (4 + 1 + 6)).reshape(2, 3, 11)
    logits, masks = segment_outputs.unpacked(outputs, 4, (20, 30))
    np.testing.assert_array_equal(logits, outputs[..., :5])
    assert masks.shape == (2, 2, 3, 3)
    np.testing.assert_array_equal(masks[1, :, :, 2].ravel(), outputs[1, 2, 5:])
    for wrong, count in ((outputs[..., :10], 4), (outputs, 5), (outputs, 10), (outputs[0], 4)):
        with pytest.raises(ValueError, match=r"`outputs` must be .batch, queries"):
            segment_outputs.unpacked(wrong, count, (20, 30))


def test_scores_of_classes_add_the_queries():
    logits, masks = np.log([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), drawn("0 01", ". 1")
    scores = segment_outputs.semantic_scores(logits, masks, (2, 2))
    np.testing.assert_allclose(scores, [[[0.5, 0.3], [0.6, 0.5]], [[0, 0], [0.1, 0.2]]], atol=1e-6)
    larger = segment_outputs.semantic_scores(logits, masks, (4, 4))
    assert larger.shape == (4, 4, 2)
    np.testing.assert_allclose(larger[0, 0], [0.5, 0.3], atol=1e-6)  # half-pixel centers: the corner is the corner's
    middle = 1 / (1 + np.exp(-(0.75 * HIGH + 0.25 * LOW)))  # logits are resized, not their sigmoid
    np.testing.assert_allclose(larger[1, 0, 0], 0.5 * middle, atol=1e-6)


@pytest.mark.parametrize("length, starts", [(4, [0]), (5, [0, 1]), (8, [0, 4]), (9, [0, 2, 5]), (10, [0, 3, 6])])
def test_windows_cover_the_longer_side(length, starts):
    assert segment_outputs.window_starts(length, 4) == starts


def test_windows_are_averaged():
    """Where two windows overlap, the mean of their scores decides, not the last window."""
    one = np.tile(np.array([0.6, 0.4], "float32"), (2, 2, 1))
    other = np.tile(np.array([0.45, 0.55], "float32"), (2, 2, 1))
    along = segment_outputs.semantic_map([one, other], [0, 1], 1, (2, 3))
    np.testing.assert_array_equal(along, [[0, 0, 1]] * 2)  # in the middle 0.525 and 0.475
    down = segment_outputs.semantic_map(iter([one, other]), [0, 1], 0, (3, 2))
    np.testing.assert_array_equal(down, along.T)
    assert segment_outputs.semantic_map([one], [0], 1, (5, 7)).shape == (5, 7)


def test_later_instances_cover_earlier_ones():
    masks = drawn("0 01 1 2", "0 01 1 .")
    found, segments = segment_outputs.instance_map(classes(0, 2, 3), masks, SAME)
    np.testing.assert_array_equal(found, [[0, 1, 1, -1]] * 2)  # the third query is of nothing
    assert [(each["id"], each["class"]) for each in segments] == [(0, 0), (1, 2)]
    np.testing.assert_allclose([each["score"] for each in segments], 1, atol=1e-6)


def test_a_score_is_of_class_and_mask():
    """A logit of 1 is 0.731; a class of 0.8 makes 0.585."""
    logits, masks = np.log([[0.8, 0.1, 0.05, 0.05]]), drawn("0 . . .", "0 . . .", high=1.0)
    (segment,) = segment_outputs.instance_map(logits, masks, SAME, 0.58)[1]
    np.testing.assert_allclose(segment["score"], 0.8 / (1 + np.exp(-1)), atol=1e-6)
    assert segment_outputs.instance_map(logits, masks, SAME, 0.59)[1] == []


def test_a_query_that_sees_nothing_is_left_out():
    masks = np.concatenate([drawn("0 . . .", ". . . ."), np.full((2, 4, 1), LOW)], axis=-1)
    for make in (segment_outputs.instance_map, segment_outputs.panoptic_map):
        found, segments = make(classes(1, 2), masks, SAME)
        assert [each["class"] for each in segments] == [1] and (found >= 0).sum() == 1
        found, segments = make(classes(3, 3), masks, SAME)
        assert segments == [] and (found == -1).all() and found.dtype == "int32"


def test_padding_is_cut_before_the_photo_is_resized():
    """The mask fills the padding: it ends there, and does not fade in the photo."""
    masks = drawn(". . 0 0", ". . 0 0", ". . 0 0", ". . 0 0")
    found, _ = segment_outputs.instance_map(classes(0), masks, Frame((4, 4), (4, 3), (8, 6)))
    np.testing.assert_array_equal(found, [[-1] * 4 + [0] * 2] * 8)
    found, _ = segment_outputs.instance_map(classes(0), masks, Frame((8, 8), (8, 4), (4, 2)))
    assert (found == -1).all()


def test_masks_of_boxes_have_a_size():
    output = np.zeros((2, 4 + 2 + 2 * 8), "float32")
    output[:, 4:6], output[:, 6:] = [(0.9, 0.1), (0.2, 0.8)], LOW
    masks = output[:, 6:].reshape(2, 2, 8)
    masks[0, :, :4], masks[1, 0] = HIGH, HIGH  # the second is below the first on the left
    found, segments = segment_outputs.boxed_map(output, 2, (2, 8), mask_size=(2, 8))
    np.testing.assert_array_equal(found, [[0] * 4 + [1] * 4, [0] * 4 + [-1] * 4])
    assert [(each["class"], round(each["score"], 2)) for each in segments] == [(0, 0.9), (1, 0.8)]
    square = segment_outputs.boxed_map(output, 2, (4, 4))[0]
    np.testing.assert_array_equal(square, segment_outputs.boxed_map(output, 2, (4, 4), mask_size=(4, 4))[0])
    with pytest.raises(ValueError, match=r"most, 4 . 2 . 3 . 5.. Received: shape=.2, 22"):
        segment_outputs.boxed_map(output, 2, (4, 4), mask_size=(3, 5))
    with pytest.raises(ValueError, match=r"4 . 3 . rows . columns.. Received: shape=.2, 22"):
        segment_outputs.boxed_map(output, 3, (4, 4))


def test_stuff_shares_a_segment_and_things_do_not():
    masks = drawn("0 1 2 3", "0 1 2 3")
    labels = classes(2, 0, 2, 0)
    found, segments = segment_outputs.panoptic_map(labels, masks, SAME, stuff={2})
    np.testing.assert_array_equal(found, [[0, 1, 0, 2]] * 2)
    assert [(each["id"], each["class"]) for each in segments] == [(0, 2), (1, 0), (2, 0)]
    found, segments = segment_outputs.panoptic_map(labels, masks, SAME)
    np.testing.assert_array_equal(found, [[0, 1, 2, 3]] * 2)


def test_a_pixel_goes_to_the_surest_query():
    """Of two whole masks the second has the surer class; the first, which keeps nothing, is dropped."""
    logits, masks = np.log([[0.85, 0.05, 0.05, 0.05], [0.05, 0.9, 0.02, 0.03]]), drawn("01 01 0 .", "01 01 0 .")
    found, segments = segment_outputs.panoptic_map(logits, masks, SAME)
    np.testing.assert_array_equal(found, [[0, 0, -1, -1]] * 2)  # the first keeps a third of its mask
    assert segments == [{"id": 0, "class": 1, "score": pytest.approx(0.9)}]
    found, segments = segment_outputs.panoptic_map(logits, masks, SAME, overlap_threshold=0.3)
    np.testing.assert_array_equal(found, [[1, 1, 0, -1]] * 2)
    assert segment_outputs.panoptic_map(logits, masks, SAME, threshold=0.91)[1] == []


def test_a_pixel_counts_where_its_mask_is_sure_enough():
    masks = drawn("0 0 . .", "0 0 . .", high=1.0, low=-0.1)  # 0.731 and 0.475
    everywhere = segment_outputs.panoptic_map(classes(0), masks, SAME, mask_threshold=0.4)[0]
    assert (everywhere == 0).all()
    half = segment_outputs.panoptic_map(classes(0), masks, SAME)[0]
    np.testing.assert_array_equal(half, [[0, 0, -1, -1]] * 2)
    assert (segment_outputs.panoptic_map(classes(0), masks, SAME, mask_threshold=0.8)[0] == -1).all()


@pytest.mark.parametrize("size", [(5, 7), (12, 20), (3, 3), (1, 40)])
def test_a_mask_is_positive_in_its_part_alone(size):
    rng = np.random.default_rng(0)
    for logits in (rng.normal(size=(5, 7)).astype("float32") - 1.5, np.full((5, 7), -1.0), np.ones((5, 7))):
        large = segment_outputs.resized(logits, size)
        place, part = segment_outputs.positive_part(logits, size)
        np.testing.assert_array_equal(part, large[place])
        outside = np.ones(size, bool)
        outside[place] = False
        assert (large[outside] <= 0).all()
    corner = np.where(np.arange(35).reshape(5, 7) == 34, 1.0, -1.0)
    assert segment_outputs.positive_part(corner, (50, 70))[1].shape == (15, 15)  # up to the next cell's middle

import numpy as np
import pytest

from keras_vit.utils.sampling import around_middle, check_crops, evenly, frame_indices, view_indices


def listed(*given, **options):
    return frame_indices(*given, **options).tolist()


def test_dense_frames_are_in_the_middle_and_drawn_in_training():
    assert listed(100, 4, 8) == [37, 45, 53, 61] and listed(4, 4) == [0, 1, 2, 3] and listed(5, 4) == [0, 1, 2, 3]
    assert listed(9, 4, numbers=[0.0]) == [0, 1, 2, 3] and listed(9, 4, numbers=[0.999]) == [5, 6, 7, 8]
    starts = {listed(9, 4, numbers=[number])[0] for number in np.linspace(0, 0.999, 50)}
    assert starts == {0, 1, 2, 3, 4, 5}


def test_frames_are_as_far_apart_as_the_stride_says():
    """Not 15 steps spread over 16: 4, 4, 4, 5, 4 ..."""
    for numbers in (None, [0.3], [0.9]):
        assert set(np.diff(frame_indices(300, 16, 4, numbers=numbers))) == {4}


def test_a_short_clip_repeats_its_last_frame():
    assert listed(3, 5) == [0, 1, 2, 2, 2] and listed(10, 4, 4) == [0, 4, 8, 9] and listed(1, 3, 2) == [0, 0, 0]
    assert listed(3, 5, numbers=[0.9]) == [0, 1, 2, 2, 2]


def test_frames_around_the_middle_one():
    """That is number `frames // 2` of those seen, however long the clip is, in training too; the ends are repeated."""
    assert listed(100, 4, 8, centered=True) == [34, 42, 50, 58] and listed(8, 8, centered=True) == [*range(8)]
    assert listed(9, 4, centered=True) == [2, 3, 4, 5] and listed(3, 5, centered=True) == [0, 0, 1, 2, 2]
    assert listed(1, 4, centered=True) == [0, 0, 0, 0]
    for count in range(1, 40):
        for frames in range(1, 9):
            assert listed(count, frames, 3, numbers=[0.9], centered=True)[frames // 2] == count // 2


def test_segments_give_one_frame_each():
    assert listed(16, 4, segments=True) == [2, 6, 10, 14]  # as VideoMAE's: int(tick / 2 + tick * i)
    assert listed(10, 4, segments=True) == [int(10 / 4 / 2 + 10 / 4 * i) for i in range(4)]
    assert listed(2, 4, segments=True) == [0, 0, 1, 1]
    drawn = [listed(40, 4, segments=True, numbers=np.random.default_rng(i).random(4)) for i in range(99)]
    assert {tuple(index // 10 for index in one) for one in drawn} == {(0, 1, 2, 3)} and len({*map(tuple, drawn)}) > 50


def test_time_passes_evenly():
    for times, duration, found in (
        ([0, 40, 80, 120], 160, [0, 1, 2, 3]),
        ([7, 47, 87, 127], 160, [0, 1, 2, 3]),
        ([0, 33, 67, 100], 133, [0, 1, 2, 3]),  # rounded to milliseconds
        ([0, 10, 20, 30], 100, [0, 1, 2, 3]),  # the last one is shown for long, as in many GIF files
        ([0, 70, 80, 90], 100, [0, 0, 0, 2]),
        ([5], 1, [0]),
    ):
        assert evenly(np.array(times), duration).tolist() == found, times


@pytest.mark.parametrize("rate, unit", [(25, 0.01), (30, 0.01), (24, 0.001), (30, 0.001), (59.94, 0.001)])
def test_rounded_times_are_of_one_rate(rate, unit):
    """The middle frame of `count` is number `count // 2`, also where its time is rounded down or to the nearest."""
    for rounded in (np.floor, np.rint):
        for count in range(1, 130):
            ends = rounded(np.arange(count + 1) / rate / unit)
            steps = around_middle(ends[:-1], ends[-1])
            assert steps.tolist() == [*range(count)], (rounded, count)


@pytest.mark.parametrize("count", [99, 100])
def test_frames_that_stand_for_several_count_by_their_time(count):
    """Frame by frame as if all were there, wherever equal ones in a row are one in the file, the last ones too."""
    random = np.random.default_rng(0)
    for share in (0.02, 0.1, 0.3):
        for _ in range(100):
            new = random.random(count) > share * random.random()
            stills = random.integers(0, count, 2) * (random.random(2) < 0.6)
            new[: stills[0] // 2], new[count - stills[1] // 2 :], new[0] = False, False, True
            kept = np.flatnonzero(new)
            steps = around_middle(40 * kept + 7, 40 * count)
            if np.median(np.diff([*kept, count])) > 1:
                assert steps[len(steps) // 2] == new[: count // 2 + 1].sum() - 1  # the middle at least
            else:
                assert steps.tolist() == (np.cumsum(new) - 1).tolist()
    assert around_middle([0, 10, 20, 30], 100)[5] == 3 and len(around_middle([0, 1e-6, 2e-6], 1e9)) == 2**20


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_all_indices_are_those_of_frames(count):
    for options in (dict(), dict(stride=3), dict(segments=True)):
        found = frame_indices(count, 8, **options)
        assert len(found) == 8 and found.min() >= 0 and found.max() < count and (np.diff(found) >= 0).all()


def viewed(count, views, *given, **options):
    return [view_indices(count, 4, *given, view=i, views=views, **options).tolist() for i in range(views)]


def test_views_are_spread_evenly_over_a_clip():
    assert viewed(20, 3, 2) == [[0, 2, 4, 6], [6, 8, 10, 12], [13, 15, 17, 19]]  # of 14 starts 0, 6 (13 // 2) and 13
    assert viewed(20, 2, segments=True) == [[0, 5, 10, 15], [2, 7, 12, 17]]  # VideoMAE's int(5 i) and int(2.5 + 5 i)
    assert viewed(20, 1, 2) == [listed(20, 4, 2)] and viewed(20, 1, segments=True) == [listed(20, 4, segments=True)]
    assert viewed(6, 4) == [[0, 1, 2, 3], [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]
    assert viewed(5, 3, 2) == [[0, 2, 4, 4]] * 3 and viewed(1, 2, segments=True) == [[0] * 4] * 2


def test_several_crops_need_frames_that_keep_their_shape():
    check_crops(1, None)
    check_crops(3, 8)
    with pytest.raises(ValueError, match="Received: task.crops=3, data.resize=None"):
        check_crops(3, None)
    with pytest.raises(ValueError, match="Received: task.crops=3, data.resize=pad"):
        check_crops(3, "pad")

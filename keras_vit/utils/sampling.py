"""Which frames of a clip a model sees."""

import numpy as np

MOST_STEPS = 2**20  # around the middle of a file's time, hours: what is farther from it, no model sees


def frame_indices(count, frames, stride=1, segments=False, numbers=None, centered=False):
    """Returns the indices of the frames of a clip that a model sees, int64 `(frames,)`.

    Dense, as for Kinetics in VideoMAE (Tong et al. 2022, arXiv:2203.12602, appendix): every `stride`-th frame of a part
    of the clip, drawn in training and in the middle else; of a clip that is too short, the last frame is repeated. In
    segments, as for Something-Something (Wang et al. 2016, arXiv:1608.00859): one frame of each equal part, drawn in
    training and in its middle else. Centered, as for boxes in the Video Action Transformer (Girdhar et al. 2019,
    arXiv:1812.02707): dense around the clip's middle frame, `count // 2`, which is number `frames // 2` of those that
    the model sees; of a clip that is too short, its first and its last frame are repeated. Of a file, `count` are the
    steps of `around_middle`.

    Args:
        count: Frames of the clip, at least 1.
        frames: Frames that the model takes.
        stride: Step from one to the next, dense.
        segments: Whether the clip is divided into segments.
        numbers: For training, numbers in [0, 1): one, in segments one for each frame. `None` for the middle.
        centered: Whether the frames are around the middle one, in training too: `numbers` are not used.
    """
    if centered:
        return np.clip(count // 2 + stride * (np.arange(frames) - frames // 2), 0, count - 1)
    middle = np.full(frames if segments else 1, 0.5)
    numbers = middle if numbers is None else np.asarray(numbers, "float64")
    if segments:
        return np.minimum(((np.arange(frames) + numbers) * count / frames).astype("int64"), count - 1)
    span = (frames - 1) * stride + 1
    room = max(count - span, 0)
    start = room // 2 if numbers is middle else int(numbers[0] * (room + 1))
    return np.minimum(start + stride * np.arange(frames), count - 1)


def view_indices(count, frames, stride=1, segments=False, view=0, views=1):
    """Returns the indices of the frames of one of several views of a clip, int64 `(frames,)`.

    Dense, the first view begins at the first frame, the last one ends at the last, and the others lie evenly between
    them, as in VideoMAE (Tong et al. 2022, arXiv:2203.12602) and ViViT (Arnab et al. 2021, arXiv:2103.15691). In
    segments, view `v` of `n` has the frame at `v / n` of each segment: two views are those of VideoMAE. A single view
    is that of `frame_indices`.

    Args:
        count, frames, stride, segments: As in `frame_indices`.
        view: Which one, from 0.
        views: How many there are.
    """
    if views == 1:
        return frame_indices(count, frames, stride, segments)
    if segments:
        return frame_indices(count, frames, segments=True, numbers=np.full(frames, view / views))
    room = max(count - (frames - 1) * stride - 1, 0)
    return np.minimum(view * room // (views - 1) + stride * np.arange(frames), count - 1)


def check_crops(crops, resize, size=None):
    """Raises ValueError if frames have several crops, but `data.resize` leaves nothing around the first."""
    if crops > 1 and (resize in (None, "pad") or (isinstance(resize, tuple) and resize == size)):
        raise ValueError(
            f"{crops} crops need frames that are larger than the model's: data.resize must be the shorter side in "
            f"pixels, 'aspect', 'window' or a larger size. Received: task.crops={crops}, data.resize={resize}"
        )


def evenly(times, duration):
    """Returns which frame is seen at each of as many equal steps of a clip, so that time passes evenly.

    Of a clip with one frame rate, these are all its frames. Where frames are shown for different times, as in many GIF
    files and videos of phones, some come twice and some not at all.

    Args:
        times: When each frame is first seen, increasing numbers.
        duration: How long all of them are seen together, in the same unit.
    """
    times = np.asarray(times, "float64") - times[0]
    count = len(times)
    steps = np.diff([*times, max(duration, times[-1])])
    if count < 3 or steps[:-1].max() - steps[:-1].min() <= 0.5 * steps[:-1].mean():  # rounded time stamps
        return np.arange(count)
    middles = (np.arange(count) + 0.5) * (times[-1] + steps[-1]) / count
    return np.searchsorted(times, middles, side="right") - 1


def around_middle(times, duration):
    """Returns which frame is seen at each of some equal steps of a clip; step `count // 2` of `count` is at half of it.

    A step is as long as most frames are seen. Of a clip with one frame rate, these are all its frames. A frame that is
    seen for long, as one that stands for equal frames in a row, comes more than once; so does the last one.

    Args:
        times: When each frame is first seen, increasing numbers.
        duration: How long all of them are seen together, in the same unit.
    """
    times = np.asarray(times, "float64") - times[0]
    seen = np.diff([*times, max(duration, times[-1])])
    count, whole = len(times), seen.sum()
    mean = whole / count
    if np.ptp(seen) <= 0.4 * mean and np.abs(times - mean * np.arange(count)).max() <= 0.4 * mean:
        return np.arange(count)  # time stamps may be rounded
    usual = np.median(seen)
    count = max(round(min(whole / usual, MOST_STEPS)), 1)
    # An even number of frames has one that begins at the half: a part of a frame later, it is seen for certain.
    wanted = whole / 2 + seen.min() / 4 + usual * (np.arange(count) - count // 2)
    return np.searchsorted(times, wanted.clip(0), side="right") - 1

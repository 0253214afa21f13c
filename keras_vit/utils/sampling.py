"""Which frames of a clip a model sees."""

import numpy as np


def frame_indices(count, frames, stride=1, segments=False, numbers=None):
    """Returns the indices of the frames of a clip that a model sees, int64 `(frames,)`.

    Dense, as for Kinetics in VideoMAE (Tong et al. 2022, arXiv:2203.12602, appendix): every `stride`-th frame of a part
    of the clip, drawn in training and in the middle else; of a clip that is too short, the last frame is repeated. In
    segments, as for Something-Something (Wang et al. 2016, arXiv:1608.00859): one frame of each equal part, drawn in
    training and in its middle else.

    Args:
        count: Frames of the clip, at least 1.
        frames: Frames that the model takes.
        stride: Step from one to the next, dense.
        segments: Whether the clip is divided into segments.
        numbers: For training, numbers in [0, 1): one, in segments one for each frame. `None` for the middle.
    """
    middle = np.full(frames if segments else 1, 0.5)
    numbers = middle if numbers is None else np.asarray(numbers, "float64")
    if segments:
        return np.minimum(((np.arange(frames) + numbers) * count / frames).astype("int64"), count - 1)
    span = (frames - 1) * stride + 1
    room = max(count - span, 0)
    start = room // 2 if numbers is middle else int(numbers[0] * (room + 1))
    return np.minimum(start + stride * np.arange(frames), count - 1)


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

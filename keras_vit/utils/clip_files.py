"""Clips: files of several frames, and their pixels."""

import contextlib
import functools
import os

import numpy as np

from keras_vit.utils import animations, checks, containers, extras
from keras_vit.utils.folders import ending
from keras_vit.utils.images import MOST_PIXELS, plain_pixels
from keras_vit.utils.sampling import around_middle, evenly

BY_PILLOW = (".gif", ".webp", ".png", ".apng")
BY_AV = (".mp4", ".webm", ".mkv", ".avi", ".mov", ".m4v")
ENDINGS = BY_PILLOW + BY_AV
MOST_OF_CLIP = 4 * MOST_PIXELS
MOST_FRAMES = 200_000  # of a file: an hour at 50 frames a second
MOST_OF_FRAME = 2**26  # pixels; Pillow keeps up to five copies of an animation's canvas
# Pixels that are decoded on the way to the last frame that is wanted, at most: a few seconds, and of larger files more,
# of which each byte stands for so many in animations and in videos of a picture that hardly moves.
MOST_DECODED, PER_BYTE_OF_ANIMATIONS, PER_BYTE_OF_VIDEOS = 2_000_000_000, 5_000, 20_000


class UnreadableError(ValueError):
    """A file is no clip that can be read."""


def is_clip(path):
    """Returns whether the name of a file, a text, ends like that of a clip."""
    return ending(path) in ENDINGS


def need(paths):
    """Raises ImportError, with the extra to install, if one of these files needs a package that is not installed."""
    other = next((path for path in paths if ending(str(path)) in BY_AV), None)
    if other is not None:
        extras.need(f"Reading {str(other)!r}", "video", "av")


def frame_size(path):
    """Returns the `(height, width)` of a clip's frames; raises as `read_clip`."""
    return read_clip(path, 1, lambda count: [0]).shape[1:3]


def read_clip(path, channels, choose, most_pixels=MOST_OF_CLIP, by_bytes=True, centered=False):
    """Returns some frames of a clip, uint8 `(frames, height, width, channels)`.

    GIF, WebP and animated PNG are read by Pillow, other files by PyAV, which the extra `video` installs. Frames are
    upright: the rotation in the files of phones is applied.

    Args:
        path: The file.
        channels: 1 (gray) or 3 (red, green and blue).
        choose: Function from the number of frames, all shown for the same time, to the indices of those wanted, in
            increasing order; they may repeat.
        most_pixels: Of all these frames together; a larger clip is refused.
        by_bytes: Whether more pixels may be decoded of larger files.
        centered: Whether frame `count // 2` of the number that `choose` gets is the one seen at half of the duration,
            however long single frames are shown; see `sampling.around_middle`. Else see `sampling.evenly`.

    Raises:
        FileNotFoundError: If there is no file.
        ValueError: For a file that is not a clip, is cut, has no frame, frames of different sizes, too large ones, or
            so many that they would be decoded for minutes.
        ImportError: If PyAV is needed and not installed.
    """
    name = os.path.expanduser(os.fsdecode(path))
    if not os.path.isfile(name):
        if os.path.exists(name):
            raise UnreadableError(f"{name!r} is not a regular file.")
        raise FileNotFoundError(f"There is no file {name!r}.")
    if ending(name) not in ENDINGS:
        raise UnreadableError(f"A clip must end in {', '.join(ENDINGS)}. Received: {name!r}")
    need([name])
    try:
        animated = ending(name) in BY_PILLOW
        per_byte = (PER_BYTE_OF_ANIMATIONS if animated else PER_BYTE_OF_VIDEOS) * by_bytes
        most_decoded = max(MOST_DECODED, per_byte * os.path.getsize(name))
        chosen = functools.partial(_chosen, choose, around_middle if centered else evenly)
        frames = (_by_pillow if animated else _by_av)(name, channels, chosen, most_pixels, most_decoded)
    except UnreadableError as error:
        raise UnreadableError(f"{name!r} {error}.") from None
    except Exception as error:  # any error of the decoder is a fault of this file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnreadableError(f"{name!r} cannot be read as a clip: {reason}.") from None
    sizes = {frame.shape[:2] for frame in frames}
    if len(sizes) > 1:
        (first, second, *_) = sorted(sizes)
        raise UnreadableError(
            f"{name!r} must have frames of one size. Received: {first[0]} x {first[1]} and {second[0]} x {second[1]}"
        )
    return np.stack(frames)


def _by_pillow(name, channels, chosen, most_pixels, most_decoded):
    from PIL import Image

    with open(name, "rb") as file:
        times, sides = animations.frames_of(file.read())
    _check_size(1, *sides, most_pixels)
    with Image.open(name, formats=("GIF", "WEBP", "PNG")) as image:
        sides = [max(pair) for pair in zip(sides, image.size)]
        _check_size(1, *sides, most_pixels)
        _check_count(len(times))
        count = getattr(image, "n_frames", 1)
        if count == len(times) + 1:  # the first is for viewers that do not show animations
            times = [0, *times]
        if count != len(times):
            raise UnreadableError(f"has {len(times)} frames, of which {count} can be told apart")
        ends = np.cumsum(np.maximum(times, 1))  # milliseconds
        places = chosen([0, *ends[:-1]], ends[-1])
        _check_size(len({*places.tolist()}), *sides, most_pixels)
        _check_decoded((int(places.max()) + 1) * sides[0] * sides[1], most_decoded)
        frames = {}
        for place in sorted({*places.tolist()}):
            image.seek(place)
            frames[place] = plain_pixels(image, channels)
    return [frames[place] for place in places.tolist()]


def _by_av(name, channels, chosen, most_pixels, most_decoded):
    opened = _opener(name)
    with opened() as container:
        stream = container.streams.best("video")  # of several, not a picture of the cover
        if stream is None:
            raise UnreadableError("has no video in it")
        size = stream.codec_context
        _check_size(1, size.width, size.height, most_pixels)
        frames = functools.partial(_frames, opened, most_decoded)
        # What an edit list cuts off, as of videos that are trimmed on a phone, is decoded and not shown.
        stamps = [packet.pts for packet in container.demux(stream) if packet.size and not packet.is_discard]
        _check_count(len(stamps))
        timed = "avi" not in container.format.name and None not in stamps  # AVI has the times of decoding alone
    # Increasing: a file keeps its frames in the order of decoding.
    times = np.unique(stamps) if timed else np.arange(sum(1 for _ in frames()))
    _check_count(len(times))
    usual = np.median(np.diff(times)) if len(times) > 1 else 1
    places = chosen(times, times[-1] - times[0] + usual)
    _check_size(len({*places.tolist()}), size.width, size.height, most_pixels)
    pixels = _at_times(frames, {*times[places].tolist()}, channels) if timed else {}
    if timed and len(pixels) == len({*places.tolist()}):
        return [pixels[time] for time in times[places].tolist()]
    pixels = _at_places(frames, {*places.tolist()}, channels)
    return [pixels[place] for place in places.tolist()]


def _opener(name):
    """Returns a function that opens a video for PyAV, as what its first bytes say it is and by no other protocol."""
    import av

    how = {"format": containers.container_of(name), "options": {"protocol_whitelist": "file"}}
    return lambda: contextlib.closing(av.open(f"file:{name}", **how))


def _frames(opened, most_decoded, first=None):
    """Yields the frames of a video as they are seen one after the other, from a key frame before a time or all."""
    import av

    decoded = 0
    with opened() as container:
        stream = container.streams.best("video")
        stream.thread_type = "AUTO"
        if first is not None:
            with contextlib.suppress(av.FFmpegError):  # of files in which no place can be found: from the start
                container.seek(first, stream=stream)
        for frame in container.decode(stream):
            decoded += frame.width * frame.height
            _check_size(1, frame.width, frame.height, MOST_OF_CLIP)
            _check_decoded(decoded, most_decoded)
            yield frame


def _at_times(frames, times, channels):
    """Returns the pixels of frames by their times, those that a decoder that begins in the file finds."""
    pixels = {}
    for frame in frames(min(times)):
        if frame.pts in times:
            pixels[frame.pts] = _pixels(frame, channels)
        if len(pixels) == len(times) or (frame.pts is not None and frame.pts > max(times)):
            break
    return pixels


def _at_places(frames, places, channels):
    """Returns the pixels of frames by their places, counted from the first: right in every file, and slower."""
    pixels = {}
    for place, frame in enumerate(frames()):
        if place in places:
            pixels[place] = _pixels(frame, channels)
        if len(pixels) == len(places):
            return pixels
    raise UnreadableError(f"ends early: {len(places) - len(pixels)} of {len(places)} frames cannot be decoded")


def _pixels(frame, channels):
    """Returns a frame of PyAV as upright pixels."""
    pixels = frame.to_ndarray(format="rgb24" if channels == 3 else "gray")
    matrix = frame.side_data.get("DISPLAYMATRIX")  # (x, y, 1) times it is where a pixel is shown: turned, or mirrored
    if matrix is not None:
        (right, down), (right_of_row, down_of_row) = np.frombuffer(matrix, "int32").reshape(3, 3)[:2, :2].tolist()
        if abs(down) > abs(right):  # columns become rows
            pixels, right, down_of_row = pixels.swapaxes(0, 1), right_of_row, down
        pixels = pixels[:: -1 if down_of_row < 0 else 1, :: -1 if right < 0 else 1]
    return np.ascontiguousarray(pixels if channels == 3 else pixels[..., None])


def _check_decoded(pixels, most):
    if pixels > most:
        raise UnreadableError(
            f"takes too long: more than {most // 10**6:,} million pixels are decoded before the last frame"
        )


def _check_size(frames, width, height, most_pixels):
    if width * height > MOST_OF_FRAME:
        raise UnreadableError(f"is too large: a frame of {width} x {height} has more than {MOST_OF_FRAME:,} pixels")
    if frames * width * height > most_pixels:
        raise UnreadableError(
            f"is too large: {frames} frames of {width} x {height} have more than {most_pixels // 10**6} million pixels"
        )


def _check_count(count):
    if not count:
        raise UnreadableError("has no frame")
    if count > MOST_FRAMES:
        raise UnreadableError(f"is too long: it has more than {MOST_FRAMES:,} frames")


def _chosen(choose, steps, times, duration):
    """Returns which frames `choose` wants, of those at the steps of a file by its times."""
    order = steps(times, duration)
    count = len(order)
    indices = np.asarray(choose(count))
    if indices.ndim != 1 or not len(indices) or indices.min() < 0 or indices.max() >= count:
        raise UnreadableError(f"has frames from 0 to {count - 1}, not {indices.tolist()!s:.60}")
    return order[indices]


def checked(values, shape, name="clips", value_range=checks.BYTES):
    """Checks a batch of clips as `checks.pixels` does one of images.

    Args:
        values: Array, `(batch, frames, height, width, channels)`, integers or floats.
        shape: The `(frames, height, width, channels)` that a model takes; a `None` entry matches any size.
        name: The argument's name, for error messages.
        value_range: The lowest and the highest pixel.

    Returns:
        `values` as a NumPy array.

    Raises:
        ValueError: For a wrong rank, shape or type, no clip, or values outside the range or scaled to 0..1.
    """
    values = np.asarray(values)
    if values.ndim != 5 or 0 in values.shape or any(w not in (None, got) for w, got in zip(shape, values.shape[1:])):
        sizes = ", ".join(str(word if side is None else side) for word, side in zip(AXES, shape))
        raise ValueError(f"`{name}` must have the shape (batch, {sizes}). Received: shape={values.shape}")
    checks.pixels(values.reshape(-1, *values.shape[2:]), name=name, value_range=value_range)
    return values


AXES = ("frames", "height", "width", "channels")

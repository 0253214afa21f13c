"""Clip files for tests, written by Pillow and PyAV."""

import struct

import numpy as np
from PIL import Image


def moving(frames=8, height=16, width=24, seed=0):
    """Returns a clip of smooth frames, uint8 `(frames, height, width, 3)`: its number is in the brightness of each."""
    y, x = np.mgrid[:height, :width]
    shade = np.stack([20 + 24 * i + 2 * (x > width // 2) + 0 * y for i in range(frames)])
    clip = np.repeat(shade[..., None], 3, -1) + np.array([0, 4, 8]) + seed
    return clip.astype("uint8")


def animated(path, clip, duration=100, **options):
    """Writes a GIF, WebP or animated PNG; returns its path."""
    first, *rest = map(Image.fromarray, clip)
    kind = {".gif": "GIF", ".webp": "WEBP"}.get(path.suffix, "PNG")
    first.save(path, kind, save_all=True, append_images=rest, duration=duration, loop=0, **options)
    return path


def video(path, clip, rate=25, stamps=None, codec="mpeg4", later=0, every=4):
    """Writes a video with PyAV. Returns its path.

    Args:
        path, clip: The file, and its frames.
        rate: Frames a second.
        stamps: The times of the frames in units of `1 / rate`.
        codec: Name of an encoder.
        later: Frames in a row, at most, that depend on a later one.
        every: Frames from one that depends on no other to the next.
    """
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = clip.shape[2], clip.shape[1], "yuv420p"
        stream.codec_context.max_b_frames, stream.codec_context.gop_size = later, every
        stream.bit_rate = 4_000_000
        for i, frame in enumerate(clip):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture.pts = i if stamps is None else stamps[i]
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


TURNS = {90: (0, -1, 1, 0), 180: (-1, 0, 0, -1), 270: (0, 1, -1, 0)}  # of rotated, counterclockwise


def rotated(path, degrees, matrix=None):
    """Writes into an mp4 how it is turned when it is shown, as phones do; counterclockwise. Returns its path.

    `matrix` has a, b, c and d in place of degrees: a pixel at (x, y) is shown at (a x + c y, b x + d y).
    """
    data = bytearray(path.read_bytes())
    header = data.index(b"tkhd") + 4
    start = header + (40 if data[header] == 0 else 52)
    a, b, c, d = matrix or TURNS[degrees]
    one = 1 << 16
    data[start : start + 36] = struct.pack(">9i", a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path


def trimmed(path, frames):
    """Cuts the first frames of an mp4 of `video` off by its edit list, as phones do. Returns its path."""
    data = bytearray(path.read_bytes())
    place = data.index(b"elst") + 12  # after a version and a count
    _, start = struct.unpack_from(">Ii", data, place)
    (duration,) = struct.unpack_from(">I", data, data.index(b"mdhd") + 20)
    (count,) = struct.unpack_from(">I", data, data.index(b"stsz") + 12)
    struct.pack_into(">i", data, place + 4, start + duration // count * frames)
    path.write_bytes(data)
    return path

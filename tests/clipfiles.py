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


def video(path, clip, rate=25, stamps=None, codec="mpeg4", frame_step=1):
    """Writes a video with PyAV; `stamps` are the times of its frames in units of `1 / rate`. Returns its path."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = clip.shape[2], clip.shape[1], "yuv420p"
        stream.codec_context.max_b_frames, stream.codec_context.gop_size = 0, 4
        stream.bit_rate = 4_000_000
        for i, frame in enumerate(clip):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture.pts = i if stamps is None else stamps[i]
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def rotated(path, degrees):
    """Writes into an mp4 how it is turned when it is shown, as phones do; counterclockwise. Returns its path."""
    data = bytearray(path.read_bytes())
    header = data.index(b"tkhd") + 4
    start = header + (40 if data[header] == 0 else 52)
    a, b, c, d = {90: (0, -1, 1, 0), 180: (-1, 0, 0, -1), 270: (0, 1, -1, 0)}[degrees]
    one = 1 << 16
    data[start : start + 36] = struct.pack(">9i", a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path

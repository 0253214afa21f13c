"""Times of frames beside those that Pillow finds by decoding."""

import struct

import numpy as np
import pytest
from PIL import Image

from keras_vit.utils.animations import frames_of
from tests.clipfiles import animated, moving

CLIP = moving(height=32, width=48)
KINDS = ["a.gif", "a.webp", "a.apng"]


@pytest.mark.parametrize("name", KINDS)
def test_times_are_pillow_s(name, tmp_path):
    times = [100, 40, 70, 10, 250, 100, 0, 30]
    path = animated(tmp_path / name, CLIP, duration=times)
    found, sides = frames_of(path.read_bytes())
    with Image.open(path) as image:
        decoded = []
        for i in range(image.n_frames):
            image.seek(i)
            image.load()
            decoded.append(image.info.get("duration", 0))
    assert [round(time) for time in found] == [round(time) for time in decoded] and tuple(sides) == (48, 32)


@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.gif"])
def test_a_still_picture_has_one_frame(name, tmp_path):
    Image.fromarray(CLIP[0]).save(tmp_path / name)
    assert len(frames_of((tmp_path / name).read_bytes())[0]) == 1


@pytest.mark.parametrize("name", KINDS)
def test_cut_files_are_told(name, tmp_path):
    data = animated(tmp_path / name, CLIP, duration=100).read_bytes()
    for share in (0.3, 0.5, 0.9):
        with pytest.raises(ValueError, match="is cut"):
            frames_of(data[: int(share * len(data))])
    with pytest.raises(ValueError, match="is no GIF, WebP or PNG file"):
        frames_of(b"text")


def test_a_frame_may_enlarge_the_canvas_of_a_gif():
    frame = b"\x2c" + struct.pack("<HHHH", 5, 0, 60_000, 7) + b"\0\x02\x02\x44\x01\0"
    data = b"GIF89a" + struct.pack("<HH", 2, 2) + b"\x80\0\0\0\0\0\xff\xff\xff" + frame
    assert frames_of(data + b";") == ([0], (60_005, 7)) == frames_of(data)  # the end of some lacks its sign
    assert np.shape(frames_of(data * 1 + frame * 9 + b";")[0]) == (10,)

"""Clips that would be decoded for minutes, read other files or are silently shorter."""

import struct
import time

import numpy as np
import pytest

from keras_vit.utils import clip_files
from keras_vit.utils.clip_files import UnreadableError, read_clip
from tests.clipfiles import moving, video

CLIP = moving(height=32, width=48)


def gif(frames, width, height, part=1):
    """Returns a GIF whose frames are one byte of data each, on a canvas of any size."""
    frame = b"\x21\xf9\x04\0\1\0\0\0\x2c" + struct.pack("<HHHH", 0, 0, part, part) + b"\0\x02\x02\x44\x01\0"
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0\0\0\0\xff\xff\xff" + frame * frames + b";"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gif(28_000, 4000, 4000), "takes too long: more than 3,.* million pixels are decoded before the last frame"),
        (gif(3, 11_000, 11_000), "a frame of 11000 x 11000 has more than 67,108,864 pixels"),
        (gif(3, 1, 1, part=60_000), "a frame of 60000 x 60000 has more than"),
        (gif(300_000, 10, 10), "is too long: it has more than 200,000 frames"),
    ],
)
def test_animations_that_would_be_decoded_for_minutes(data, said, tmp_path):
    (tmp_path / "a.gif").write_bytes(data)
    start = time.process_time()
    with pytest.raises(UnreadableError, match=said):
        read_clip(tmp_path / "a.gif", 3, lambda count: [0, count - 1])
    assert time.process_time() - start < 3


def test_frames_that_are_not_wanted_are_not_decoded(tmp_path):
    (tmp_path / "a.gif").write_bytes(gif(400, 4000, 4000))
    start = time.process_time()
    assert read_clip(tmp_path / "a.gif", 1, lambda count: [0, count // 200]).shape == (2, 4000, 4000, 1)
    assert time.process_time() - start < 4  # of all, twenty seconds
    (tmp_path / "b.gif").write_bytes(gif(200, 4000, 4000) + bytes(10**6))
    with pytest.raises(UnreadableError, match="takes too long"):
        read_clip(tmp_path / "b.gif", 1, lambda count: [count - 1], by_bytes=False)


def test_a_video_of_too_many_pixels_stops(tmp_path, monkeypatch):
    pytest.importorskip("av")
    monkeypatch.setattr(clip_files, "MOST_DECODED", 5 * 32 * 48)
    for name in ("a.mp4", "a.avi"):
        path = video(tmp_path / name, CLIP)
        assert len(read_clip(path, 3, lambda count: [7])) == 1
        with pytest.raises(UnreadableError, match="takes too long"):
            read_clip(path, 3, lambda count: [0, 7], by_bytes=False)


def test_a_name_is_the_name_of_a_file(tmp_path, monkeypatch):
    pytest.importorskip("av")
    monkeypatch.chdir(tmp_path)
    video(tmp_path / "other.mp4", np.full_like(CLIP, 250))
    mine = video(tmp_path / "mine.mp4", np.full_like(CLIP, 10)).read_bytes()
    for name in ("concat:other.mp4", "subfile,,start,0,end,0,,:other.mp4", "a:b.mp4", "file:other.mp4", "%d.mp4"):
        (tmp_path / name).write_bytes(mine)
        assert read_clip(name, 3, lambda count: [0]).mean() < 50
    for text in ("ffconcat version 1.0\nfile other.mp4\n", "#EXTM3U\n#EXTINF:1,\nother.mp4\n#EXT-X-ENDLIST\n"):
        (tmp_path / "list.mp4").write_text(text)
        with pytest.raises(UnreadableError, match="list.mp4' cannot be read as a clip: must be an mp4, mov, webm"):
            read_clip("list.mp4", 3, np.arange)


@pytest.mark.parametrize(
    "name, codec", [("a.mp4", "mpeg4"), ("a.mkv", "mpeg4"), ("a.avi", "mpeg4"), ("a.webm", "libvpx-vp9")]
)
def test_a_video_that_is_cut_is_not_a_shorter_one(name, codec, tmp_path):
    pytest.importorskip("av")
    path = video(tmp_path / name, np.repeat(CLIP, 5, axis=0), codec=codec)
    data = path.read_bytes()
    for left in (len(data) - 10, len(data) * 3 // 4, len(data) // 2):
        path.write_bytes(data[:left])
        with pytest.raises(UnreadableError, match="ends early: it is cut"):
            read_clip(path, 3, lambda count: [0])

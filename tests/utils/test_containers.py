import struct

import pytest

from keras_vit.utils import containers
from tests.clipfiles import moving, video

CLIP = moving(frames=20, height=32, width=48)
KINDS = {"a.mp4": "mpeg4", "a.mov": "mpeg4", "a.mkv": "mpeg4", "a.avi": "mpeg4", "a.webm": "libvpx-vp9"}
READERS = {"a.mp4": "mov", "a.mov": "mov", "a.mkv": "matroska", "a.avi": "avi", "a.webm": "matroska"}


@pytest.mark.parametrize("name", KINDS)
def test_whole_files_are_known_and_cut_ones_told(name, tmp_path):
    pytest.importorskip("av")
    data = video(tmp_path / name, CLIP, codec=KINDS[name]).read_bytes()
    other = tmp_path / "a.other"
    for more in (b"", b"\0" * 50):  # some programs fill up
        other.write_bytes(data + more)
        assert containers.container_of(other) == READERS[name]
    for left in (len(data) - 10, len(data) // 2, len(data) // 4):
        other.write_bytes(data[:left])
        with pytest.raises(ValueError, match="ends early: it is cut, .* bytes are missing"):
            containers.container_of(other)


@pytest.mark.parametrize(
    "data",
    [b"", b"ffconcat version 1.0\nfile b.mp4\n", b"#EXTM3U\n", b"<?xml version='1.0'?><MPD/>", b"RIFF\0\0\0\0WAVE"],
)
def test_other_files_are_refused(data, tmp_path):
    (tmp_path / "a.mp4").write_bytes(data)
    with pytest.raises(ValueError, match="its first bytes are of none"):
        containers.container_of(tmp_path / "a.mp4")


def test_recordings_that_nobody_closed(tmp_path):
    """The end of these is not known: what is there is read, and an element that is cut is told."""
    cluster = b"\x1f\x43\xb6\x75\x01" + b"\xff" * 7
    block = b"\xa3\x84" + b"1234"
    start = b"\x1aE\xdf\xa3\x80" + b"\x18\x53\x80\x67\x01" + b"\xff" * 7
    path = tmp_path / "a.webm"
    path.write_bytes(start + cluster + block * 3 + cluster + block)
    assert containers.container_of(path) == "matroska"
    path.write_bytes(start + cluster + block * 3 + cluster + block[:-1])
    with pytest.raises(ValueError, match="1 of 65 bytes are missing"):
        containers.container_of(path)
    (tmp_path / "a.avi").write_bytes(b"RIFF" + struct.pack("<I", 0) + b"AVI " + b"x" * 9)
    assert containers.container_of(tmp_path / "a.avi") == "avi"
    (tmp_path / "a.mp4").write_bytes(struct.pack(">I", 16) + b"ftypisom0000" + struct.pack(">I", 0) + b"mdat12")
    assert containers.container_of(tmp_path / "a.mp4") == "mov"
    (tmp_path / "a.mp4").write_bytes(struct.pack(">I", 1) + b"ftyp" + struct.pack(">Q", 2**40))
    with pytest.raises(ValueError, match="1,099,511,627,760 of 1,099,511,627,776 bytes are missing"):
        containers.container_of(tmp_path / "a.mp4")

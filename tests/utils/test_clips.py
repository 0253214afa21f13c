import numpy as np
import pytest
from PIL import Image

from keras_vit.utils import clips
from keras_vit.utils.clips import UnreadableError, checked, is_clip, read_clip
from tests.clipfiles import animated, moving, rotated, video

CLIP = moving(8, 32, 48)


def middles(frames):
    return frames[:, 16, 10, 0].astype(int)


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.apng", "a.png"])
def test_animations_are_read_without_an_extra(tmp_path, monkeypatch, name):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    path = animated(tmp_path / name, CLIP, **({"lossless": True} if name == "a.webp" else {}))
    np.testing.assert_array_equal(read_clip(path, 3, np.arange), CLIP)
    counts = []
    found = read_clip(path, 3, lambda count: counts.append(count) or [2, 5, 5, 7])
    np.testing.assert_array_equal(found, CLIP[[2, 5, 5, 7]])
    assert counts == [8] and read_clip(path, 1, np.arange).shape == (8, 32, 48, 1)


@pytest.mark.parametrize(
    "name, codec", [("a.mp4", "mpeg4"), ("a.mkv", "mpeg4"), ("a.avi", "mpeg4"), ("a.webm", "libvpx-vp9")]
)
def test_videos(tmp_path, name, codec):
    pytest.importorskip("av")
    path = video(tmp_path / name, CLIP, codec=codec)
    found = read_clip(path, 3, np.arange)
    assert found.dtype == "uint8" and found.shape == CLIP.shape and np.abs(found.astype(int) - CLIP).max() < 8
    some = read_clip(path, 3, lambda count: [count - 3, count - 2, count - 2])  # begins at a key frame before them
    np.testing.assert_array_equal(some, found[[5, 6, 6]])
    gray = read_clip(path, 1, np.arange)
    assert gray.shape == (8, 32, 48, 1) and np.abs(gray[..., 0].astype(int) - CLIP.mean(-1)).max() < 12


@pytest.mark.parametrize("name, frames", [("a.avi", 2), ("a.mp4", 2), ("a.mkv", 2), ("a.mp4", 0)])
def test_frames_that_depend_on_later_ones(tmp_path, name, frames):
    """Files keep them in the order of decoding; AVI does not say when they are seen."""
    av = pytest.importorskip("av")
    long = np.repeat(CLIP, 5, axis=0)
    for i, frame in enumerate(long):
        frame[:16] = 6 * i
    with av.open(str(tmp_path / name), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 48, 32, "yuv420p", 4_000_000
        stream.codec_context.max_b_frames = frames
        for i, frame in enumerate(long):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture.pts = i
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    counts = []
    whole = read_clip(tmp_path / name, 3, lambda count: counts.append(count) or np.arange(count))
    assert counts == [40] and np.abs(whole[:, 8].astype(int) - long[:, 8]).max() < 8
    for start in range(0, 37, 4):
        some = read_clip(tmp_path / name, 3, lambda count: start + np.arange(3))  # noqa: B023
        np.testing.assert_array_equal(some, whole[start : start + 3])


def test_frames_are_shown_for_their_time(tmp_path):
    pytest.importorskip("av")
    slow = [0, 1, 2, 3, 4, 5, 20, 21]
    for path in (
        video(tmp_path / "a.mp4", CLIP, stamps=slow),
        animated(tmp_path / "a.gif", CLIP, duration=[40] * 5 + [600, 40, 40]),
    ):
        found = middles(read_clip(path, 3, np.arange))
        wanted = middles(CLIP)[[1, 4, 5, 5, 5, 5, 5, 6]]
        assert np.abs(found - wanted).max() < 5, path


def test_phones_turn_their_videos_in_the_header(tmp_path):
    pytest.importorskip("av")
    marked = CLIP.copy()
    marked[:, :8, :8] = 0
    for degrees, corner in ((90, (-3, 2)), (180, (-3, -3)), (270, (2, -3))):  # counterclockwise
        found = read_clip(rotated(video(tmp_path / "a.mp4", marked), degrees), 3, np.arange)
        assert found.shape[1:3] == ((32, 48) if degrees == 180 else (48, 32))
        dark = {place for place in ((2, 2), (2, -3), (-3, 2), (-3, -3)) if found[7][place].max() < 20}
        assert dark == {corner}


def test_a_still_image_is_a_clip_of_one_frame(tmp_path):
    Image.fromarray(CLIP[0]).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_clip(tmp_path / "a.png", 3, lambda count: [0] * 4), CLIP[[0] * 4])


def test_bad_files_are_named_in_one_sentence(tmp_path):
    pytest.importorskip("av")
    whole = video(tmp_path / "a.mp4", CLIP).read_bytes()
    contents = {
        "nonsense.mp4": (b"nonsense", "cannot be read as a clip"),
        "empty.mp4": (b"", "cannot be read as a clip"),
        "cut.mp4": (whole[:900], "cannot be read as a clip"),
        "nonsense.gif": (b"GIF89a", "cannot be read as a clip"),
        "a.txt": (b"x", "A clip must end in .gif, .webp"),
    }
    for name, (data, message) in contents.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UnreadableError, match=message) as error:
            read_clip(tmp_path / name, 3, np.arange)
        assert name in str(error.value) and "\n" not in str(error.value)
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(UnreadableError, match="folder.mp4' is not a regular file"):
        read_clip(tmp_path / "folder.mp4", 3, np.arange)
    with pytest.raises(FileNotFoundError, match="There is no file '.*missing.mp4'"):
        read_clip(tmp_path / "missing.mp4", 3, np.arange)
    for choose in (lambda count: [count], lambda count: [-1], lambda count: []):
        with pytest.raises(UnreadableError, match="has frames from 0 to 7, not"):
            read_clip(tmp_path / "a.mp4", 3, choose)


def test_large_clips_are_refused_before_their_frames_are_decoded(tmp_path):
    pytest.importorskip("av")
    for path in (video(tmp_path / "a.mp4", CLIP), animated(tmp_path / "a.gif", CLIP)):
        assert len(read_clip(path, 3, lambda count: [1, 2, 2], most_pixels=2 * 32 * 48)) == 3
        with pytest.raises(UnreadableError, match="is too large: 3 frames of 48 x 32 have more than 0 million"):
            read_clip(path, 3, lambda count: [1, 2, 3], most_pixels=2 * 32 * 48)


def test_sound_alone_is_no_clip(tmp_path):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), "float32"), format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 16000, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(UnreadableError, match="a.mp4' has no video in it."):
        read_clip(tmp_path / "a.mp4", 3, np.arange)


def test_a_change_of_size_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("av")
    sizes = iter([(32, 48)] * 3 + [(16, 48)] * 5)
    monkeypatch.setattr(clips, "_pixels", lambda frame, channels: np.zeros((*next(sizes), channels), "uint8"))
    path = video(tmp_path / "a.mp4", CLIP)
    with pytest.raises(UnreadableError, match="must have frames of one size. Received: 16 x 48 and 32 x 48"):
        read_clip(path, 3, np.arange)


def test_without_av_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.mp4").write_bytes(b"x")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"a.mp4' needs av. Install it: pip install '.*\[video\]'"):
        read_clip(tmp_path / "a.mp4", 3, np.arange)


def test_arrays_are_checked():
    batch = CLIP[None]
    assert checked(batch, (8, 32, 48, 3)) is batch and checked(batch, (None, None, None, 3)) is batch
    for values, message in (
        (CLIP, r"shape \(batch, 8, 32, 48, 3\). Received: shape=\(8, 32, 48, 3\)"),
        (batch[:, :7], r"Received: shape=\(1, 7, 32, 48, 3\)"),
        (batch[:0], r"Received: shape=\(0, 8, 32, 48, 3\)"),
        (batch / 255.0, "multiply by 255"),
        (batch * 2.0, "pixels from 0 to 255"),
    ):
        with pytest.raises(ValueError, match=message):
            checked(values, (8, 32, 48, 3))
    assert is_clip("a/b.MP4") and is_clip("b.gif") and not is_clip("b.jpg")

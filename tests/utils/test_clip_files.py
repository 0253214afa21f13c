import itertools

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.data.clip_source import Sampling
from keras_vit.utils import clip_files
from keras_vit.utils.clip_files import UnreadableError, checked, is_clip, read_clip
from tests.clipfiles import animated, moving, rotated, trimmed, video

CLIP = moving(8, 32, 48)
SIGNS = [*itertools.product((1, -1), repeat=2)]
MATRICES = [(a, 0, 0, d) for a, d in SIGNS] + [(0, b, c, 0) for b, c in SIGNS]  # turned and mirrored


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


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.apng"])
@pytest.mark.parametrize("first, last", [(45, 100), (0, 60), (40, 60), (0, 100)])
def test_the_middle_frame_is_seen_at_half_of_the_duration(tmp_path, name, first, last):
    """Pillow writes equal frames in a row as one that is shown for longer."""
    number = np.arange(100).clip(first, last) * 2
    clip = np.broadcast_to(number[:, None, None, None], (100, 8, 8, 3)).astype("uint8")
    path = animated(tmp_path / name, clip, 40, **({"lossless": True} if name == "a.webp" else {}))
    found = read_clip(path, 1, Sampling(4, 1, centered=True).indices, centered=True)[:, 0, 0, 0] // 2
    assert found.tolist() == [48, 49, 50, 51]
    far = read_clip(path, 1, Sampling(4, 30, centered=True).indices, centered=True)[:, 0, 0, 0] // 2
    assert far.tolist() == np.clip([0, 20, 50, 80], first, last).tolist()


def test_the_middle_frame_of_a_video_whose_frames_last_different_times(tmp_path):
    pytest.importorskip("av")
    clip = np.repeat(np.arange(20, 220, 20, dtype="uint8"), 16 * 16 * 3).reshape(10, 16, 16, 3)
    path = video(tmp_path / "a.mkv", clip, stamps=[0, 1, 2, 3, 4, 5, 6, 7, 8, 20])  # until 21
    found = read_clip(path, 1, Sampling(3, 4, centered=True).indices, centered=True).mean((1, 2, 3))
    assert np.abs(found - [140, 180, 180]).max() < 8


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


@pytest.mark.parametrize(
    "name, frames, codec",
    [
        ("a.avi", 2, "mpeg4"),
        ("a.mp4", 2, "mpeg4"),
        ("a.mkv", 2, "mpeg4"),
        ("a.mp4", 0, "mpeg4"),
        ("b.avi", 2, "libx264"),
    ],
)
def test_frames_that_depend_on_later_ones(tmp_path, name, frames, codec):
    """Files keep them in the order of decoding; AVI does not say when they are seen."""
    av = pytest.importorskip("av")
    long = np.repeat(CLIP, 5, axis=0)
    for i, frame in enumerate(long):
        frame[:16] = 6 * i
    with av.open(str(tmp_path / name), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 48, 32, "yuv420p", 4_000_000
        stream.codec_context.max_b_frames, stream.codec_context.gop_size = frames, 12
        for i, frame in enumerate(long):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture.pts = i
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    counts = []
    whole = read_clip(tmp_path / name, 3, lambda count: counts.append(count) or np.arange(count))
    assert counts == [40] and np.abs(whole[:, 8].astype(int) - long[:, 8]).max() < 8
    for start in range(0, 38, 3):  # across the frames on which others depend, and to the last
        some = read_clip(tmp_path / name, 3, lambda count: np.minimum(start + np.arange(3), 39))  # noqa: B023
        np.testing.assert_array_equal(some, whole[[start, start + 1, min(start + 2, 39)]])
    np.testing.assert_array_equal(read_clip(tmp_path / name, 3, lambda count: [39]), whole[39:])


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


@pytest.mark.parametrize("matrix", MATRICES)
def test_a_header_may_mirror_a_video(tmp_path, matrix):
    """A pixel at (x, y) is shown at (a x + c y, b x + d y)."""
    pytest.importorskip("av")
    marked = CLIP.copy()
    marked[:, :8, :8], marked[:, :8, -8:] = 0, 100
    (a, b, c, d), (rows, columns) = matrix, np.mgrid[:32, :48]
    right, down = a * columns + c * rows, b * columns + d * rows
    right, down = right - right.min(), down - down.min()
    expected = np.zeros((down.max() + 1, right.max() + 1))
    expected[down, right] = marked[7].mean(-1)
    found = read_clip(rotated(video(tmp_path / "a.mp4", marked), 0, matrix), 3, np.arange)[7].mean(-1)
    assert found.shape == expected.shape and np.abs(found - expected).mean() < 8


@pytest.mark.parametrize("frames", [0, 2])
def test_what_an_edit_list_cuts_off_is_not_seen(tmp_path, frames):
    """As of videos that are trimmed on a phone: these frames are in the file, since others depend on them."""
    pytest.importorskip("av")
    long = np.stack([np.full((32, 48, 3), 8 * i, "uint8") for i in range(30)])
    path = trimmed(video(tmp_path / "a.mp4", long, codec="libx264", later=frames, every=30), 10)
    found = read_clip(path, 3, np.arange)
    np.testing.assert_array_equal(np.rint(middles(found) / 8), np.arange(10, 30))
    np.testing.assert_array_equal(read_clip(path, 3, lambda count: [0, count - 1]), found[[0, -1]])


def test_a_cover_is_not_the_video(tmp_path):
    av = pytest.importorskip("av")
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        cover, stream = container.add_stream("mjpeg", rate=1), container.add_stream("mpeg4", rate=25)
        cover.width, cover.height, cover.pix_fmt = 16, 16, "yuvj420p"
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for each, frames in ((cover, np.zeros((1, 16, 16, 3), "uint8")), (stream, CLIP)):
            for i, frame in enumerate(frames):
                picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
                picture.pts = i
                container.mux(each.encode(picture))
            container.mux(each.encode())
    with av.open(str(tmp_path / "a.mkv")) as container:
        assert container.streams.video[0].codec_context.name == "mjpeg"
    assert read_clip(tmp_path / "a.mkv", 3, np.arange).shape == CLIP.shape


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("space, red, blue", [(1, 0.2126, 0.0722), (5, 0.299, 0.114)])  # BT.709, BT.601
def test_colors_are_those_that_the_file_says(tmp_path, space, red, blue, full):
    av = pytest.importorskip("av")
    y, u, v = 120, 90, 170
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv444p"
        stream.codec_context.colorspace, stream.codec_context.color_range = space, 1 + full
        picture = av.VideoFrame(48, 32, "yuv444p")
        picture.colorspace, picture.color_range = space, 1 + full
        for plane, value in zip(picture.planes, (y, u, v)):
            plane.update(bytes([value]) * plane.buffer_size)
        container.mux(stream.encode(picture))
        container.mux(stream.encode())
    light = y / 255 if full else (y - 16) / 219
    u, v = ((value - 128) / (255 if full else 224) for value in (u, v))
    r, b = light + 2 * (1 - red) * v, light + 2 * (1 - blue) * u
    expected = np.array([r, (light - red * r - blue * b) / (1 - red - blue), b]) * 255
    np.testing.assert_allclose(read_clip(tmp_path / "a.mp4", 3, np.arange)[0, 16, 24], expected, atol=1.5)


def test_a_palette_is_kept(tmp_path):
    av = pytest.importorskip("av")
    colors = np.zeros((256, 4), "uint8")
    colors[:6] = [[255, 40 * i, 0, 0] for i in range(6)]  # alpha, red, green, blue
    with av.open(str(tmp_path / "a.avi"), "w") as container:
        stream = container.add_stream("rawvideo", rate=25)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "pal8"
        for i in range(6):
            picture = av.VideoFrame.from_ndarray((np.full((32, 48), i, "uint8"), colors), format="pal8")
            picture.pts = i
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    found = read_clip(tmp_path / "a.avi", 3, lambda count: [2, 4])
    np.testing.assert_array_equal(found[:, 0, 0], [[80, 0, 0], [160, 0, 0]])


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
    monkeypatch.setattr(clip_files, "_pixels", lambda frame, channels: np.zeros((*next(sizes), channels), "uint8"))
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

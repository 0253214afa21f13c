import numpy as np
import pytest
from PIL import Image

from keras_vit.plots import canvas, plot_clips, write_animation
from keras_vit.plots.clip_figures import in_a_row

CLIPS = np.random.default_rng(0).integers(0, 256, (2, 8, 10, 10, 3)).astype("uint8")
MAPS = np.random.default_rng(1).random((2, 4, 5, 5)).astype("float32")


def test_frames_are_side_by_side_under_the_clip_s_map():
    plain, over = canvas.painted(CLIPS[0], None, 40), canvas.painted(CLIPS[0], MAPS[0], 40)
    assert plain.shape == over.shape == (20, 4 * 20 + 3, 3) and np.abs(plain.astype(int) - over).max() > 20
    dark = np.zeros((8, 10, 10, 3), "uint8")
    bright = np.zeros((4, 5, 5)) + np.array([0.0, 0.1, 0.2, 1.0])[:, None, None]
    means = [canvas.framed(dark, bright, i, 20).mean() for i in range(8)]  # two frames a step, one scale for all
    assert means[0] == means[1] < means[2] == means[3] < means[4] < means[6] == means[7]
    assert len(plot_clips(CLIPS, MAPS, ["a", "b"]).axes) == 2


def test_an_animation_has_all_frames(tmp_path):
    write_animation(tmp_path / "a.gif", CLIPS, MAPS)
    with Image.open(tmp_path / "a.gif") as image:
        assert image.n_frames == 8 and image.size == (2 * 160 + 3, 2 * 160 + 3) and image.info["duration"] == 200
    for clips, maps in ((CLIPS, MAPS[:1]), (CLIPS[:, 0], MAPS), (CLIPS, MAPS[:, 0]), (CLIPS[:0], MAPS[:0])):
        with pytest.raises(ValueError, match="must be a map .* for each clip .*Received: clips of shape"):
            write_animation(tmp_path / "b.gif", clips, maps)
        with pytest.raises(ValueError, match="must be a map"):
            plot_clips(clips, maps)
    assert not (tmp_path / "b.gif").exists()


def test_frames_in_a_row():
    clips = np.arange(6)[None, :, None, None, None] * np.ones((2, 6, 3, 5, 1))
    maps = np.arange(3)[None, None, :, None, None] * np.ones((2, 7, 3, 1, 2))
    row, heat = in_a_row(clips, maps)
    assert row.shape == (2, 3, 4 * 5 + 3, 1) and heat.shape == (2, 7, 1, 8)
    assert row[0, 0, :, 0].tolist() == [*[0] * 5, 255, *[2] * 5, 255, *[3] * 5, 255, *[5] * 5]
    assert heat[0, 0, 0].tolist() == [0, 0, 1, 1, 1, 1, 2, 2]
    column, heat = in_a_row(clips, maps, axis=1)
    assert column.shape == (2, 4 * 3 + 3, 5, 1) and heat.shape == (2, 7, 4, 2)
    assert in_a_row(clips[:, 0]).shape == (2, 3, 5, 1)

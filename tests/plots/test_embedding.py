import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from keras_vit import plots
from keras_vit.plots import canvas, embedding

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (60, 6, 4, 3)).astype("uint8")


@pytest.mark.parametrize("classes", [3, 60])
def test_each_class_has_its_own_look(classes, tmp_path):
    points, labels = RNG.normal(size=(60, 2)), np.arange(60) % classes
    figure = plots.plot_embedding(points, labels, [f"class {i}" for i in range(classes)], IMAGES)
    groups = figure.axes[0].collections
    assert groups[1].get_gid() == "class_1"
    assert len(groups) == classes
    np.testing.assert_allclose(groups[1].get_offsets(), points[labels == 1].astype("float32"))
    looks = {
        (tuple(g.get_edgecolor()[0]), g.get_paths()[0].vertices.tobytes(), g.get_facecolor()[0, 3]) for g in groups
    }
    assert len(looks) == min(classes, 48)
    assert len(figure.legends) == (classes <= 48)
    shown = len(figure.axes[0].artists)
    assert 1 <= shown <= 30
    figure.savefig(tmp_path / "embedding.png")


def test_markers_differ_at_four_pixels():
    """By a fifth of their ink at least, wherever one is laid on the other."""
    drawn = []
    for i in range(len(embedding.MARKERS)):
        figure = canvas.figure(1, 1)
        figure.set_dpi(72)  # a marker is 4 pixels wide
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_axis_off()
        embedding._scattered(axis, np.zeros((1, 2)), len(canvas.COLORS) * i)
        raster = FigureCanvasAgg(figure)
        raster.draw()
        drawn.append(255 - np.asarray(raster.buffer_rgba())[30:42, 30:42, 0].astype(float))
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            moved = [np.roll(other, (down, right), (0, 1)) for down in (-1, 0, 1) for right in (-1, 0, 1)]
            assert min(np.abs(one - each).sum() for each in moved) > 0.2 * max(one.sum(), other.sum())


def test_names_are_drawn_as_they_are(tmp_path):
    figure = plots.plot_embedding(np.eye(3)[:, :2], ["_hidden", "$x_$", "b"], ["_hidden", "$x_$", "b"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["_hidden", r"\$x_\$", "b"]
    figure.savefig(tmp_path / "embedding.png")


def test_neighbors_stand_beside_their_image(tmp_path):
    titles = [str(i) for i in range(60)]
    figure = plots.plot_neighbors(IMAGES[:2], IMAGES, [[5, 7, 9], [1, 0, 3]], titles)
    drawn = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title("left") for axis in drawn] == ["query", "5", "7", "9", "query", "1", "0", "3"]
    np.testing.assert_allclose(drawn[2].images[0].get_array(), IMAGES[7] / 255, atol=1e-6)
    figure.savefig(tmp_path / "neighbors.png")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"2 labels, points of shape \(3, 2\)"):
        plots.plot_embedding(np.zeros((3, 2)), [0, 1])
    with pytest.raises(ValueError, match=r"such as \[-1\]"):
        plots.plot_embedding(np.zeros((3, 2)), [0, -1, 2])
    with pytest.raises(ValueError, match="from 0 to 59. Received: shape=\\(1, 2\\), from 5 to 60"):
        plots.plot_neighbors(IMAGES[:1], IMAGES, [[5, 60]])
    with pytest.raises(ValueError, match="2 images and 1 indices"):
        plots.plot_neighbors(IMAGES[:2], IMAGES, [[5, 7, 9]])

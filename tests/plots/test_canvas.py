import pickle

import numpy as np
import pytest
from matplotlib.figure import Figure

from keras_vit import plots
from keras_vit.plots import canvas, lettering


@pytest.mark.parametrize("count, across, drawn", [(1, 1, 2), (5, 4, 16), (64, 6, 132)])
def test_tiles_stand_in_rows(count, across, drawn):
    figure, axes = canvas.tiles(count, 4 if count < 64 else 6, (12, 8), times=2)
    assert len(axes) == 2 * count and len(figure.axes) == drawn
    width, height = figure.get_size_inches()
    assert 4.7 < width <= 20 and height < 40
    assert axes[0].get_subplotspec().get_gridspec().ncols == 2 * across


def test_pictures_have_one_channel_or_three():
    image = np.full((4, 6, 5), 255.0)
    image[..., 3:] = 0
    assert canvas.picture(image).shape == canvas.picture(image[..., :3]).shape == (4, 6, 3)
    assert canvas.picture(image).min() == 1
    assert canvas.picture(image[..., :2]).shape == (4, 6)
    assert canvas.picture(image[..., :1]).shape == (4, 6)


def test_an_image_and_its_map_cover_the_same_pixels():
    _, (axis,) = canvas.tiles(1, 1, (12, 8))
    canvas.show(axis, np.zeros((12, 8, 3)), np.eye(3))
    below, above = axis.images
    assert list(below.get_extent()) == list(above.get_extent()) == [0, 8, 12, 0]
    np.testing.assert_array_equal(above.get_array(), np.eye(3))


def test_names_and_counts():
    assert canvas.names(None, 3) == ["0", "1", "2"] and canvas.names(("a", "b"), 2) == ["a", "b"]
    with pytest.raises(ValueError, match="must name each of 3 classes. Received: 2 class_names"):
        canvas.names(("a", "b"), 3)
    with pytest.raises(
        ValueError, match="`titles` must have one entry for each image. Received: 2 images and 1 titles"
    ):
        canvas.images(np.zeros((2, 4, 4, 1)), titles=["a"])


def test_painted_is_what_is_shown_as_pixels():
    image = np.zeros((3, 2, 1))
    image[0, 1] = 255
    plain = canvas.painted(image, side=6)
    assert plain.shape == (6, 4, 3) and plain.dtype == np.uint8
    assert (plain[:2, 2:] == 255).all() and plain[2:].max() == 0
    over = canvas.painted(np.zeros((60, 40, 3)), np.eye(3)[:, :2], side=30).astype(int)
    assert over.shape == (30, 20, 3)
    assert over[2, 2].sum() > over[25, 2].sum() + 100  # bright where the map is, dark where it is not
    assert canvas.painted(np.full((600, 600, 5), 51), np.zeros((3, 3))).max() < 60


def test_a_notebook_shows_a_figure_without_pyplot():
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    figure, _ = canvas.tiles(1, 1, (4, 4))
    shown, _ = formatters.DisplayFormatter().format(figure, include=["image/png"])
    assert shown["image/png"].startswith(b"\x89PNG")


def test_a_figure_is_matplotlibs_and_can_be_pickled(tmp_path):
    figure, (axis,) = canvas.tiles(1, 1, (4, 4))
    axis.set_title("kept")
    again = pickle.loads(pickle.dumps(figure))
    assert isinstance(figure, Figure) and type(again) is Figure and again.axes[0].get_title() == "kept"
    again.savefig(tmp_path / "again.png")


def test_dollars_are_drawn_and_no_formula():
    assert lettering.words("$x_$") == r"\$x_\$" == lettering.words(lettering.words("$x_$"))


def test_characters_that_no_picture_can_contain_are_replaced():
    assert lettering.words("a\x07b \ufffe \udcff $x$ \u96ea") == "a\ufffdb \ufffd \ufffd \\$x\\$ \u96ea"


def test_classes_are_indices_or_names():
    """The same labels in each form give the same indices; anything else is one clear error."""
    for labels, names, texts in (
        ([1, 0, 2], None, ["0", "1", "2"]),
        (["dog", "cat", "eel"], None, ["cat", "dog", "eel"]),
        (np.array(["dog", "cat", "eel"]), ["cat", "dog", "eel"], ["cat", "dog", "eel"]),
        (np.array(["dog", "cat", "eel"], object), ["cat", "dog", "eel"], ["cat", "dog", "eel"]),
    ):
        found, indices = canvas.classes(names, labels=labels)
        assert found == texts and indices.tolist() == [1, 0, 2]
    _, first, second = canvas.classes(None, labels=["b"], predictions=["a"])
    assert (first.tolist(), second.tolist()) == ([1], [0])
    for labels, said in (
        ([-1, 0], "from 0 to 0. Received: 1 outside, such as .-1."),
        ([-1.0, 0.0], "must be a vector of integers"),
        ([True, False], "must be a vector of integers"),
        (["a", "e"], "must be among `class_names`, which all differ. Received: 'e'"),
    ):
        with pytest.raises(ValueError, match=said):
            canvas.classes(["a", "b"] if isinstance(labels[0], str) else None, labels=labels)
    with pytest.raises(ValueError, match="which all differ"):
        canvas.classes(["crane", "crane"], labels=["crane"])


@pytest.mark.parametrize("shape", [(2000, 2, 3), (2, 2000, 3), (1, 1, 3)])
def test_strips_of_pixels_are_drawn_in_little_memory(shape):
    strip = np.zeros(shape)
    for figure in (
        plots.plot_pictures([strip], ["a"]),
        plots.plot_maps(strip[None], np.ones((1, 2, 2))),
        plots.plot_heads(strip, np.ones((2, 2, 2, 2))),
        plots.plot_patches(strip, np.ones((1, 2, 2)), [(0, 0)]),
    ):
        assert max(figure.get_size_inches()) < 40

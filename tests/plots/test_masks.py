import numpy as np
import pytest

from keras_vit import plots
from keras_vit.plots import masks

IMAGE = np.full((4, 6, 3), 100.0)


def test_colors_differ():
    table = masks.colors(40)
    assert table.shape == (40, 3) and len(np.unique(table, axis=0)) == 40
    assert table[0].tolist() == [0x00, 0x72, 0xB2]
    np.testing.assert_array_equal(masks.colors(2), table[:2])


@pytest.mark.parametrize("channels", [1, 3])
def test_paints_classes_and_neither_void_nor_background(channels):
    mask = np.array([[1, 2, 3], [255, 0, 1]], "uint8")  # classes from 1; 0 and 255 are none; half the image's size
    drawn = masks.overlay(IMAGE[..., :channels], mask, ("Background", "b", "c"), first=1, alpha=0.5)
    assert drawn.shape == (4, 6, 3) and drawn.dtype == np.uint8
    colors = np.rint(50 + masks.colors(3) / 2).astype(int)
    np.testing.assert_array_equal(drawn[0, ::2], [[100] * 3, colors[1], colors[2]])
    assert (drawn[2:] == 100).all()


def test_a_mask_of_another_size_is_resized_by_nearest_neighbor():
    mask = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(masks.nearest(mask, (6, 8)), mask.repeat(2, 0).repeat(2, 1))
    np.testing.assert_array_equal(masks.nearest(mask.repeat(3, 0).repeat(3, 1), (3, 4)), mask)


def test_plot_masks_has_a_legend_and_a_tile_each(tmp_path):
    figure = plots.plot_masks([IMAGE] * 2, np.array([[[[0], [1]]], [[[255], [2]]]], "uint8"))
    assert len(figure.axes) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2"]
    figure = plots.plot_masks([IMAGE], [np.ones((2, 2), int)], ("Background", "$cell$"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"\$cell\$"]
    figure.savefig(tmp_path / "masks.png")


def test_scores_are_bars_lowest_first_and_shares(tmp_path):
    matrix = [[8, 2, 0], [0, 5, 5], [0, 0, 10]]
    figure = plots.plot_iou(matrix, ["a", "b", "c"])
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "c", "b"]  # from the axis upwards
    np.testing.assert_allclose([bar.get_width() for bar in axis.patches], [0.8, 10 / 15, 5 / 12])
    figure.savefig(tmp_path / "iou.png")
    figure = plots.plot_pixels(matrix, ["a", "b", "c"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["80", "20", "0", "0", "50", "50", "0", "0", "100"]
    figure.savefig(tmp_path / "pixels.png")
    many = plots.plot_pixels(np.eye(30)).axes[0]
    assert [text.get_text() for text in many.texts] == ["100"] * 30  # zeros are left out


def test_panoptic_quality_is_bars_lowest_first(tmp_path):
    figure = plots.plot_quality([0.5, np.nan, 0.25, 1.0], ["a", "nowhere", "b", "c"])
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["c", "a", "b"]  # from the axis upwards
    assert [bar.get_width() for bar in axis.patches] == [1, 0.5, 0.25] and axis.get_xlabel() == "panoptic quality"
    assert figure.legends[0].get_texts()[0].get_text() == "mean 0.583"
    figure.savefig(tmp_path / "quality.png")
    figure = plots.plot_quality(np.linspace(0.01, 1, 100))
    assert len(figure.axes[0].patches) == 40 and figure.axes[0].patches[0].get_width() == pytest.approx(0.4)
    assert figure.axes[0].get_title() == "the 40 of 100 classes with the lowest"
    assert figure.legends[0].get_texts()[0].get_text() == "mean 0.505"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: plots.plot_masks([IMAGE], []), "one entry for each image. Received: 1 images and 0 masks"),
        (lambda: plots.plot_masks([IMAGE], [np.ones((2, 2))]), "must be integers.* dtype=float64"),
        (lambda: plots.plot_masks([IMAGE], [np.ones((2, 2, 3), int)]), r"shape=\(2, 2, 3\)"),
        (lambda: plots.plot_iou(np.ones((2, 3))), r"Received: shape=\(2, 3\)"),
        (lambda: plots.plot_pixels(np.eye(2), ["a"]), "each of 2 classes"),
        (lambda: plots.plot_quality([0.5], ["a", "b"]), "each of 1 classes"),
        (lambda: plots.plot_quality([np.nan]), r"one class or more. Received: .nan"),
        (lambda: plots.plot_quality([[0.5]]), r"Received: ..0.5"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

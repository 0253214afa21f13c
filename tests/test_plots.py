import numpy as np
import pytest

from keras_vit import plot_attention, plot_history, vit


@pytest.mark.parametrize("count, channels", [(1, 1), (5, 3)])
def test_attention_shows_each_image_and_its_rollout(count, channels, tmp_path):
    model = vit("mu/4", image_size=(12, 8), channels=channels, num_classes=5)
    images = np.random.default_rng(0).integers(0, 256, (count, 12, 8, channels)).astype("uint8")
    figure = plot_attention(model, images, [f"class {i}" for i in range(count)])
    drawn = [axis for axis in figure.axes if axis.images]
    assert len(drawn) == 2 * count
    assert [axis.get_title() for axis in drawn[::2]] == [f"class {i}" for i in range(count)]
    figure.savefig(tmp_path / "attention.png")


def test_history_shows_both_curves(tmp_path):
    history = {"loss": [2.0, 1.0], "val_loss": [2.1, 1.2], "accuracy": [0.1, 0.5], "val_accuracy": [0.2, 0.4]}
    figure = plot_history(history)
    loss, accuracy = figure.axes
    np.testing.assert_array_equal(loss.lines[1].get_ydata(), [2.1, 1.2])
    np.testing.assert_array_equal(accuracy.lines[0].get_xydata(), [[1, 0.1], [2, 0.5]])
    figure.savefig(tmp_path / "curves.png")

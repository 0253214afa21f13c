import re

import numpy as np
import pytest

from keras_vit import plot_history
from keras_vit.plots import history

HISTORY = {"loss": [2.0, 1.0], "val_loss": [2.1, 1.2], "accuracy": [0.1, 0.5], "val_accuracy": [0.2, 0.4]}


def test_history_shows_both_curves(tmp_path):
    figure = plot_history(HISTORY)
    loss, accuracy = figure.axes
    np.testing.assert_array_equal(loss.lines[1].get_ydata(), [2.1, 1.2])
    np.testing.assert_array_equal(accuracy.lines[0].get_xydata(), [[1, 0.1], [2, 0.5]])
    figure.savefig(tmp_path / "curves.png")
    _, alone = plot_history({"loss": [2.0, 1.0], "val_knn_accuracy": [0.2, 0.4]}).axes  # measured in validation only
    assert alone.get_ylabel() == "knn accuracy"
    np.testing.assert_array_equal(alone.lines[0].get_ydata(), [0.2, 0.4])


def test_runs_are_compared_with_their_rate_and_pace(tmp_path):
    more = HISTORY | {"learning_rate": [1e-3, 5e-4], "images_per_second": [100, 200]}
    figure = plot_history({"first": more, "second": {"loss": [3.0], "accuracy": [0.2]}})
    loss, _, rate, pace = figure.axes
    texts = [text.get_text() for text in loss.get_legend().get_texts()]
    assert texts == ["first training", "first validation", "second training"]
    np.testing.assert_array_equal(rate.lines[0].get_ydata(), [1e-3, 5e-4])
    assert [text.get_text() for text in rate.get_legend().get_texts()] == ["first"]
    assert pace.get_ylabel() == "images per second" and len(pace.lines) == 1
    figure.savefig(tmp_path / "curves.png")


def test_epochs_are_whole_numbers_and_rates_short():
    rates = [3e-4, 2e-4, 1e-4]
    figure = plot_history({"loss": [3.0, 2.0, 1.0], "learning_rate": rates})
    figure.canvas.draw()
    loss, rate, *_ = figure.axes
    for axis in (loss, rate):
        ticks = [text.get_text() for text in axis.get_xticklabels()]
        assert all(re.fullmatch(r"\d+", text) for text in ticks) and {"1", "2", "3"} <= set(ticks)
    found = {text.get_text() for text in rate.get_yticklabels()}
    assert {"1e-4", "2e-4", "3e-4"} <= found and rate.yaxis.get_offset_text().get_text() == ""
    single = plot_history({"loss": [1.0]}).axes[0]
    assert all(tick % 1 == 0 for tick in single.get_xticks())


@pytest.mark.parametrize(
    "value, text", [(3e-4, "3e-4"), (2.5e-5, "2.5e-5"), (0.05, "0.05"), (0, "0"), (1e-3, "1e-3"), (1.5, "1.5")]
)
def test_a_rate_is_written_as_in_code(value, text):
    assert history._rate(value) == text


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"`\.history`"):
        plot_history([1.0, 2.0])
    for empty in ({}, {"loss": []}, {"first": {"accuracy": [1.0]}}):
        with pytest.raises(ValueError, match="must have a `loss`"):
            plot_history(empty)

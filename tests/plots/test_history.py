import re

import keras
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
    assert [line.get_label() for line in loss.lines] == ["first training", "first validation", "second training"]
    np.testing.assert_array_equal(rate.lines[0].get_ydata(), [1e-3, 5e-4])
    assert [line.get_label() for line in rate.lines] == ["first"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second"]
    assert loss.get_title() == "dotted: training; drawn: validation"
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
    with pytest.raises(ValueError, match="must be what Keras's `fit` returns, or a dictionary"):
        plot_history([1.0, 2.0])
    for empty in ({}, {"loss": []}, {"first": {"accuracy": [1.0]}}):
        with pytest.raises(ValueError, match="must have a `loss`"):
            plot_history(empty)
    for more, freq in (({"val_loss": [1.0] * 2}, 4), ({"val_loss": [1.0] * 4}, None), ({"pace": [1.0] * 2}, None)):
        with pytest.raises(ValueError, match="must have one value for each epoch, or those of validation one"):
            plot_history({"loss": [1.0] * 5} | more, validation_freq=freq)


def epochs_of(figure, label="validation"):
    return {line.get_label(): line.get_xdata() for line in figure.axes[0].lines}[label]


def kept(epochs, **values):
    """Returns what Keras's `fit` returns."""
    history = keras.callbacks.History()
    history.epoch, history.history = list(epochs), values
    return history


def test_validation_is_drawn_where_it_was_measured():
    """Keras validates the epochs, from 1, that the frequency divides, and keeps the values alone."""
    for epochs, freq in ((10, 5), (9, 3), (10, 3), (7, 7), (11, [2, 3, 11])):
        measured = [i for i in range(1, epochs + 1) if (i in freq if isinstance(freq, list) else i % freq == 0)]
        history = {"loss": [1.0] * epochs, "val_loss": [2.0] * len(measured)}
        np.testing.assert_array_equal(epochs_of(plot_history(history, validation_freq=freq)), measured)
    with pytest.warns(UserWarning, match="2 validations in 10 epochs are drawn every 5 epochs. .*possible: 4, 5"):
        figure = plot_history({"loss": [1.0] * 10, "val_loss": [2.0] * 2})
    np.testing.assert_array_equal(epochs_of(figure), [5, 10])
    only = plot_history({"loss": [1.0] * 10, "val_loss": [2.0] * 3})  # no other frequency has three
    np.testing.assert_array_equal(epochs_of(only), [3, 6, 9])
    holes = plot_history({"loss": [1.0] * 4, "val_loss": [np.nan, 2.0, np.nan, 1.0]})
    np.testing.assert_array_equal(epochs_of(holes), [2, 4])


def test_epochs_are_those_of_the_training():
    later = kept([10, 11], loss=[1.0, 0.5], val_loss=[1.0, 0.6])
    np.testing.assert_array_equal(epochs_of(plot_history(later), "training"), [11, 12])
    np.testing.assert_array_equal(epochs_of(plot_history(later)), [11, 12])
    of_run = {"epoch": [3.0, 4.0], "loss": [1.0, 0.5], "val_loss": [1.0, 0.6]}  # as `history.csv` counts
    np.testing.assert_array_equal(epochs_of(plot_history(of_run), "training"), [4, 5])
    both = plot_history({"Keras": later, "run": of_run})
    np.testing.assert_array_equal(epochs_of(both, "Keras training"), [11, 12])
    np.testing.assert_array_equal(epochs_of(both, "run validation"), [4, 5])
    seldom = kept(range(20, 30), loss=[1.0] * 10, val_loss=[2.0] * 2)
    np.testing.assert_array_equal(epochs_of(plot_history(seldom, validation_freq=5)), [25, 30])

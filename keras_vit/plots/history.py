"""Training curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras

from keras_vit.plots import canvas, lettering
from keras_vit.plots.masks import colors
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAST = ("learning_rate", "images_per_second")
UNDRAWN = ("epoch", "minutes_left")


def plot_history(
    history: dict | keras.callbacks.History, validation_freq: int | Sequence[int] | None = None
) -> "Figure":
    """Draws training curves: loss and each metric by epoch, and the learning rate and throughput if recorded.

    Args:
        history: What Keras's `fit` returns, which knows its epochs (`initial_epoch`); or a dictionary of lists, such as
            its `.history` or what `keras_vit.fit` returns, whose `"epoch"` counts from 0. To compare runs, a dictionary
            from their names to such histories.
        validation_freq: As it was given to Keras's `fit`, whose history does not keep it. If `None`, it is found from
            the number of validations; where several would fit, the last epoch was validated, and a warning says so.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If it has no loss, or lists of a length that does not fit the epochs.
    """
    from matplotlib.ticker import MaxNLocator

    if isinstance(history, keras.callbacks.History):
        history = {"": history}
    if not isinstance(history, dict):
        raise ValueError(
            f"`history` must be what Keras's `fit` returns, or a dictionary of lists. Received: {checks.shown(history)}"
        )
    many = history and all(isinstance(one, (dict, keras.callbacks.History)) for one in history.values())
    histories = history if many else {"": history}
    runs = {name: one if isinstance(one, dict) else one.history for name, one in histories.items()}
    for name, one in runs.items():
        if not len(one.get("loss", ())):
            raise ValueError(
                f"`history` must have a `loss` of at least one epoch. Received: {f'{name}: ' * bool(name)}{sorted(one)}"
            )
    places = {name: _epochs(histories[name], one, validation_freq) for name, one in runs.items()}
    columns = dict.fromkeys(["loss", *(column for one in runs.values() for column in one)])
    columns = dict.fromkeys(column.removeprefix("val_") for column in columns)
    panels = [column for column in columns if column not in (*LAST, *UNDRAWN)]
    panels += [column for column in LAST if column in columns]
    rows, many = -(-len(panels) // 2), len(runs) > 1
    figure = canvas.figure(8, 3.2 if rows == 1 else 2.7 * rows)
    axes, hues = figure.subplots(rows, 2, squeeze=False).ravel(), colors(max(len(runs), 2)) / 255
    for axis, panel in zip(axes, panels):
        validation = None if panel in LAST else f"val_{panel}"
        for hue, (name, one) in zip(hues, runs.items()):
            if panel in one:
                text = f"{name} training".strip() if validation else name or None
                _draw(axis, places[name][panel], one[panel], ":" if many and validation else "-", hue, text)
            if validation in one:
                text = f"{name} validation".strip()
                _draw(axis, places[name][validation], one[validation], "-", hue if many else hues[1], text)
        axis.set(xlabel="epoch", ylabel=lettering.fitted(panel.replace("_", " "), 1.9, 10))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if panel == "learning_rate":
            axis.yaxis.set_major_formatter(lambda value, _: _rate(value))
        axis.grid(alpha=0.3)
    measured = any(column.startswith("val_") for one in runs.values() for column in one)
    if many:
        lettering.legend(figure, map(_line, hues), runs)
        axes[0].set_title("dotted: training; drawn: validation" if measured else "", fontsize=lettering.TITLE)
    else:
        splits = ["training", "validation"] if measured else ["training"]
        lettering.legend(figure, map(_line, hues[: len(splits)]), splits)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    return figure


def _epochs(history, columns, freq):
    """Returns the epochs, from 1, in which the values of each column were measured."""
    epochs = list(getattr(history, "epoch", columns.get("epoch", ()))) or range(len(columns["loss"]))
    epochs = [int(epoch) + 1 for epoch in epochs]
    places = {}
    for column, values in columns.items():
        places[column] = epochs if len(values) == len(epochs) else _validated(epochs, len(values), freq)
        if len(places[column]) != len(values) or not (column.startswith("val_") or len(values) == len(epochs)):
            raise ValueError(
                "Each list of `history` must have one value for each epoch, or those of validation one for each that "
                f"`validation_freq` selects. Received: {len(values)} values of {column!r}, {len(epochs)} epochs, "
                f"validation_freq={checks.shown(freq)}"
            )
    return places


def _validated(epochs, count, freq):
    """Returns the epochs that Keras validates; without a known frequency, those that fit the number of validations."""
    if freq is not None:
        return [epoch for epoch in epochs if (epoch % freq == 0 if isinstance(freq, int) else epoch in freq)]
    every = {f: [epoch for epoch in epochs if epoch % f == 0] for f in range(1, epochs[-1] + 1)}
    fitting = {f: validated for f, validated in every.items() if len(validated) == count}
    best = max(fitting, key=lambda f: epochs[-1] % f == 0, default=None)
    if len(set(map(tuple, fitting.values()))) > 1:
        warn(
            f"{count} validations in {len(epochs)} epochs are drawn every {best} epochs. Pass the `validation_freq` of "
            f"`fit` if that is another; possible: {', '.join(map(str, fitting))}"
        )
    return fitting.get(best, [])


def _line(color):
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color)


def _draw(axis, epochs, values, style, color, label):
    measured = [pair for pair in zip(epochs, values) if pair[1] == pair[1]]  # not NaN, of an epoch without validation
    epochs, values = zip(*measured) if measured else ((), ())
    axis.plot(epochs, values, style, marker="o" if len(values) < 3 else None, color=color, label=label)


def _rate(value):
    """Formats a learning rate as in code: `"3e-4"`, but `"0.05"`."""
    number, exponent = f"{value:.2e}".split("e")
    return f"{float(number):g}e{int(exponent)}" if 0 < abs(value) < 0.01 else f"{value:.3g}"

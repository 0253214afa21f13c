"""Training curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras

from keras_vit.plots import canvas
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
    given = history if many else {"": history}
    runs = {name: one if isinstance(one, dict) else one.history for name, one in given.items()}
    for name, one in runs.items():
        if not len(one.get("loss", ())):
            raise ValueError(
                f"`history` must have a `loss` of at least one epoch. Received: {f'{name}: ' * bool(name)}{sorted(one)}"
            )
    places = {name: _epochs(given[name], one, validation_freq) for name, one in runs.items()}
    columns = dict.fromkeys(["loss", *(column for one in runs.values() for column in one)])
    columns = dict.fromkeys(column.removeprefix("val_") for column in columns)
    panels = [column for column in columns if column not in (*LAST, *UNDRAWN)]
    panels += [column for column in LAST if column in columns]
    figure = canvas.figure(8, 3.2 if len(panels) <= 2 else 5.6)
    axes = figure.subplots(-(-len(panels) // 2), 2, squeeze=False).ravel()
    for axis, panel in zip(axes, panels):
        validation = None if panel in LAST else f"val_{panel}"
        for i, (name, one) in enumerate(runs.items()):
            color = canvas.COLORS[i % len(canvas.COLORS)]
            other = canvas.COLORS[1] if len(runs) == 1 else color
            if panel in one:
                text = f"{name} training".strip() if validation else name or None
                _draw(
                    axis,
                    places[name][panel],
                    one[panel],
                    "-" if len(runs) == 1 or not validation else ":",
                    color,
                    text,
                )
            if validation in one:
                _draw(axis, places[name][validation], one[validation], "-", other, f"{name} validation".strip())
        axis.set(xlabel="epoch", ylabel=panel.replace("_", " "))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if panel == "learning_rate":
            axis.yaxis.set_major_formatter(lambda value, _: _rate(value))
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=8)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    return figure


def _epochs(given, columns, freq):
    """Returns the epochs, from 1, in which the values of each column were measured."""
    epochs = list(getattr(given, "epoch", columns.get("epoch", ()))) or range(len(columns["loss"]))
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
    """Returns the epochs that Keras validates; of a frequency that is not known, those for so many validations."""
    if freq is not None:
        return [epoch for epoch in epochs if (epoch % freq == 0 if isinstance(freq, int) else epoch in freq)]
    every = {f: [epoch for epoch in epochs if epoch % f == 0] for f in range(1, epochs[-1] + 1)}
    fitting = {f: found for f, found in every.items() if len(found) == count}
    best = max(fitting, key=lambda f: epochs[-1] % f == 0, default=None)
    if len(set(map(tuple, fitting.values()))) > 1:
        warn(
            f"{count} validations in {len(epochs)} epochs are drawn every {best} epochs. Pass the `validation_freq` of "
            f"`fit` if that is another; possible: {', '.join(map(str, fitting))}"
        )
    return fitting.get(best, [])


def _draw(axis, epochs, values, style, color, label):
    measured = [pair for pair in zip(epochs, values) if pair[1] == pair[1]]  # not NaN, of an epoch without validation
    epochs, values = zip(*measured) if measured else ((), ())
    axis.plot(epochs, values, style, marker="o" if len(values) < 3 else None, color=color, label=label)


def _rate(value):
    """Formats a learning rate as in code: `"3e-4"`, but `"0.05"`."""
    number, exponent = f"{value:.2e}".split("e")
    return f"{float(number):g}e{int(exponent)}" if 0 < abs(value) < 0.01 else f"{value:.3g}"

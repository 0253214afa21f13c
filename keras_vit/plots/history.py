"""Training curves."""

from typing import TYPE_CHECKING

from keras_vit.plots import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAST = ("learning_rate", "images_per_second")
UNDRAWN = ("epoch", "minutes_left")


def plot_history(history: dict) -> "Figure":
    """Draws training curves: loss and each metric by epoch, and the learning rate and throughput if recorded.

    Args:
        history: Dictionary of lists, as `keras_vit.fit` returns. To compare runs, a dictionary from their names to
            such dictionaries.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If it has no loss.
    """
    from matplotlib.ticker import MaxNLocator

    if not isinstance(history, dict):
        raise ValueError(
            "`history` must be a dictionary of lists, such as `.history` of what Keras's `fit` returns. "
            f"Received: {history!r}"
        )
    runs = history if history and all(isinstance(one, dict) for one in history.values()) else {"": history}
    for name, one in runs.items():
        if not len(one.get("loss", ())):
            raise ValueError(
                f"`history` must have a `loss` of at least one epoch. Received: {f'{name}: ' * bool(name)}{sorted(one)}"
            )
    columns = dict.fromkeys(["loss", *(column for one in runs.values() for column in one)])
    columns = dict.fromkeys(column.removeprefix("val_") for column in columns)
    panels = [column for column in columns if column not in (*LAST, *UNDRAWN)]
    panels += [column for column in LAST if column in columns]
    figure = canvas.figure(8, 3.2 if len(panels) <= 2 else 5.6)
    axes = figure.subplots(-(-len(panels) // 2), 2, squeeze=False).ravel()
    for axis, panel in zip(axes, panels):
        validation = None if panel in LAST else f"val_{panel}"
        for i, (name, one) in enumerate(runs.items()):
            colour = canvas.COLOURS[i % len(canvas.COLOURS)]
            other = canvas.COLOURS[1] if len(runs) == 1 else colour
            if panel in one:
                text = f"{name} training".strip() if validation else name or None
                _draw(axis, one[panel], "-" if len(runs) == 1 or not validation else ":", colour, text)
            if validation in one:
                _draw(axis, one[validation], "-", other, f"{name} validation".strip())
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


def _draw(axis, values, style, colour, label):
    epochs = range(1, len(values) + 1)
    axis.plot(epochs, values, style, marker="o" if len(values) < 3 else None, color=colour, label=label)


def _rate(value):
    """Formats a learning rate as in code: `"3e-4"`, but `"0.05"`."""
    number, exponent = f"{value:.2e}".split("e")
    return f"{float(number):g}e{int(exponent)}" if 0 < abs(value) < 0.01 else f"{value:.3g}"

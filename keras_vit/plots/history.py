"""Pictures of trainings."""

from keras_vit.plots import canvas

PANELS = {
    #                     label of its axis, column of the validation
    "loss":              ("loss", "val_loss"),
    "accuracy":          ("accuracy", "val_accuracy"),
    "learning_rate":     ("learning rate", None),
    "images_per_second": ("images a second", None),
}  # fmt: skip


def plot_history(history):
    """Draws loss and accuracy by epoch, and the learning rate and throughput where they are known.

    Args:
        history: Dictionary of lists, as `keras_vit.fit` returns; or several runs', as a dictionary from their names to
            such dictionaries.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If there is no loss in it.
    """
    from matplotlib.ticker import MaxNLocator

    if not isinstance(history, dict):
        raise ValueError(f"A history is a dictionary of lists: of what `fit` gives, `.history`. Received: {history!r}")
    runs = history if history and all(isinstance(one, dict) for one in history.values()) else {"": history}
    for name, one in runs.items():
        if not len(one.get("loss", ())):
            raise ValueError(f"A history has a `loss` of one epoch or more. Received: {name} {sorted(one)}")
    panels = [panel for panel in PANELS if any(panel in one for one in runs.values())]
    figure = canvas.figure(8, 3.2 if len(panels) <= 2 else 5.6)
    axes = figure.subplots(-(-len(panels) // 2), 2, squeeze=False).ravel()
    for axis, panel in zip(axes, panels):
        label, validation = PANELS[panel]
        for i, (name, one) in enumerate(runs.items()):
            colour = canvas.COLOURS[i % len(canvas.COLOURS)]
            other = canvas.COLOURS[1] if len(runs) == 1 else colour
            if panel in one:
                told = f"{name} training".strip() if validation else name or None
                _draw(axis, one[panel], "-" if len(runs) == 1 or not validation else ":", colour, told)
            if validation in one:
                _draw(axis, one[validation], "-", other, f"{name} validation".strip())
        axis.set(xlabel="epoch", ylabel=label)
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
    """Returns a learning rate as it is written in code: `"3e-4"`, but `"0.05"`."""
    number, exponent = f"{value:.2e}".split("e")
    return f"{float(number):g}e{int(exponent)}" if 0 < abs(value) < 0.01 else f"{value:.3g}"

"""Pictures of what `explain` and training return, as matplotlib figures."""

import numpy as np

from keras_vit.explain import attention_rollout


def plot_attention(model, images, titles=None):
    """Draws images, each beside its attention rollout laid over it.

    Args:
        model: As in `attention_maps`.
        images: Array, `(batch, height, width, channels)`, 0..255.
        titles: A text for each image, or `None`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    images = np.asarray(images)
    rollout = attention_rollout(model, images)
    pairs_across = min(4, len(images))
    rows = -(-len(images) // pairs_across)
    figure = _figure((3.2 * pairs_across, 1.8 * rows + 0.5))
    axes = figure.subplots(rows, 2 * pairs_across, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    if images.shape[-1] not in (1, 3):
        images = images.mean(axis=-1, keepdims=True)
    for i, image in enumerate(images):
        plain, over = axes[2 * i : 2 * i + 2]
        extent = (0, image.shape[1], image.shape[0], 0)
        for axis in (plain, over):
            axis.imshow(image.squeeze() / 255, cmap="gray", vmin=0, vmax=1, extent=extent)
        heat = over.imshow(rollout[i], cmap="inferno", alpha=0.65, extent=extent, interpolation="bilinear")
        heat.set_clim(rollout[i].min(), rollout[i].max())
        if titles is not None:
            plain.set_title(titles[i], fontsize=9)
        over.set_title("attention", fontsize=9)
    figure.suptitle("Attention rollout: bright patches flow most into the answer", fontsize=10)
    return figure


def plot_history(history):
    """Draws loss and accuracy by epoch.

    Args:
        history: Dictionary of lists, as `keras_vit.fit` returns.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure = _figure((8, 3.2))
    epochs = np.arange(1, len(history["loss"]) + 1)
    for axis, name in zip(figure.subplots(1, 2), ("loss", "accuracy")):
        axis.plot(epochs, history[name], label="training", color="#0072B2")
        if f"val_{name}" in history:
            axis.plot(epochs, history[f"val_{name}"], label="validation", color="#D55E00")
        axis.set(xlabel="epoch", ylabel=name)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    return figure


def _figure(size):
    import matplotlib.pyplot  # noqa: F401  (lets a notebook show the figure)
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained", dpi=120)

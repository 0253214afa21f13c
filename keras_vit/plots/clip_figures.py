"""Clips with what a model attends to: frames side by side, and as an animation."""

import numpy as np

from keras_vit.plots import canvas
from keras_vit.plots.pictures import plot_pictures

SIDE = 160  # pixels of a frame in an animation
DURATION = 200  # milliseconds of a frame


def plot_clips(clips, maps, titles=None):
    """Draws frames of each clip above the same frames under its heat map.

    Args:
        clips: Array, `(batch, frames, height, width, channels)`, 0..255.
        maps: Array, `(batch, steps, rows, columns)`, such as `keras_vit.attention_rollout` returns of clips.
        titles: A text for each clip, or `None`.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: If the numbers of clips, maps and titles differ.
    """
    _check(clips, maps)
    pictures = [
        canvas.side_by_side([canvas.painted(clip), canvas.painted(clip, heat)], axis=0)
        for clip, heat in zip(clips, maps)
    ]
    return plot_pictures(pictures, titles, across=2)


def write_animation(path, clips, maps):
    """Writes clips as an animated GIF, one below the other: each next to itself under its heat map.

    Args:
        path: The file.
        clips: As in `plot_clips`.
        maps: As in `plot_clips`.

    Raises:
        ValueError: If the numbers of clips and maps differ.
    """
    from PIL import Image

    _check(clips, maps)
    frames = []
    for i in range(len(clips[0])):
        rows = [
            canvas.side_by_side([canvas.framed(clip, None, i, SIDE), canvas.framed(clip, heat, i, SIDE)])
            for clip, heat in zip(clips, maps)
        ]
        frames.append(Image.fromarray(canvas.side_by_side(rows, axis=0)))
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:], duration=DURATION, loop=0)


def in_a_row(clips, maps=None, axis=2):
    """Returns frames of each clip side by side, four at most, with white between; images stay as they are.

    Args:
        clips: Array, `(batch, frames, height, width, channels)`, 0..255; or images, of an axis less.
        maps: Heat maps of them, `(batch, words, steps, rows, columns)`; of images of an axis less.
        axis: 2, or 1 for frames below each other.

    Returns:
        `(batch, height, n * width + gaps, channels)` of n frames; with `maps` also `(batch, words, rows, n * columns)`.
    """
    clips = np.asarray(clips)
    if clips.ndim == 4:
        return clips if maps is None else (clips, maps)
    frames = clips.shape[1]
    places = np.linspace(0, frames - 1, min(frames, canvas.FRAMES)).round().astype(int)
    gap = np.full_like(np.take(clips[:, 0], [0], axis), 255)
    row = np.concatenate([part for place in places for part in (gap, clips[:, place])][1:], axis=axis)
    if maps is None:
        return row
    steps = maps.shape[2]
    return row, np.concatenate([maps[:, :, place * steps // frames] for place in places], axis=axis + 1)


def _check(clips, maps):
    if np.ndim(clips) != 5 or np.ndim(maps) != 4 or len(clips) != len(maps) or not len(clips):
        raise ValueError(
            "There must be a map (steps, rows, columns) for each clip (frames, height, width, channels). "
            f"Received: clips of shape {np.shape(clips)}, maps of shape {np.shape(maps)}"
        )

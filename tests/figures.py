"""Whether the texts of a figure can be read: they lie inside it, none on another, and all differ from what is below."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.text import Text

from keras_vit.plots.canvas import PAPER

SLACK = 2  # pixels
LEAST = 4.5  # contrast of text (WCAG 2, level AA)
GROUNDS = {"#ffffff": "#000000", "#14161a": "#e8eaed"}  # of a page, light and dark, and what black turns into there


def boxes(figure):
    """Returns `(text, box)` of all texts that are drawn, the box in pixels as left, bottom, right, top."""
    return [(text.get_text(), box) for text, box in _drawn(figure)]


def _drawn(figure):
    drawn = FigureCanvasAgg(figure)
    drawn.draw()  # lays it out
    renderer = drawn.get_renderer()
    hidden = {id(part) for axes in figure.findobj(Axes) for part in _hidden(axes)}
    shown = [text for text in figure.findobj(Text) if id(text) not in hidden and text.get_visible()]
    return [(text, text.get_window_extent(renderer).extents) for text in shown if text.get_text().strip()]


def _hidden(axes):
    """Returns the texts of axes that are not drawn: all without a frame, and those of ticks outside the limits."""
    both = (axes.xaxis, axes.yaxis)
    if not axes.axison:
        return [part for axis in both for part in axis.findobj(Text)]
    ends = {axis: sorted(axis.get_view_interval()) for axis in both}
    ticks = [(axis, tick) for axis in both for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())]
    outer = [tick for axis, tick in ticks if not ends[axis][0] <= tick.get_loc() <= ends[axis][1]]
    return [part for tick in outer for part in tick.findobj(Text)]


def outside(figure):
    """Returns the texts of which a part lies outside the figure."""
    width, height = figure.get_size_inches() * figure.dpi
    return [
        text
        for text, (left, bottom, right, top) in boxes(figure)
        if left < -SLACK or bottom < -SLACK or right > width + SLACK or top > height + SLACK
    ]


def overlapping(figure):
    """Returns pairs of texts of which one lies on the other."""
    found = boxes(figure)
    pairs = []
    for i, (one, a) in enumerate(found):
        for other, b in found[i + 1 :]:
            across, down = (min(a[2 + k], b[2 + k]) - max(a[k], b[k]) for k in (0, 1))
            if min(across, down) > SLACK:
                pairs.append((one, other))
    return pairs


def luminance(color):
    """Returns the relative luminance of colors, `(..., 3)`, 0 to 1, by WCAG 2."""
    color = np.asarray(color, "float64")
    return np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def contrast(color, other):
    """Returns the contrast of two colors, `(..., 3)`, 0 to 1, by WCAG 2: 1 to 21."""
    low, high = np.sort([luminance(color), luminance(other)], axis=0)
    return (high + 0.05) / (low + 0.05)


def faint(figure):
    """Returns `(text, ground, contrast)` of texts that differ too little from what is below them on a page.

    A page is light or dark; there, as in a report, nothing is behind a figure, black is the page's text color, and
    `PAPER` its ground. What is below a text is the median of the pixels in its box. The figure is spoilt.
    """
    texts = _drawn(figure)
    figure.set_layout_engine("none")
    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_visible(False)
    for text in figure.findobj(Text):
        text.set_visible(False)
    drawn = FigureCanvasAgg(figure)
    drawn.draw()
    pixels = np.asarray(drawn.buffer_rgba())[::-1] / 255
    paper = np.isclose(pixels[..., :3], to_rgb(PAPER), atol=1e-3).all(-1, keepdims=True)
    found = []
    for ground, ink in GROUNDS.items():
        seen = pixels[..., :3] * pixels[..., 3:] + (1 - pixels[..., 3:]) * to_rgb(ground)
        seen = np.where(paper, to_rgb(ground), seen)
        for text, box in texts:
            left, bottom, right, top = np.clip(np.round(box).astype(int), 0, None)
            below = np.median(seen[bottom : top + 1, left : right + 1].reshape(-1, 3), axis=0)
            color = to_rgba(text.get_color(), text.get_alpha())
            color = to_rgba(ink) if color == (0, 0, 0, 1) else color
            mixed = np.array(color[:3]) * color[3] + below * (1 - color[3])
            if (value := contrast(mixed, below)) < LEAST:
                found.append((text.get_text(), ground, round(float(value), 2)))
    return found


def unreadable(figure):
    """Returns what is cut or hidden in a figure, with its size if it is larger than a page."""
    large = [] if max(figure.get_size_inches()) < 60 else [tuple(np.round(figure.get_size_inches()))]
    return [*outside(figure), *overlapping(figure), *large]

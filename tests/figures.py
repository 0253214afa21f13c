"""Whether the texts of a figure can be read: they lie inside it, and none lies on another."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

SLACK = 2  # pixels


def boxes(figure):
    """Returns `(text, box)` of all texts that are drawn, the box in pixels as left, bottom, right, top."""
    drawn = FigureCanvasAgg(figure)
    drawn.draw()  # lays it out
    renderer = drawn.get_renderer()
    hidden = {id(part) for axes in figure.findobj(Axes) for part in _hidden(axes)}
    shown = [text for text in figure.findobj(Text) if id(text) not in hidden and text.get_visible()]
    return [(text.get_text(), text.get_window_extent(renderer).extents) for text in shown if text.get_text().strip()]


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


def unreadable(figure):
    """Returns what is cut or hidden in a figure, with its size if it is larger than a page."""
    large = [] if max(figure.get_size_inches()) < 60 else [tuple(np.round(figure.get_size_inches()))]
    return [*outside(figure), *overlapping(figure), *large]

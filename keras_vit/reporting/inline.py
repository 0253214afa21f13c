"""Figures as inline SVG and images as data URLs, so that a page needs no other file."""

import base64
import io
import warnings
from xml.dom import minidom

from keras_vit.plots.canvas import PAPER

QUALITY = 85  # of JPEG
BROAD = 7  # inches of a figure that a page gives its whole width, at least
METADATA = ("Creator", "Date", "Format", "Type")  # what matplotlib writes into each file by default


def svg(figure, name, hints=None):
    """Returns a matplotlib figure as SVG to put into HTML.

    Black becomes the page's text color, and the background is transparent, so that the figure fits a light page and a
    dark one.

    Args:
        figure: The figure.
        name: A name that no other figure of the page has: matplotlib derives the ids inside the SVG from it.
        hints: Dictionary from the gid of a scatter plot to a text for each of its points, in order. A browser shows it
            when the pointer is over the point.
    """
    import matplotlib

    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # letters stay text, for which a browser has fonts
        figure.savefig(written, format="svg", transparent=True, metadata=dict.fromkeys(METADATA))
    drawing = minidom.parseString(written.getvalue()).documentElement
    for group in drawing.getElementsByTagName("g"):
        texts = (hints or {}).get(group.getAttribute("id"))
        if texts:
            _add_titles(group.getElementsByTagName("use"), texts)
        if group.hasAttribute("id"):  # "axes_1" in each figure: ids must be unique in a page
            group.removeAttribute("id")
    for element in drawing.getElementsByTagName("*"):
        if element.hasAttribute("style"):
            element.setAttribute(
                "style", element.getAttribute("style").replace("#000000", "currentColor").replace(PAPER, "var(--page)")
            )
    inches = figure.get_figwidth()
    drawing.setAttribute("style", f"--inches: {inches:.2f}")
    drawing.setAttribute("class", "broad" if inches > BROAD else "")
    return drawing.toxml()


def _add_titles(points, texts):
    """Gives each point a `<title>`, which a browser shows under the pointer."""
    for point, text in zip(points, texts, strict=True):
        title = point.ownerDocument.createElement("title")
        title.appendChild(point.ownerDocument.createTextNode(text))
        point.appendChild(title)


def jpeg(pixels):
    """Returns an image as a data URL; `pixels` is a uint8 array, `(rows, columns, 3)`."""
    from PIL import Image

    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"

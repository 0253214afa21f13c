"""Figures as inline SVG, and images as data URLs, so that a page is one file."""

import base64
import io
import warnings
from xml.dom import minidom

from keras_vit.plots.canvas import PAPER

QUALITY = 85  # quality of JPEG images
BROAD = 7  # figures wider than this, in inches, take the whole width of a page
METADATA = ("Creator", "Date", "Format", "Type")  # default metadata of matplotlib, to leave out


def svg(figure, name, hints=None):
    """Returns a matplotlib figure as SVG for an HTML page, a string.

    Black becomes the page's text color, and the background is transparent, for light and dark pages.

    Args:
        figure: The figure.
        name: Unique name in the page, from which matplotlib derives the ids inside the SVG.
        hints: Dictionary from the gid of a scatter plot to a list with a text for each point. A browser shows the text
            when the pointer is over the point.
    """
    import matplotlib

    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # text stays text: browsers have fonts for it
        figure.savefig(written, format="svg", transparent=True, metadata=dict.fromkeys(METADATA))
    drawing = minidom.parseString(written.getvalue()).documentElement
    for group in drawing.getElementsByTagName("g"):
        texts = (hints or {}).get(group.getAttribute("id"))
        if texts:
            _add_titles(group.getElementsByTagName("use"), texts)
        if group.hasAttribute("id"):  # ids must be unique in a page: each figure has "axes_1"
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
    """Adds a `<title>` to each point, which browsers show under the pointer."""
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

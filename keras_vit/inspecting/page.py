"""The page of findings: pictures side by side, in one HTML file that needs no network."""

import importlib.resources

import numpy as np

from keras_vit.inspecting import pixels
from keras_vit.inspecting.findings import KINDS
from keras_vit.reporting import inline

SHOWN = 60  # findings of a kind
TILE = 160  # pixels of a picture's longer side; small pictures are enlarged to it


def render(inspection):
    """Returns the HTML of an `Inspection`."""
    import jinja2

    read = lambda folder, name: (importlib.resources.files(folder) / name).read_text(encoding="utf-8")  # noqa: E731
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pictures, counts = inspection.pictures, inspection.counts()
    return environment.from_string(read("keras_vit.inspecting", "page.html")).render(
        name=pictures.folder.resolve().name if pictures.folder else "Pictures in memory",
        style=read("keras_vit.reporting", "page.css"),
        count=len(pictures) + len(pictures.unread),
        counts=counts,
        kinds={kind: KINDS[kind] for kind, number in counts.items() if number},
        sections={kind: _shown(inspection, kind) for kind in KINDS},
        remarks=inspection.remarks,
    )


def _shown(inspection, kind):
    """Returns the first findings of a kind, each with its pictures as data URLs."""
    some = [one for one in inspection.findings if one.kind == kind][:SHOWN]
    return [
        {"finding": one, "pictures": [_tile(inspection.pictures, row) for row in (one.row, one.other_row)]}
        for one in some
    ]


def _tile(pictures, row):
    """Returns a picture as a data URL, or `None`."""
    if row is None or pictures.images is None:
        return None
    image = pictures.images[row]
    try:
        small = _small(pixels.shown(image) if pictures.files else pixels.pixels_of(image))
    except (OSError, ValueError):  # it cannot be read, or is gone
        return None
    return inline.jpeg(small)


def _small(pixels):
    """Returns a picture whose longer side is `TILE`; one of few pixels keeps them visible."""
    from PIL import Image

    image = Image.fromarray(pixels)
    factor = TILE / max(image.size)
    how = Image.Resampling.NEAREST if factor > 2 else Image.Resampling.BILINEAR
    return np.asarray(image.resize([max(round(side * factor), 1) for side in image.size], how, reducing_gap=2))

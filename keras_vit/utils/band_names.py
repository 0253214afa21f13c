"""The names of the bands of a TIFF: GDAL's descriptions, or ImageJ's labels."""

import xml.etree.ElementTree

GDAL, MOST = 42112, 2**20  # a tag; characters of it
DESCRIPTION = "DESCRIPTION"


def names_of(file, pages, count):
    """Returns the names of a file's bands, or an empty tuple if it does not name each.

    Args:
        file: A `tifffile.TiffFile`.
        pages: Its pages.
        count: Number of its bands.
    """
    if file.is_imagej:
        labels = (file.imagej_metadata or {}).get("Labels") or ()
        return _each(dict(enumerate(labels)), count)
    if len(pages) > 1:
        return ()
    text = pages[0].tags.valueof(GDAL)
    if not isinstance(text, str) or len(text) > MOST or "<!" in text:  # no definitions, which may grow
        return ()
    try:
        items = xml.etree.ElementTree.fromstring(text).iter("Item")
    except xml.etree.ElementTree.ParseError:
        return ()
    named = [item for item in items if item.get("name") == DESCRIPTION and (item.get("sample") or "").isdigit()]
    return _each({int(item.get("sample")): (item.text or "").strip() for item in named}, count)


def _each(names, count):
    found = tuple(str(names.get(i, "")) for i in range(count))
    return found if all(found) and len({*found}) == count else ()

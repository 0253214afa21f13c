"""Image files with every orientation of EXIF, wherever files may have it."""

import struct

import numpy as np

from tests import picturefiles

BACK = {number: {6: 8, 8: 6}.get(number, number) for number in range(1, 9)}  # what undoes each


def tiff(number, order=">", kind=3, before=0, offset=8):
    """Returns a block of TIFF: `before` other entries, and the orientation as a number of type `kind`."""
    pack = lambda form, *values: struct.pack(order + form, *values)  # noqa: E731
    value = pack({1: "BBH", 3: "HH", 4: "L"}[kind], number, *[0] * {1: 2, 3: 1, 4: 0}[kind])
    entries = [pack("HHLL", 0x100, 4, 1, 7)] * before + [pack("HHL", 0x0112, kind, 1) + value]
    head = {">": b"MM", "<": b"II"}[order] + pack("HL", 42, offset)
    return head.ljust(offset, b"\7") + pack("H", len(entries)) + b"".join(entries) + pack("L", 0)


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(block, *before, image=picturefiles.FIRST):
    """Returns a JPEG with a block of TIFF behind its first segment, and `before` it other segments."""
    plain = picturefiles.saved(image, "JPEG", quality=90)
    at = 4 + int.from_bytes(plain[4:6], "big")
    exif = b"" if block is None else segment(0xE1, b"Exif\0\0" + block)
    return plain[:at] + b"".join(before) + exif + plain[at:]


def png(block, behind=False, image=picturefiles.FIRST):
    plain, chunk = picturefiles.saved(image, "PNG"), picturefiles.chunk(b"eXIf", block)
    at = plain.index(b"IEND") - 4 if behind else 33
    return plain[:at] + chunk + plain[at:]


def webp(block):
    return picturefiles.saved(picturefiles.FIRST, "WEBP", lossless=True, exif=block)


def every():
    """Returns files of each orientation from 1 to 8: a dictionary from names to bytes and the orientation."""
    files = {}
    for number in range(1, 9):
        for name, make in {"jpg": jpeg, "png": png, "webp": webp}.items():
            files[f"{number}.{name}"] = (make(tiff(number)), number)
    return files


XMP = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x>Exif\0\0 II*\0</x>")
PROFILE = segment(0xE2, b"ICC_PROFILE\0\1\1" + bytes(60_000))
TEXT = picturefiles.chunk(b"tEXt", b"eXIf\0" + tiff(6))
ODD = {
    "little.jpg": (jpeg(tiff(6, "<")), 6),
    "byte.jpg": (jpeg(tiff(6, kind=1)), 1),
    "long.jpg": (jpeg(tiff(6, kind=4)), 6),
    "long_little.jpg": (jpeg(tiff(6, "<", kind=4)), 6),
    "many.jpg": (jpeg(tiff(6, before=20)), 6),
    "later.jpg": (jpeg(tiff(6, "<", offset=40)), 6),
    "behind.jpg": (jpeg(tiff(6), XMP, PROFILE), 6),
    "filled.jpg": (jpeg(tiff(6), b"\xff\xff"), 6),
    "little.png": (png(tiff(6, "<")), 6),
    "behind.png": (png(tiff(6), behind=True), 6),
    "prefixed.png": (png(b"Exif\0\0" + tiff(6)), 6),
    "little.webp": (webp(tiff(6, "<")), 6),
    "prefixed.webp": (webp(b"Exif\0\0" + tiff(6)), 6),
    "zero.jpg": (jpeg(tiff(0)), 1),
    "nine.jpg": (jpeg(tiff(9)), 1),
    "high.jpg": (jpeg(tiff(0x0106)), 1),
    "cut.jpg": (jpeg(tiff(6)[:12]), 1),
    "far.jpg": (jpeg(b"MM\0*\xff\xff\xff\xf0" + tiff(6)[8:]), 1),
    "no_tiff.jpg": (jpeg(b"XX" + tiff(6)[2:]), 1),
    "empty.jpg": (jpeg(b""), 1),
    "xmp.jpg": (jpeg(None, XMP), 1),
    "comment.jpg": (jpeg(None, segment(0xFE, b"Exif\0\0" + tiff(6))), 1),
    "text.png": (picturefiles.png(picturefiles.GRAY, 8, 0, 20, 12, TEXT), 1),
}


def upright(number, pixels=picturefiles.COLOR):
    """Returns what `pixels` show if they are stored with an orientation: by rotation and mirror, as EXIF defines it."""
    quarter = {1: 0, 2: 0, 3: 2, 4: 2, 5: 1, 6: 3, 7: 3, 8: 1}[number]  # anticlockwise
    pixels = pixels[:, ::-1] if number in (2, 4, 5, 7) else pixels
    return np.rot90(pixels, quarter)


def all_kinds():
    """Returns files with and without an orientation, no image among them: the bytes and the number of each name."""
    files = {**every(), **ODD}
    others = picturefiles.EXACT | picturefiles.JPEGS | {"empty": b"", "riff": b"RIFF", "text": b"no image"}
    items = {name: data for name, (data, _) in files.items()}
    numbers = {name: number for name, (_, number) in files.items()}
    items |= {f"other {name}": data for name, data in others.items()}
    numbers |= {f"other {name}": 6 if name.startswith("turned") else 1 for name in others}
    return items, numbers

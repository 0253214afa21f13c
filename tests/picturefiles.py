"""Image files of every kind, encoded, and files that are refused."""

import io
import os
import pathlib
import socket
import struct
import zlib

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 12, 20
RNG = np.random.default_rng(0)
GRAY = np.add.outer(np.arange(HEIGHT) * 9, np.arange(WIDTH) * 7).astype("uint8")
COLOR = np.stack([GRAY, GRAY[::-1], 255 - GRAY], axis=-1)
ALPHA = RNG.integers(0, 256, (HEIGHT, WIDTH)).astype("uint8")
FIRST = Image.fromarray(COLOR)
LATER = [Image.fromarray(np.roll(COLOR, 5 * i, 1)) for i in (1, 2)]
SEEN = Image.fromarray(np.dstack([COLOR, ALPHA]))
PALETTE = FIRST.convert("P")
TURNED = Image.Exif()
TURNED[0x0112] = 6  # by 90 degrees


def saved(image, kind, **settings):
    file = io.BytesIO()
    image.save(file, kind, **settings)
    return file.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(rows, bits, colors, width, height, *more):
    """Returns a PNG of any sort: `rows` are its bytes, `(height, bytes)`, `colors` its type of color."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colors, 0, 0, 0))
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def sixteen(channels, colors, *more):
    values = RNG.integers(0, 2**16, (HEIGHT, WIDTH * channels)).astype(">u2")
    return png(values, 16, colors, WIDTH, HEIGHT, *more)


def bomb(side):
    """Returns a black PNG with two colors, of few bytes."""
    return png(np.zeros((side, side // 8 + 1), "uint8"), 1, 0, side, side)


moving = {"save_all": True, "append_images": LATER}
EXACT = {
    "gray.png": saved(Image.fromarray(GRAY), "PNG"),
    "color.png": saved(FIRST, "PNG"),
    "two.png": saved(Image.fromarray(GRAY).convert("1"), "PNG"),
    "gray16.png": sixteen(1, 0),
    "gray16_transparent.png": sixteen(1, 0, chunk(b"tRNS", b"\1\2")),
    "gray16_alpha.png": sixteen(2, 4),
    "color16.png": sixteen(3, 2),
    "color16_alpha.png": sixteen(4, 6),
    "palette.png": saved(PALETTE, "PNG"),
    "palette_transparent.png": saved(PALETTE, "PNG", transparency=3),
    "palette_alpha.png": saved(PALETTE, "PNG", transparency=bytes(range(256))),
    "gray_alpha.png": saved(Image.merge("LA", [Image.fromarray(GRAY), Image.fromarray(ALPHA)]), "PNG"),
    "alpha.png": saved(SEEN, "PNG"),
    "alpha.webp": saved(SEEN, "WEBP", lossless=True, exact=True),
    "alpha_lossy.webp": saved(SEEN, "WEBP"),
    "color.webp": saved(FIRST, "WEBP", lossless=True),
    "lossy.webp": saved(FIRST, "WEBP"),
    "moving.gif": saved(FIRST, "GIF", **moving),
    "moving_transparent.gif": saved(SEEN, "GIF", save_all=True, append_images=[SEEN.rotate(180)]),
    "moving.webp": saved(FIRST, "WEBP", lossless=True, **moving),
    "moving_alpha.webp": saved(SEEN, "WEBP", lossless=True, save_all=True, append_images=[SEEN.rotate(180)]),
    "moving.png": saved(FIRST, "PNG", **moving),
    "still.gif": saved(Image.fromarray(GRAY), "GIF"),
    "color.bmp": saved(FIRST, "BMP"),
    "gray.bmp": saved(Image.fromarray(GRAY), "BMP"),
    "alpha.bmp": saved(SEEN, "BMP"),
    "palette.bmp": saved(PALETTE, "BMP"),
    "two.bmp": saved(Image.fromarray(GRAY).convert("1"), "BMP"),
    "turned.png": saved(FIRST, "PNG", exif=TURNED),
    "turned.webp": saved(FIRST, "WEBP", lossless=True, exif=TURNED),
}
JPEGS = {
    "color.jpg": saved(FIRST, "JPEG", quality=90),
    "gray.jpg": saved(Image.fromarray(GRAY), "JPEG", quality=90),
    "progressive.jpg": saved(FIRST, "JPEG", quality=90, progressive=True),
    "cmyk.jpg": saved(FIRST.convert("CMYK"), "JPEG", quality=90),
    "turned.jpg": saved(FIRST, "JPEG", quality=90, exif=TURNED),
}
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 12\n%%EndComments\nshowpage\n%%EOF\n"
REFUSED = {  # name: (bytes, the reason)
    "text.png": (b"no image", "is not a PNG, JPEG, BMP, GIF or WebP image"),
    "eps.png": (EPS, "is not a PNG, JPEG, BMP, GIF or WebP image"),
    "tiff.png": (saved(FIRST, "TIFF"), "is not a PNG, JPEG, BMP, GIF or WebP image"),
    "side.png": (bomb(20_000), "is too large: it has more than 128 million pixels"),
    "lies.png": (png(GRAY[:, :3], 8, 2, 2**30, 2**30), "is too large: it has more than 128 million pixels"),
    "area.png": (png(GRAY[:1], 8, 0, 12_000, 12_000), "is too large: it has more than 128 million pixels"),
}  # fmt: skip


def irregular(folder):
    """Makes a pipe, a folder, a link to a device and a socket; returns the paths."""
    os.mkfifo(folder / "pipe.png")
    (folder / "folder.png").mkdir()
    os.symlink("/dev/zero", folder / "device.png")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(folder / "socket.png"))  # a name of at most 107 bytes
    return [pathlib.Path(folder / f"{name}.png") for name in ("pipe", "folder", "device", "socket")]

"""What the bytes of GIF, WebP and animated PNG say of their frames, so that none is decoded to learn its time."""

import struct

CUT = "ends early: it is cut"


def frames_of(data):
    """Returns how long each frame is seen, in milliseconds, as a list, and the sides of the smallest canvas of all.

    Args:
        data: Bytes of a GIF, WebP or PNG file. A still WebP or PNG has one frame.

    Raises:
        ValueError: If the data end within a frame, or are of another kind.
    """
    for begins, reader in ((b"GIF8", _gif), (b"RIFF", _webp), (b"\x89PNG", _png)):
        if data.startswith(begins):
            try:
                return reader(data)
            except (struct.error, IndexError):
                raise ValueError(CUT) from None
    raise ValueError("is no GIF, WebP or PNG file")


def _gif(data):
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    place, times, time = 13 + _table(flags), [], 0
    while place < len(data) and data[place] != 0x3B:  # the trailer, which some files lack
        if data[place] == 0x21:
            if data[place + 1] == 0xF9:
                (time,) = struct.unpack_from("<H", data, place + 4)
            place = _blocks(data, place + 2)
        elif data[place] == 0x2C:
            left, top, wide, high, flags = struct.unpack_from("<HHHHB", data, place + 1)
            width, height = max(width, left + wide), max(height, top + high)  # a frame may enlarge the canvas
            place = _blocks(data, place + 11 + _table(flags))
            times.append(10 * time)
            time = 0
        else:
            place += 1  # as Pillow continues
    return times, (width, height)


def _table(flags):
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _blocks(data, place):
    while data[place]:
        place += 1 + data[place]
    return place + 1


def _webp(data):
    (size,) = struct.unpack_from("<I", data, 4)
    if size + 8 > len(data):
        raise ValueError(CUT)
    place, end, times, sides = 12, size + 8, [], (0, 0)
    while place + 8 <= end:
        name, length = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        if name == b"VP8X":
            sides = tuple(1 + int.from_bytes(data[place + 12 + 3 * i : place + 15 + 3 * i], "little") for i in (0, 1))
        elif name == b"ANMF":
            times.append(int.from_bytes(data[place + 20 : place + 23], "little"))
        place += 8 + length + length % 2
    return times or [0], sides


def _png(data):
    place, times, sides, count = 8, [], (0, 0), 1
    while True:
        length, name = struct.unpack_from(">I4s", data, place)
        if name == b"IEND":
            break
        if name == b"IHDR":
            sides = struct.unpack_from(">II", data, place + 8)
        elif name == b"acTL":
            (count,) = struct.unpack_from(">I", data, place + 8)
        elif name == b"fcTL":
            over, under = struct.unpack_from(">HH", data, place + 28)
            times.append(over / (under or 100) * 1000)
        place += 12 + length
    if times and len(times) != count:
        raise ValueError(CUT)
    return times or [0], sides

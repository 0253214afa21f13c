"""Which container a video file is, by its first bytes, and whether its end is there."""

import os
import struct

MP4, MKV, AVI = "mov", "matroska", "avi"  # names of FFmpeg's readers
BOXES = (b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"wide", b"free", b"skip", b"pnot", b"sidx")
EBML, SEGMENT, UNKNOWN = 0x1A45DFA3, 0x18538067, None
TEXT = "must be an mp4, mov, webm, mkv or avi file, and its first bytes are of none"
INSIDE = 2**20  # boxes, elements and chunks that are looked at, at most


def container_of(name):
    """Returns the name of FFmpeg's reader of a video file.

    FFmpeg alone would try all of its readers, also those of lists of other files.

    Raises:
        ValueError: If it is no video file, or ends before what its header says.
    """
    size = os.path.getsize(name)
    with open(name, "rb") as file:
        start = file.read(12)
        kind = MP4 if start[4:8] in BOXES else MKV if start[:4] == b"\x1aE\xdf\xa3" else None
        kind = AVI if (start[:4], start[8:]) == (b"RIFF", b"AVI ") else kind
        if kind is None:
            raise ValueError(TEXT)
        end = ENDS[kind](file, size)
    if end > size:
        raise ValueError(f"ends early: it is cut, {end - size:,} of {end:,} bytes are missing")
    return kind


def _end_of_boxes(file, size):
    """Returns where the boxes of an mp4 file end: each has its size before its name."""
    place = 0
    for _ in range(INSIDE):
        file.seek(place)
        head = file.read(16)
        if len(head) < 8:
            break
        (length,) = struct.unpack(">I", head[:4])
        if length == 1 and len(head) == 16:
            (length,) = struct.unpack(">Q", head[8:])
        if length < 8 or not head[4:8].isalnum():  # 0 is up to the end; anything else is no box, and is not read
            break
        place += length
    return place


def _end_of_chunks(file, size):
    """Returns where the parts of an AVI file end: one, and more in files of more than a gigabyte."""
    place, end = 0, 0
    for _ in range(INSIDE):
        file.seek(place)
        head = file.read(8)
        (length,) = struct.unpack("<I", head[4:]) if len(head) == 8 else (0,)
        if head[:4] != b"RIFF" or not length:  # 0 was not closed by its writer
            break
        end = place + 8 + length
        place = end + length % 2
    return end


def _end_of_elements(file, size):
    """Returns where the elements of a Matroska or WebM file end, and those inside the segment."""
    place, end, inside = 0, 0, None
    for _ in range(INSIDE):
        if place >= (size if inside is None else min(inside, size)):
            break
        file.seek(place)
        head = file.read(12)
        id, used = _number(head, keep=True)
        length, more = _number(head[used:], keep=False)
        if not used or not more:
            break
        place += used + more
        if id == SEGMENT:
            inside = size if length is UNKNOWN else place + length
            end = max(end, 0 if length is UNKNOWN else place + length)
        elif length is UNKNOWN:  # a cluster of a recording that nobody closed: its blocks come next
            continue
        else:
            place += length
            end = max(end, place)
    return end


def _number(data, keep):
    """Returns a number of EBML, `UNKNOWN` if all its bits are ones, and how many bytes it has; 0 for none."""
    if not data or not data[0]:
        return 0, 0
    count = 9 - data[0].bit_length()
    if len(data) < count:
        return 0, 0
    value = int.from_bytes(data[:count], "big")
    rest = value & ((1 << 7 * count) - 1)
    return (value if keep else UNKNOWN if rest == (1 << 7 * count) - 1 else rest), count


ENDS = {MP4: _end_of_boxes, MKV: _end_of_elements, AVI: _end_of_chunks}

"""Reads NumPy's `.npz` archives without trusting them: nothing is unpickled, and sizes are checked first."""

import contextlib
import io
import math
import zipfile

import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy)
import numpy as np
from numpy.lib import format as npy

MAX_INFLATION = 50  # a zip member may claim more than memory holds
MAX_HEADER = 2**16  # bytes of an array's header


@contextlib.contextmanager
def open_npz(path):
    """Opens an `.npz` file; see `read.open_checkpoint`. Yields shapes by name, a function that reads, and no notes."""
    with zipfile.ZipFile(path) as archive:
        members, shapes, total = {}, {}, 0
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename or name in members:
                raise ValueError(f"the member {member.filename!r} is not an array, or is there twice")
            with archive.open(member) as stream:
                shape, _, dtype, offset = _header(stream, name)
            if member.file_size != offset + math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name} has {member.file_size} bytes, which contradicts its header: {shape}, {dtype}")
            total += member.file_size
            members[name], shapes[name] = member, shape
        check_inflation(path, total)

        def read(name):
            with archive.open(members[name]) as stream:
                shape, order, dtype, _ = _header(stream, name)
                array = np.frombuffer(stream.read(), dtype).reshape(shape, order=order)
            return as_float32(name, array.view("bfloat16") if dtype.kind == "V" else array)

        yield shapes, read, {}


def _header(stream, name):
    """Reads the header of an `.npy` file: shape, order, type and the header's own length."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} has a header of version {version}")
    size, reader = (2, npy.read_array_header_1_0) if version == (1, 0) else (4, npy.read_array_header_2_0)
    length = stream.read(size)
    if int.from_bytes(length, "little") > MAX_HEADER:  # before it takes any memory
        raise ValueError(f"{name} has a header of {int.from_bytes(length, 'little'):,} bytes")
    shape, fortran, dtype = reader(io.BytesIO(length + stream.read(int.from_bytes(length, "little"))))
    if dtype.hasobject:
        raise ValueError(f"{name} is pickled; unpickling can run any program")
    if any(side < 0 for side in shape) or not dtype.itemsize:
        raise ValueError(f"{name} has the shape {shape} and the type {dtype}")
    return shape, "F" if fortran else "C", dtype, stream.tell()


def check_inflation(path, size):
    """Raises ValueError if the members of a zip archive claim far more bytes than the archive has."""
    if size > 2**26 + MAX_INFLATION * path.stat().st_size:
        raise ValueError(f"it claims to contain {size:,} bytes")


def as_float32(name, array):
    """Converts an array of floats, bfloat16 included, to float32."""
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise ValueError(f"weights must be floats, and {name} contains {array.dtype}")
    return array.astype("float32", copy=False)

import struct
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pytest

from tests.checkpoints.helpers import everything, unexpected


def test_reads_other_orders_and_compression(tmp_path):
    array = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4)))
    np.savez_compressed(tmp_path / "file.npz", a=array)
    np.testing.assert_allclose(everything(tmp_path / "file.npz")["a"], array, rtol=1e-6)


def test_reads_bfloat16_stored_as_void(tmp_path):
    half = np.array([1.5, -2.0, 0.1], "float32").view("uint32") >> 16
    np.savez(tmp_path / "file.npz", a=half.astype("uint16").view("V2"))
    np.testing.assert_allclose(everything(tmp_path / "file.npz")["a"], [1.5, -2.0, 0.1], rtol=1e-2)


def npz(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(header, body=b"", version=b"\x01\x00"):
    text = (header + " " * (63 - len(header) % 64)).encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + body


LIES = {
    "pickled": (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"), "pickled"),
    "shape": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }", b"1234"), "contradicts"),
    "huge": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"), "contradicts"),
    "negative": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1), }", b"1234"), r"shape \(-1, -1\)"),
    "version": (npy("{}", version=b"\x03\x00"), "version"),
    "no header": (b"hello", "cannot be read"),
    "text": (npy("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", b"12345678"), "weights must be floats"),
    "nothing": (npy("{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000,), }"), "type"),
    "void": (npy("{'descr': '|V3', 'fortran_order': False, 'shape': (1,), }", b"123"), "cannot be read"),
}


def test_a_long_header_is_not_read(tmp_path):
    size = 200_000_000
    with zipfile.ZipFile(tmp_path / "file.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as to:
        to.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", size))
        for _ in range(size // 10**7):
            to.write(b" " * 10**7)
    tracemalloc.start()
    with pytest.raises(ValueError, match="a has a header of 200,000,000 bytes"):
        everything(tmp_path / "file.npz")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_headers_that_lie(tmp_path):
    assert not unexpected(
        (partial(everything, npz(tmp_path / f"{kind}.npz", {"a.npy": content})), pattern)
        for kind, (content, pattern) in LIES.items()
    )


def test_archives_that_lie(tmp_path):
    good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", b"1234")
    with pytest.raises(ValueError, match="not an array"):
        everything(npz(tmp_path / "file.npz", {"a.txt": good}))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (30000000,), }", bytes(120_000_000))
        )
    with pytest.raises(ValueError, match="claims to contain 120,000,"):
        everything(tmp_path / "bomb.npz")

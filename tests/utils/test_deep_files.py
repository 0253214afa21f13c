import io
import struct
import zipfile
import zlib

import numpy as np
import pytest

from keras_vit.utils import deep_files

VALUES = np.random.default_rng(0).integers(0, 65536, (40, 50, 5)).astype("uint16")


def same(path, values, **settings):
    raster = deep_files.opened(path, **settings)
    assert raster.shape == values.shape and raster.dtype == values.dtype
    np.testing.assert_array_equal(raster.whole(), values)
    np.testing.assert_array_equal(raster.read(3, 7, 20, 30), values[3:23, 7:37])


def refused(path, words, error=ValueError, **settings):
    with pytest.raises(error, match=words) as caught:
        deep_files.opened(path, **settings).whole()
    assert "\n" not in str(caught.value) and str(caught.value).count(str(path)) == 1


@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", ">u2", "i2", "u4", "i4", "f2", "<f4", ">f4", "f8"])
def test_npy(tmp_path, dtype):
    values, path = (VALUES // 2).astype(dtype), tmp_path / "a.npy"
    native = values.astype(values.dtype.newbyteorder("="))
    np.save(path, values)
    same(path, native)
    np.save(path, np.asfortranarray(values))
    same(path, native)
    np.save(path, values[..., 0])
    same(path, native[..., :1])
    np.savez(tmp_path / "a.npz", values)
    same(tmp_path / "a.npz", native)
    np.savez_compressed(tmp_path / "a.npz", x=values, y=values[:9])
    same(tmp_path / "a.npz", native, array="x")
    refused(tmp_path / "a.npz", "must have one array, or the name of one must be given. It has: 'x', 'y'")
    refused(tmp_path / "a.npz", "It has: 'x', 'y'", array="z")


def test_npy_is_mapped(tmp_path):
    large = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", "uint16", (20_000, 20_000, 2))  # 1.6 GB of holes
    large[19_990, 19_995] = 7, 8
    large.flush()
    assert deep_files.opened(tmp_path / "a.npy").read(19_990, 19_995, 1, 2).tolist() == [[[7, 8], [0, 0]]]


def test_clips(tmp_path):
    clip = np.stack([VALUES[..., :2], VALUES[..., 2:4]])
    np.save(tmp_path / "a.npy", clip)
    frames = deep_files.frames(tmp_path / "a.npy")
    assert [frame.shape for frame in frames] == [(40, 50, 2)] * 2
    np.testing.assert_array_equal(frames[1].read(1, 2, 3, 4), clip[1, 1:4, 2:6])
    refused(tmp_path / "a.npy", "must be an array .height, width. or")


def test_arrays_that_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    for values, words in (
        (np.array([{}, {}]), "must be an array of integers"),
        (VALUES.astype("complex64"), "must be an array of integers"),
        (VALUES > 3, "must be an array of integers"),
        (VALUES.astype("uint64"), "must be an array of integers"),
        (VALUES[0, 0], r"must be an array .* Received: shape=\(5,\)"),
        (VALUES[:0], "claims the shape"),
        (VALUES.transpose(2, 0, 1), r"bands last. Received: shape=\(5, 40, 50\)"),
    ):
        np.save(path, values, allow_pickle=True)
        refused(path, words)
        np.savez(tmp_path / "a.npz", values)
        refused(tmp_path / "a.npz", words)


def header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<u2", "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_arrays_that_claim_more_than_they_hold(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(header((100_000, 100_000, 3)) + bytes(2000))
    refused(path, "claims the shape")
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header((100_000, 100_000, 3)) + bytes(2000))
    refused(tmp_path / "a.npz", "claims the shape")
    np.save(path, VALUES)
    for end in (0, 5, 60, 3000):
        path.write_bytes(path.read_bytes()[:end])
        refused(path, "is not a TIFF|damaged array")
    np.savez_compressed(tmp_path / "a.npz", VALUES)
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(data[: len(data) // 2])
    refused(tmp_path / "a.npz", "damaged .npz")
    changed = bytearray(data)
    changed[len(data) // 2] ^= 255
    (tmp_path / "a.npz").write_bytes(changed)
    refused(tmp_path / "a.npz", "Bad CRC-32")


def png(values):
    """Returns a PNG of 16 bits, byte by byte as its standard says."""
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[values.shape[-1]]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, kind, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_has_all_bits(tmp_path, channels):
    path = tmp_path / "a.png"
    path.write_bytes(png(VALUES[..., :channels]))
    assert deep_files.is_deep(path)
    same(path, VALUES[..., : {1: 1, 2: 1, 3: 3, 4: 3}[channels]])
    path.write_bytes(path.read_bytes()[:-2000])
    refused(path, "cannot be read as an image")


def test_what_is_deep(tmp_path):
    from PIL import Image

    Image.fromarray(VALUES[..., 0].astype("uint8")).save(tmp_path / "a.png")
    assert not deep_files.is_deep(tmp_path / "a.png")
    assert deep_files.is_deep("a.TIF") and deep_files.is_deep(b"a.npz") and not deep_files.is_deep("a.jpg")
    refused(tmp_path / "a.png", "is not a TIFF, a PNG of 16 bits")
    refused(tmp_path / "none.tif", "There is no file", FileNotFoundError)
    refused(tmp_path, "must be a regular file")


def test_windows(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    raster = deep_files.opened(tmp_path / "a.npy")
    for window in ((0, 0, 41, 1), (39, 0, 2, 1), (0, 50, 1, 1), (-1, 0, 1, 1), (0, 0, 0, 1), (0.5, 0, 1, 1)):
        with pytest.raises(ValueError, match="Received: "):
            raster.read(*window)
    raster.read(0, 0, 1, 1)[:] = 0  # a copy
    np.testing.assert_array_equal(raster.whole(), VALUES)

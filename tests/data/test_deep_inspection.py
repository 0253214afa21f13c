import numpy as np
import pytest

from keras_vit.data import deep_inspection, inspection

tifffile = pytest.importorskip("tifffile")
pytest.importorskip("imagecodecs")
VALUES = np.random.default_rng(0).integers(0, 65536, (4, 20, 30)).astype("uint16")


def test_what_headers_say(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", VALUES, photometric="minisblack", planarconfig="separate", compression="lzw")
    tifffile.imwrite(tmp_path / "b.tif", VALUES, photometric="minisblack")
    np.save(tmp_path / "c.npy", np.where(VALUES[0] > 60_000, np.nan, VALUES[0]))
    found = deep_inspection.headers([tmp_path / name for name in ("a.tif", "b.tif", "c.npy")])
    assert found == [(4, 1, "u2", 0), (4, 4, "u2", 0), (1, 1, "f8", deep_inspection.NOT_FINITE)]


def test_among_other_images(tmp_path):
    from PIL import Image

    Image.fromarray(VALUES[:3].astype("uint8").transpose(1, 2, 0)).save(tmp_path / "a.png")
    tifffile.imwrite(tmp_path / "b.tif", VALUES[:3], photometric="rgb", planarconfig="separate")
    (tmp_path / "c.tif").write_bytes((tmp_path / "b.tif").read_bytes()[:900])
    (tmp_path / "d.png").write_bytes(b"no image")
    checked = inspection.inspect_all([tmp_path / name for name in ("c.tif", "a.png", "d.png", "b.tif")])
    assert sorted(checked.faults) == [0, 2] and "cut off" in checked.faults[0] and "is not a PNG" in checked.faults[2]
    assert [checked[i].size for i in (1, 3)] == [(30, 20)] * 2
    assert checked[3].digest == inspection.digest_of_file(tmp_path / "b.tif").tobytes()
    assert checked[3].orientation == 1 and checked[3].highest is None


def test_a_damaged_strip_is_a_fault(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, VALUES, photometric="minisblack", planarconfig="separate", compression="deflate")
    data = bytearray(path.read_bytes())
    data[-500:-300] = bytes(200)
    path.write_bytes(data)
    assert "damaged TIFF" in inspection.inspect_all([path]).faults[0]

import numpy as np
import pytest

from keras_vit.data import deep_inspection, inspection
from keras_vit.utils import bands

tifffile = pytest.importorskip("tifffile")
pytest.importorskip("imagecodecs")
VALUES = np.random.default_rng(0).integers(0, 65536, (4, 20, 30)).astype("uint16")


def test_what_headers_say(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", VALUES, photometric="minisblack", planarconfig="separate", compression="lzw")
    tifffile.imwrite(tmp_path / "b.tif", VALUES, photometric="minisblack")
    np.save(tmp_path / "c.npy", np.where(VALUES[0] > 60_000, np.nan, VALUES[0]))
    found = deep_inspection.headers([tmp_path / name for name in ("a.tif", "b.tif", "c.npy")])
    assert found == [(4, 1, "u2", 0, 0), (4, 4, "u2", 0, 0), (1, 1, "f8", deep_inspection.NAN, 0)]


@pytest.mark.parametrize("stated", [-9999.0, np.nan])
def test_which_unknown_pixels_an_option_masks(tmp_path, stated):
    """Only those that `bands.read` takes as unknown: a file that it would refuse is refused before training."""
    paths = []
    for i, value in enumerate((np.nan, -9999, np.inf, 7)):
        values = np.float32(VALUES[0] / 2)
        values[3, 4] = value
        tags = [(42113, "s", 0, f"{stated:g}", True)]
        tifffile.imwrite(tmp_path / f"{i}.tif", values, photometric="minisblack", extratags=tags)
        paths.append(tmp_path / f"{i}.tif")
    for no_data in (None, "nan", "file", -9999.0, 0.5):
        for path, header in zip(paths, deep_inspection.headers(paths)):
            try:
                bands.read(path, bands.Reading(no_data=no_data))
            except ValueError:
                assert header.unmasked(no_data), (path, no_data)
            else:
                assert not header.unmasked(no_data), (path, no_data)


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


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_the_orientation_of_a_tiff_is_that_of_its_targets(tmp_path, orientation):
    """As for JPEG: a mask has the size of the stored or of the seen picture, or nothing decides, and it is refused."""
    from keras_vit.data.augment.masks import Mask
    from keras_vit.data.mask_frames import seen_mask

    tifffile.imwrite(
        tmp_path / "a.tif", VALUES[0], photometric="minisblack", extratags=[(274, "H", 1, orientation, True)]
    )
    np.save(tmp_path / "mask.npy", np.arange(600, dtype="uint8").reshape(20, 30) % 3)
    image = inspection.inspect_all([tmp_path / "a.tif"])[0]
    assert image.size == ((20, 30) if orientation == 6 else (30, 20)) and image.orientation == orientation
    found = seen_mask(Mask(None, size=(30, 20)), tmp_path / "mask.npy", image)
    assert bool(found.fault) == (orientation == 3) and (orientation == 3 or found.size == image.size)

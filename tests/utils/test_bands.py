import numpy as np
import pytest
from PIL import Image

from keras_vit.config import Data
from keras_vit.utils import bands
from keras_vit.utils.bands import Reading

tifffile = pytest.importorskip("tifffile")
pytest.importorskip("imagecodecs")
VALUES = np.random.default_rng(0).integers(0, 65536, (4, 20, 30)).astype("uint16")


def tif(path, values=VALUES, **settings):
    tifffile.imwrite(path, values, **{"photometric": "minisblack", "planarconfig": "separate", **settings})
    return str(path)


def test_bands_by_number_and_name(tmp_path):
    path = tif(tmp_path / "a.tif")
    np.testing.assert_array_equal(bands.read(path, Reading()), VALUES.transpose(1, 2, 0))
    np.testing.assert_array_equal(bands.read(path, Reading((4, 2))), VALUES[[3, 1]].transpose(1, 2, 0))
    named = tmp_path / "b.tif"
    tifffile.imwrite(named, VALUES, imagej=True, metadata={"axes": "CYX", "Labels": ["red", "nir", "c", "d"]})
    np.testing.assert_array_equal(bands.read(named, Reading(("nir", 1))), VALUES[[1, 0]].transpose(1, 2, 0))
    for chosen, words in (((5,), "has the bands 1 to 4"), (("blue",), "or 'red', 'nir', 'c', 'd'. Received")):
        with pytest.raises(ValueError, match=words):
            bands.read(named, Reading(chosen))
        with pytest.raises(ValueError, match=words):
            bands.check_bands(named, Reading(chosen))


def test_other_numbers_of_bands_are_refused(tmp_path):
    path = tif(tmp_path / "a.tif")
    with pytest.raises(
        ValueError, match=r"must have the 3 bands that the model takes: pick them, .*=\(1, 2, 3\). Received: 4"
    ):
        bands.read(path, Reading(), 3)
    with pytest.raises(ValueError, match="must have the 5 bands that the model takes. Received: 4$"):
        bands.read(path, Reading(), 5)
    gray = bands.read(tif(tmp_path / "b.tif", VALUES[0]), Reading(), 3)
    np.testing.assert_array_equal(gray, np.repeat(VALUES[0][..., None], 3, 2))


def test_pages(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", VALUES, photometric="minisblack")
    with pytest.raises(ValueError, match="has 4 pages"):
        bands.read(tmp_path / "a.tif", Reading())
    assert bands.read(tmp_path / "a.tif", Reading(pages="bands")).shape == (20, 30, 4)


def test_pictures_of_bytes(tmp_path):
    colors = VALUES[:3].astype("uint8").transpose(1, 2, 0)
    Image.fromarray(colors).save(tmp_path / "a.png")
    np.testing.assert_array_equal(bands.read(tmp_path / "a.png", Reading()), colors)
    assert bands.count_of(tmp_path / "a.png") == 3
    Image.fromarray(colors[..., 0]).save(tmp_path / "b.png")
    assert bands.count_of(tmp_path / "b.png") == bands.read(tmp_path / "b.png", Reading()).shape[2] == 1


def test_pixels_without_data_change_no_others(tmp_path):
    values = VALUES.astype("float32") % 1000
    hole = values.copy()
    hole[1, 3:9, 4:12] = np.nan
    path = tif(tmp_path / "a.tif", hole)
    with pytest.raises(ValueError, match="a.tif' has NaN or infinite pixels: data.no_data='nan' masks NaN."):
        bands.read(path, Reading())
    found, known = bands.read(path, Reading(no_data="nan")), ~np.isnan(hole)
    np.testing.assert_array_equal(found[known.transpose(1, 2, 0)], hole.transpose(1, 2, 0)[known.transpose(1, 2, 0)])
    assert found[5, 5, 1] in (hole[1, 5, 3], hole[1, 2, 5])  # of the nearest that are known
    hole[1] = np.where(np.isnan(hole[1]), -9999, hole[1])
    other = bands.read(tif(tmp_path / "b.tif", hole), Reading(no_data=-9999))
    np.testing.assert_array_equal(found, other)
    hole[2] = -9999
    assert np.isnan(bands.read(tif(tmp_path / "c.tif", hole), Reading(no_data=-9999))[..., 2]).all()
    hole[0, 0, 0] = np.inf
    with pytest.raises(ValueError, match="must have finite numbers, or NaN. Received: infinite pixels"):
        bands.read(tif(tmp_path / "d.tif", hole), Reading(no_data=-9999))


def test_the_value_that_a_file_states(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", width=30, height=20, count=4, dtype="uint16", nodata=7) as file:
        file.write(np.where(VALUES == 7, 8, VALUES))
    assert bands.read(path, Reading()).min() >= 0
    with rasterio.open(path, "r+") as file:
        file.write(np.full((1, 2), 7, "uint16"), 2, window=rasterio.windows.Window(5, 6, 2, 1))
    with pytest.raises(ValueError, match="pixels of its value of no data, 7: data.no_data='file' masks them"):
        bands.read(path, Reading())
    with pytest.raises(ValueError, match="pixels of its value of no data, 7"):
        bands.read(path, Reading(no_data=9))
    np.testing.assert_array_equal(bands.read(path, Reading(no_data=7)), bands.read(path, Reading(no_data="file")))
    found = bands.read(path, Reading(no_data="file"))
    assert 7 not in found and found[6, 5, 1] in (found[6, 4, 1], found[5, 5, 1], found[7, 5, 1])


def test_large_pictures_are_refused():
    bands.check_size((10_000, 12_800, 3))
    for shape, words in (((10_000, 10_000, 5), "is too large"), ((101, 1, 1), "is too oblong")):
        with pytest.raises(ValueError, match=words):
            bands.check_size(shape)


def test_options():
    assert bands.reading_of(Data(bands=(1, "b"), no_data="nan")) == Reading((1, "b"), None, "nan")
    assert bands.range_of(Data()) == (0, 255) and bands.range_of(Data(value_range=((0, 1), (2, 3)))) == ((0, 2), (1, 3))
    for options in ({"bands": ()}, {"bands": (0,)}, {"no_data": float("nan")}, {"value_range": (3, 1)}):
        with pytest.raises(ValueError, match="Received: "):
            bands.check_options(Data(**options))


def test_what_is_said_of_pictures():
    assert (
        bands.drawn({}, 5) == bands.drawn({"bands": {"count": 3}}, 3) == bands.drawn({"bands": {"count": 1}}, 1) == ""
    )
    said = "Pictures show bands 1, 2 and 3 in red, green and blue, each in its range."
    assert bands.drawn({"bands": {"count": 5}}, 5) == said
    assert bands.drawn({"bands": {"bands": ["r", "n", 7]}}, 3).startswith("Pictures show bands r, n and 7 in")
    assert bands.kept_in({"bands": "damaged"}) is None


def test_eight_bits(tmp_path):
    bands.check_bits(tif(tmp_path / "a.tif", VALUES.astype("uint8")), (0, 255))
    with pytest.raises(ValueError, match="must have 8 bits for a model of pixels from 0 to 255. Received: uint16"):
        bands.check_bits(tif(tmp_path / "b.tif"), (0, 255))
    assert bands.size_of(tmp_path / "b.tif") == (20, 30)
    bands.check_bits(tmp_path / "b.tif", ((0, 0), (9, 60_000)))
    bands.check_bits(tmp_path / "a.tif", (0, 60_000))
    with pytest.raises(ValueError, match="a.tif' must have more than 8 bits for a model of numbers up to 60000"):
        bands.check_bits(tmp_path / "a.tif", ((0, 0), (9, 60_000)))

import struct

import numpy as np
import pytest

from keras_vit.utils import deep_files

tifffile = pytest.importorskip("tifffile")
pytest.importorskip("imagecodecs")

BANDS = np.random.default_rng(0).integers(0, 65536, (5, 40, 50)).astype("uint16")
TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8")
LAYOUTS = {
    "strips": dict(rowsperstrip=7),
    "one strip": {},
    "tiles": dict(tile=(16, 32)),
}
COMPRESSIONS = (None, "lzw", "deflate", "zlib", "packbits", "zstd", "lzma")


def written(path, values, **settings):
    tifffile.imwrite(path, values, **settings)
    return str(path)


def sample(dtype):
    values = BANDS.view("int16").astype("float64") / 7
    return values.astype("int64").astype(dtype) if np.dtype(dtype).kind in "ui" else values.astype(dtype)


def windows_agree(raster, values):
    assert raster.shape == values.shape and raster.dtype == values.dtype
    np.testing.assert_array_equal(raster.whole(), values)
    for top, left, height, width in ((0, 0, 1, 1), (3, 7, 20, 30), (15, 31, 2, 2), (39, 49, 1, 1), (0, 10, 40, 3)):
        window = raster.read(top, left, height, width)
        assert window.dtype == values.dtype
        np.testing.assert_array_equal(window, values[top : top + height, left : left + width])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("planes", ["contig", "separate"])
def test_types_and_layouts(tmp_path, dtype, layout, planes):
    values = sample(dtype)
    for order, big in (("<", False), (">", True)):
        given = values if planes == "separate" else values.transpose(1, 2, 0)
        path = written(
            tmp_path / "a.tif", given, photometric="minisblack", planarconfig=planes, byteorder=order, bigtiff=big,
            **LAYOUTS[layout],
        )  # fmt: skip
        windows_agree(deep_files.opened(path), values.transpose(1, 2, 0))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("predictor", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_compressions(tmp_path, compression, predictor, dtype):
    if predictor and compression in (None, "packbits"):
        pytest.skip("no predictor")
    values = sample(dtype)
    for layout in LAYOUTS.values():
        path = written(
            tmp_path / "a.tif", values.transpose(1, 2, 0), photometric="minisblack", planarconfig="contig",
            compression=compression, predictor=predictor, **layout,
        )  # fmt: skip
        windows_agree(deep_files.opened(path), values.transpose(1, 2, 0))


def test_pages_are_what_is_said(tmp_path):
    path = written(tmp_path / "pages.tif", BANDS)
    with pytest.raises(ValueError, match=r"has 5 pages: say what they are"):
        deep_files.opened(path)
    windows_agree(deep_files.opened(path, pages="bands"), BANDS.transpose(1, 2, 0))
    frames = deep_files.frames(path)
    assert len(frames) == 5
    windows_agree(frames[3], BANDS[3][..., None])
    channels = written(tmp_path / "channels.tif", BANDS, metadata={"axes": "CYX"}, compression="zlib")
    windows_agree(deep_files.opened(channels), BANDS.transpose(1, 2, 0))
    with tifffile.TiffWriter(tmp_path / "loop.tif") as file:
        for band in BANDS:
            file.write(band, contiguous=False)
    windows_agree(deep_files.opened(tmp_path / "loop.tif", pages="bands"), BANDS.transpose(1, 2, 0))


def test_imagej(tmp_path):
    path = written(tmp_path / "a.tif", BANDS, imagej=True, metadata={"axes": "CYX", "Labels": list("abcde")})
    raster = deep_files.opened(path)
    assert raster.names == tuple("abcde")
    windows_agree(raster, BANDS.transpose(1, 2, 0))
    clip = BANDS[:4].reshape(2, 2, 40, 50)
    path = written(tmp_path / "clip.tif", clip, imagej=True, metadata={"axes": "TCYX"})
    windows_agree(deep_files.frames(path)[1], clip[1].transpose(1, 2, 0))
    windows_agree(deep_files.opened(path, pages="bands"), BANDS[:4].transpose(1, 2, 0))
    path = written(tmp_path / "one.tif", BANDS, imagej=True, truncate=True, metadata={"axes": "TYX"})  # lists one page
    windows_agree(deep_files.frames(path)[4], BANDS[4][..., None])
    rgb = BANDS[:3].astype("uint8").transpose(1, 2, 0)
    windows_agree(deep_files.opened(written(tmp_path / "rgb.tif", rgb, imagej=True)), rgb)
    floats = sample("f4")
    windows_agree(deep_files.opened(written(tmp_path / "f.tif", floats, imagej=True)), floats.transpose(1, 2, 0))


def test_rows_written_as_pages_are_refused(tmp_path):
    path = written(tmp_path / "a.tif", BANDS.transpose(1, 2, 0))  # tifffile makes 40 pages of 50 x 5 of it
    for pages in (None, "bands"):
        with pytest.raises(ValueError, match='rows of a picture of 5 bands: write it with photometric="minisblack"'):
            deep_files.opened(path, pages=pages)


def test_pillow(tmp_path):
    from PIL import Image

    for values in (BANDS[0], BANDS[0].astype("uint8"), sample("f4")[0], sample("i4")[0]):
        for compression in (None, "tiff_lzw", "tiff_adobe_deflate"):
            Image.fromarray(values).save(tmp_path / "a.tif", compression=compression)
            windows_agree(deep_files.opened(tmp_path / "a.tif"), values[..., None])
            with Image.open(tmp_path / "a.tif") as image:
                np.testing.assert_array_equal(np.asarray(image), deep_files.opened(tmp_path / "a.tif").whole()[..., 0])
    rgb = BANDS[:3].astype("uint8").transpose(1, 2, 0)
    for number in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = number
        Image.fromarray(rgb).save(tmp_path / "a.tif", exif=exif, compression="tiff_lzw")
        from PIL import ImageOps

        with Image.open(tmp_path / "a.tif") as image:
            seen = np.asarray(ImageOps.exif_transpose(image))
        raster = deep_files.opened(tmp_path / "a.tif")
        np.testing.assert_array_equal(raster.whole(), seen)
        np.testing.assert_array_equal(raster.read(3, 5, 8, 11), seen[3:11, 5:16])


@pytest.mark.parametrize("compress", [None, "LZW", "DEFLATE", "ZSTD", "PACKBITS"])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_gdal(tmp_path, compress, interleave):
    rasterio = pytest.importorskip("rasterio")
    settings = dict(compress=compress) if compress else {}
    for dtype in ("u1", "u2", "i2", "u4", "f4", "f8"):
        for more in ({}, dict(tiled=True, blockxsize=16, blockysize=32)):
            for predictor in (1, 2, 3) if compress in ("LZW", "DEFLATE", "ZSTD") else (1,):
                if (predictor == 3) != (predictor != 1 and dtype[0] == "f"):
                    continue
                own = dict(predictor=predictor) if predictor > 1 else {}
                values = sample(dtype)
                with rasterio.open(
                    tmp_path / "a.tif", "w", driver="GTiff", width=50, height=40, count=5, dtype=values.dtype,
                    interleave=interleave, nodata=7, **settings, **more, **own,
                ) as file:  # fmt: skip
                    file.write(values)
                    file.descriptions = [f"B0{i}" for i in range(5)]
                with rasterio.open(tmp_path / "a.tif") as file:
                    values = file.read().transpose(1, 2, 0)
                raster = deep_files.opened(tmp_path / "a.tif")
                assert raster.names == ("B00", "B01", "B02", "B03", "B04") and raster.no_data == 7
                windows_agree(raster, values)


def test_overviews_and_tiles_without_bytes(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    path = tmp_path / "a.tif"
    settings = dict(tiled=True, blockxsize=64, blockysize=64, sparse_ok=True, nodata=3, compress="deflate")
    values = np.random.default_rng(1).integers(0, 9999, (2, 64, 64)).astype("uint16")
    with rasterio.open(path, "w", driver="GTiff", width=256, height=256, count=2, dtype="uint16", **settings) as file:
        file.write(values, window=rasterio.windows.Window(64, 0, 64, 64))
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4])
    raster, expected = deep_files.opened(path), np.full((256, 256, 2), 3, "uint16")
    expected[:64, 64:128] = values.transpose(1, 2, 0)
    np.testing.assert_array_equal(raster.whole(), expected)
    with rasterio.open(path) as file:
        np.testing.assert_array_equal(file.read().transpose(1, 2, 0), expected)


def test_labels(tmp_path):
    labels = (BANDS[0] % 4).astype("uint8")
    colors = np.random.default_rng(0).integers(0, 65536, (3, 256)).astype("uint16")
    path = written(tmp_path / "a.tif", labels, photometric="palette", colormap=colors)
    with pytest.raises(ValueError, match="stores a palette, which is not read"):
        deep_files.opened(path)
    np.testing.assert_array_equal(deep_files.opened(path, labels=True).whole()[..., 0], labels)
    path = written(tmp_path / "b.tif", labels, photometric="miniswhite")
    with pytest.raises(ValueError, match="stores white as 0"):
        deep_files.opened(path)


def refused(path, words):
    with pytest.raises(ValueError, match=words) as caught:
        deep_files.opened(path, pages="bands").whole()
    text = str(caught.value)
    assert text.startswith(repr(str(path))) and "\n" not in text and text.count(repr(str(path))) == 1


def test_other_values_are_refused(tmp_path):
    path = tmp_path / "a.tif"
    written(path, BANDS.astype("complex64"), photometric="minisblack", planarconfig="separate")
    refused(path, "must have integers of 8, 16 or 32 bits, or floats")
    written(path, BANDS.astype("uint64"), photometric="minisblack", planarconfig="separate")
    refused(path, "Received: 64 bits")
    written(path, BANDS[0] > 9)
    refused(path, "Received: bool")
    written(path, BANDS[:4].astype("uint8").transpose(1, 2, 0), photometric="separated")
    refused(path, "must be gray, RGB or bands. Received: SEPARATED")
    with tifffile.TiffWriter(path) as file:
        file.write(BANDS[0])
        file.write(BANDS[1, :20])
    refused(path, "pages of one shape and type")


def test_bombs(tmp_path):
    path = tmp_path / "a.tif"
    for compression in (None, "lzw", "deflate", "packbits"):
        for tile in ({}, dict(tile=(512, 512))):
            written(path, np.zeros((16, 16), "uint8"), compression=compression, metadata=None, **tile)
            data = bytearray(path.read_bytes())
            at = struct.unpack("<I", data[4:8])[0]
            for i in range(struct.unpack("<H", data[at : at + 2])[0]):
                place = at + 2 + 12 * i
                tag = struct.unpack("<H", data[place : place + 2])[0]
                if tag in (256, 257, 278):  # width, length, rows in a strip
                    data[place + 2 : place + 12] = struct.pack("<HII", 4, 1, 100_000)
            path.write_bytes(data)
            refused(path, "damaged TIFF")


def error_of(path):
    try:
        deep_files.opened(path, pages="bands").whole()
    except ValueError as error:
        return str(error)


def test_damaged(tmp_path):
    path, random = tmp_path / "a.tif", np.random.default_rng(0)
    for settings in (dict(compression="lzw"), dict(tile=(16, 16), compression="deflate"), {}):
        written(path, BANDS, photometric="minisblack", planarconfig="separate", **settings)
        whole = path.read_bytes()
        for end in (8, 60, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:end])
            refused(path, "TIFF|cut off|must")
        for place in random.integers(0, 700, 150):  # of the header: an error of one sentence, or other numbers
            data = bytearray(whole)
            data[place] ^= 1 << int(random.integers(8))
            path.write_bytes(data)
            if (text := error_of(path)) is not None:
                assert text.startswith(repr(str(path))) and "\n" not in text


def next_page(data, page):
    """Returns where the offset of the next page is in a file, of which `page` is the offset of one."""
    return page + 2 + 12 * struct.unpack("<H", data[page : page + 2])[0]


@pytest.mark.parametrize("count, back", [(1, 0), (2, 0), (150, 120)])
def test_a_circle_of_pages(tmp_path, count, back):
    path = tmp_path / "a.tif"
    written(path, np.zeros((count, 4, 5), "uint8"), photometric="minisblack", metadata=None)
    data, places = bytearray(path.read_bytes()), [4]
    for _ in range(count):
        places.append(next_page(data, struct.unpack("<I", data[places[-1] : places[-1] + 4])[0]))
    data[places[-1] : places[-1] + 4] = data[places[back] : places[back] + 4]
    path.write_bytes(data)
    refused(path, "its list of pages is a circle")


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_planes_are_no_other_axes(tmp_path, channels):
    values = BANDS[:channels]
    path = written(tmp_path / "a.tif", values, photometric="minisblack", planarconfig="separate")
    windows_agree(deep_files.opened(path, pages="bands"), values.transpose(1, 2, 0))
    path = written(tmp_path / "b.tif", values.transpose(1, 2, 0), photometric="minisblack", planarconfig="contig")
    windows_agree(deep_files.opened(path, pages="bands"), values.transpose(1, 2, 0))


@pytest.mark.parametrize("photometric", ["RGB", "YCBCR"])
def test_tiles_of_jpeg(tmp_path, photometric):
    rasterio = pytest.importorskip("rasterio")
    settings = dict(compress="JPEG", photometric=photometric, tiled=True, blockxsize=32, blockysize=16)
    smooth = np.broadcast_to(np.arange(40, dtype="uint8")[:, None] * 5, (3, 40, 50))
    with rasterio.open(
        tmp_path / "a.tif", "w", driver="GTiff", width=50, height=40, count=3, dtype="uint8", interleave="pixel",
        **settings,
    ) as file:  # fmt: skip
        file.write(smooth)
    raster = deep_files.opened(tmp_path / "a.tif")
    assert np.abs(raster.whole().astype(int) - smooth.transpose(1, 2, 0)).max() <= 6
    with rasterio.open(tmp_path / "a.tif") as file:
        assert np.abs(file.read().transpose(1, 2, 0).astype(int) - raster.whole()).max() <= 2  # another decoder
    np.testing.assert_array_equal(raster.read(9, 20, 20, 25), raster.whole()[9:29, 20:45])

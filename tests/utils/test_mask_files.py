import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tifffile")

from keras_vit.utils.deep_files import opened
from keras_vit.utils.mask_files import SIDE, write_tiff
from tests.small import peak


@pytest.mark.parametrize("shape", [(5, 7), (256, 256), (300, 513), (700, 40)])
@pytest.mark.parametrize("step", [1, 100, 1000])
def test_rows_become_a_tiled_tiff_that_others_read(shape, step, tmp_path):
    mask = np.random.default_rng(0).integers(0, 5, shape, "uint8")
    import tifffile

    write_tiff(tmp_path / "a.tif", shape, (mask[i : i + step] for i in range(0, shape[0], step)))
    for found in (tifffile.imread(tmp_path / "a.tif"), np.asarray(Image.open(tmp_path / "a.tif"))):
        np.testing.assert_array_equal(found, mask)
    raster = opened(tmp_path / "a.tif", labels=True)
    assert raster.shape == (*shape, 1) and raster.block == (SIDE, SIDE)
    np.testing.assert_array_equal(raster.read(1, 2, 3, 4)[..., 0], mask[1:4, 2:6])


def test_memory_holds_a_row_of_tiles(tmp_path):
    shape = (20 * SIDE, 2000)
    rows = (np.full((64, shape[1]), i % 3, "uint8") for i in range(shape[0] // 64))
    assert peak(lambda: write_tiff(tmp_path / "a.tif", shape, rows)) < shape[0] * shape[1] / 2

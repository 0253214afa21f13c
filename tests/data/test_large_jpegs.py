import numpy as np
import pytest

pytest.importorskip("tensorflow")

from PIL import Image

from keras_vit.config import Data
from keras_vit.data import cutting, inspection, large_jpegs, sources
from keras_vit.utils import images
from tests.marks import slow


def test_a_window_is_that_of_the_whole():
    random = np.random.default_rng(0)
    smooth = Image.fromarray(random.integers(0, 256, (8, 9, 3), "uint8")).resize((90, 80))
    from tests.picturefiles import saved

    data = saved(smooth, "JPEG")
    whole = images.decoded(data, 3)
    for window in ((0, 0, 17, 33), (30, 40, 20, 20), (63, 57, 17, 33)):
        top, left, height, width = window
        wanted = whole[top : top + height, left : left + width]
        np.testing.assert_array_equal(large_jpegs.window_of(data, (80, 90), 3, *window), wanted)


@slow
def test_a_jpeg_of_more_pixels_than_are_decoded_whole(tmp_path):
    side = 11_400
    tile = np.add.outer(np.arange(side) // 64, np.arange(side) // 64).astype("uint8")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(tile).save(tmp_path / name / "large.jpg", quality=50)
        Image.fromarray(tile[:300, :300]).save(tmp_path / name / "small.jpg")
    Image.fromarray(tile).save(tmp_path / "large.png", compress_level=1)
    data = Data(source=f"folder:{tmp_path}", crops_per_image=6)
    with pytest.raises(ValueError, match=r"large.jpg \(is too large: it has more than 128 million pixels\)"):
        sources.load(Data(source=data.source), "all")
    source = sources.load(data, "all")
    assert len(source) == 4
    from keras_vit import config

    made = config.Recipe("x", {}, task=config.Classify(classes=("a", "b")), data=data)
    train = cutting.crops(source, made.task, made, (64, 64, 1))
    assert train.costs.max() == 300 * 300  # of the large ones windows are read
    for keys in train.shuffled(0, 0, 4):
        for image in train.reader()(keys)["images"].numpy():
            assert image.shape == (64, 64, 1) and np.ptp(image) <= 8
    (found,) = inspection.inspect_all([str(tmp_path / "large.png")], by_windows=True)
    assert found.fault == large_jpegs.FAULT + ", and its format has no windows: save it as a tiled TIFF"
    large = tmp_path / "a" / "large.jpg"
    large.write_bytes(large.read_bytes()[: large.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"1 of 4 images cannot be read"):
        sources.load(data, "all")

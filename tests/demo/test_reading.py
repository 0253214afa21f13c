import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.demo.reading import MOST_WHOLE, read_image, read_whole, reader
from tests import picturefiles


def png(tmp_path):
    keras.utils.save_img(tmp_path / "whole.png", np.random.default_rng(0).uniform(0, 255, (40, 30, 3)), scale=False)
    return (tmp_path / "whole.png").read_bytes()


BAD = {
    "text.png": (lambda _: b"no image at all", "'text.png' is not a PNG, JPEG"),
    "empty.png": (lambda _: b"", "'empty.png' is not a PNG, JPEG, BMP, GIF or WebP image"),
    "drawing.svg": (lambda _: b'<svg xmlns="http://www.w3.org/2000/svg"/>', "'drawing.svg' is not a PNG"),
    "cut.png": (lambda folder: png(folder)[:1500], "'cut.png' cannot be read as an image"),
    "head.png": (lambda folder: png(folder)[:40], "'head.png' is not a PNG, JPEG, BMP, GIF or WebP image"),
    "bomb.png": (lambda _: picturefiles.bomb(20_000), "'bomb.png' is too large: it has more than 50 million pixels"),
    "smaller.png": (lambda _: picturefiles.bomb(7_100), "'smaller.png' is too large"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("error")
def test_what_is_no_image_is_refused_in_one_sentence(name, tmp_path):
    make, sentence = BAD[name]
    (tmp_path / name).write_bytes(make(tmp_path))
    with pytest.raises(ValueError) as refused:
        read_image(tmp_path / name, (28, 28, 1), keras_vit.Data())
    assert str(refused.value).startswith(sentence) and "\n" not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_too_large_an_image_is_not_decoded(tmp_path, monkeypatch):
    from keras_vit.data.augment import crops

    read = []
    monkeypatch.setattr(crops, "evaluation_image", lambda *given: read.append(given))
    (tmp_path / "bomb.png").write_bytes(picturefiles.bomb(20_000))
    with pytest.raises(ValueError, match="too large"):
        read_image(tmp_path / "bomb.png", (28, 28, 1), keras_vit.Data())
    assert not read and (tmp_path / "bomb.png").stat().st_size < 100_000


def test_an_image_file_is_read_as_evaluation_does(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28, 1))
    keras.utils.save_img(tmp_path / "a.png", pixels, scale=False)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", (28, 28, 1), keras_vit.Data()), pixels)


def test_a_task_that_sees_images_whole_reads_them_whole(tmp_path):
    found = keras_vit.load_run("superres_x2")
    pixels = np.random.default_rng(0).integers(0, 256, (50, 70, 3))
    keras.utils.save_img(tmp_path / "a.png", pixels, scale=False)
    np.testing.assert_array_equal(reader(found)(tmp_path / "a.png"), pixels)
    (tmp_path / "large.png").write_bytes(picturefiles.bomb(1_001))
    with pytest.raises(ValueError, match="'large.png' is too large: it has more than 1 million pixels"):
        read_whole(tmp_path / "large.png", 3)
    assert MOST_WHOLE == 1_000_000

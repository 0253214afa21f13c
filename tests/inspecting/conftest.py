import numpy as np
import pytest
from PIL import Image

from keras_vit.frozen.index import Index

pytest.importorskip("tensorflow")


def picture(seed, side=24):
    """Returns a picture with large and small shapes, uint8 `(side, side, 3)`."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (4, 4, 3)).astype("uint8")
    large = np.asarray(Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)).astype("float32")
    return np.clip(large + rng.normal(0, 4, large.shape), 0, 255).astype("uint8")


def save(pixels, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_VIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def divided(tmp_path, cache):
    """A folder of the splits train, val and test, with planted copies and a file that cannot be read."""
    root = tmp_path / "photos"
    for i in range(24):
        split = ("train", "train", "val", "test")[i % 4]
        save(picture(i), root / split / ("cat", "dog")[i // 4 % 2] / f"{i:02}.png")
    save(picture(0), root / "test" / "cat" / "copy.bmp")  # leaks from train/cat/00.png
    save(picture(1)[:, ::-1], root / "val" / "cat" / "mirror.png")  # of train/cat/01.png
    save(picture(4), root / "train" / "cat" / "same.png")  # equal to train/dog/04.png, another label
    save(picture(5), root / "train" / "dog" / "small.jpg", quality=80)  # of train/dog/05.png
    (root / "train" / "cat" / "bad.png").write_bytes(b"no image")
    return root


def an_index(folder, names, vectors, **about):
    """Returns an `Index` of vectors."""
    about = {"folder": str(folder), "share": [0, 1], "model": "", "fingerprint": "", **about}
    return Index(np.asarray(vectors, "float32"), np.array(names), np.zeros((0, 2), "U1"), about)

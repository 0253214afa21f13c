import keras
import numpy as np
import pytest
from PIL import Image

import keras_vit

KINDS = {"dark": 40, "light": 200}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of two classes, eleven images of several sizes, one that cannot be read, and a hidden one."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for name, level in KINDS.items():
        (root / name / "deep").mkdir(parents=True)
        for i in range(6):
            size = (10 + i, 8 + i % 3, 3)
            pixels = np.clip(rng.normal(level, 20, size), 0, 255).astype("uint8")
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    (root / "dark" / "5.png").rename(root / "dark" / "deep" / "5.png")
    (root / "light" / "0.png").write_bytes(b"no image")
    (root / ".hidden.png").write_bytes(b"no image")
    return root


@pytest.fixture(scope="session")
def model():
    keras.utils.set_random_seed(0)
    return keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=2, pooling="gap")


@pytest.fixture(scope="session")
def index(folder, model, tmp_path_factory):
    return keras_vit.load_index(keras_vit.embed_folder(folder, model, tmp_path_factory.mktemp("out") / "all.npz"))

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Data
from tests.tasks.compress.test_compress import SPLITS, recipe
from tests.tasks.generate.test_by_texts import written


def test_latents_have_mean_0_and_deviation_1(tmp_path):
    pictures = written(tmp_path / "pictures")
    trained = tmp_path / "latents"
    data = Data(source=f"folder:{pictures}", **{**SPLITS, "validation": "all"}, resize="window")
    keras_vit.fit(recipe(pictures, data=data), trained, verbose=0)
    encoder = keras_vit.from_checkpoint(trained, part="encoder")
    images = np.stack([np.asarray(Image.open(pictures / f"{i}.png")) for i in range(24)])
    mean, log = np.split(np.asarray(encoder(images.astype("float32"))), 2, axis=-1)
    assert abs(mean.mean()) < 1e-3 and mean.var() + np.exp(log).mean() == pytest.approx(1, abs=1e-3)

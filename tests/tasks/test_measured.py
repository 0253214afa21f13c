import types

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Data, Optim, Recipe
from keras_vit.data.memory import Source
from keras_vit.tasks.measured import Measured


class Mean:
    """Counts its images, and averages what a model returns."""

    made = 0

    def __init__(self):
        Mean.made += 1
        self.values = []

    def add(self, examples, outputs):
        assert examples["images"].shape[1:] == (4, 4, 1)
        self.values += list(outputs)

    def result(self):
        return {"mean": float(np.mean(self.values)), "count": len(self.values)}


def test_scores_of_validation_images_are_columns_of_every_epoch():
    images = np.arange(10, dtype="uint8")[:, None, None, None] * np.ones((4, 4, 1), "uint8")
    run = types.SimpleNamespace(
        recipe=Recipe("x", {}, data=Data(batch_size=4), optim=Optim(epochs=6)),
        validation=Source(images, {"labels": np.zeros(10, "int32")}, ("a",)),
        model=types.SimpleNamespace(input_shape=(None, 4, 4, 1)),
        outputs=lambda images: images.mean((1, 2, 3)),
        history=[],
        task=types.SimpleNamespace(inputs=("images",)),
    )
    callback = Measured(run, Mean, ("mean", "count", "other"), every=3, most=7)
    Mean.made = 0
    for epoch in range(6):
        logs = {"loss": 1.0}
        callback.on_epoch_end(epoch, logs)
        assert (
            logs["val_mean"] == pytest.approx(np.mean([0, 2, 3, 4, 6, 8, 9]))
            and logs["val_count"] == 7
            and np.isnan(logs["val_other"])
        )
        run.history.append(logs)
    assert Mean.made == 3  # epochs 0, 3 and the last

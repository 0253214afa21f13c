"""A run goes on when its data were moved: it knows them by their contents, not by their place."""

import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config, load_run
from keras_vit.training.fit import fit
from tests.marks import slow
from tests.small import small

RNG = np.random.default_rng(0)


class Break(keras.callbacks.Callback):
    """Ends a training like a crash, before its second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise SystemError("killed")


def on(folder):
    data = {"data.source": f"folder:{folder}", "data.train": "all[:50%]", "data.validation": "all[50%:]"}
    return config.override(small(), {**data, "optim.epochs": 2, "model.num_classes": 2})


@slow
def test_a_run_resumes_on_a_folder_that_was_moved(tmp_path, eagerly):
    for i in range(16):
        path = tmp_path / "there" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(path, RNG.integers(0, 256, (8, 8, 1)), scale=False)
    whole, _ = fit(on(tmp_path / "there"), tmp_path / "whole", verbose=0)
    with pytest.raises(SystemError):
        fit(on(tmp_path / "there"), tmp_path / "run", verbose=0, callbacks=[Break()])
    (tmp_path / "here" / "deep").mkdir(parents=True)
    moved = (tmp_path / "there").rename(tmp_path / "here" / "deep" / "images")
    resumed, history = fit(on(moved), tmp_path / "run", verbose=0)
    assert len(history["loss"]) == 2
    for ours, theirs in zip(resumed.get_weights(), whole.get_weights()):
        np.testing.assert_array_equal(ours, theirs)
    assert load_run(tmp_path / "run").recipe.data.source == f"folder:{moved}"
    assert json.loads((tmp_path / "run" / "data.json").read_text()) == json.loads(
        (tmp_path / "whole" / "data.json").read_text()
    )
    keras.utils.save_img(moved / "a" / "0.png", np.zeros((8, 8, 1)), scale=False)
    with pytest.raises(ValueError, match="contains a run on other data"):
        fit(on(moved), tmp_path / "run", verbose=0)
    (moved / "a" / "0.png").rename(moved / "a" / "99.png")
    with pytest.raises(ValueError, match="contains a run on other data"):
        fit(on(moved), tmp_path / "run", verbose=0)

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.runs import unknown
from keras_vit.tasks.classify import unknown as rules
from tests.runs.strangers import COLORS, picture

RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore:No temperature")
def test_a_rule_of_vectors(colors, tmp_path, monkeypatch):
    """Whatever the areas are: the distance to the nearest of the kept vectors, in predict, evaluate and the demo."""
    monkeypatch.setattr(rules, "area", lambda known, others: float(known.min() >= 0))
    found = keras_vit.calibrate(colors / "run", unknown=0.1, unknown_pictures=colors / "strange")
    monkeypatch.undo()
    assert found.unknown["rule"] == "neighbours" and found.areas == {"energy": 0, "neighbours": 1}
    path = tmp_path / "model.keras"
    found.save(path)
    assert found.vectors.shape == (90, 32) and found.unknown["k"] == 1
    loaded = keras_vit.load_run(path)
    images = np.stack([picture(COLORS[0], RNG), np.zeros((8, 8, 3))]).astype("float32")
    outputs = loaded.viewer()(images)
    features = keras.Model(loaded.model.inputs, loaded.model.get_layer("head").input).predict(images, verbose=0)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    nearest = np.linalg.norm(features[:, None] - found.vectors[None], axis=-1).min(1)
    np.testing.assert_allclose(outputs[:, 3], nearest, atol=1e-4)
    assert (loaded.task.heading(outputs[1]).startswith("none of these")) == (nearest[1] > found.unknown["threshold"])
    np.savez(unknown.vectors_file(path), vectors=found.vectors[::-1])
    with pytest.raises(ValueError, match="has the vectors of another model"):
        keras_vit.predict(path, colors / "strange")
    unknown.vectors_file(path).write_bytes(b"")
    with pytest.raises(ValueError, match="vectors.npz' cannot be read"):
        keras_vit.predict(path, colors / "strange")
    unknown.vectors_file(path).unlink()
    with pytest.raises(FileNotFoundError, match="which must be in .*model.vectors.npz"):
        keras_vit.predict(path, colors / "strange")

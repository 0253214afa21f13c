import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import evaluate, load_run
from keras_vit.reporting.gather import gather
from tests.marks import slow


def test_a_run_is_measured_as_by_evaluate(run):
    (run / "model_card.json").write_text("a reader's own")
    facts = gather(run)
    accuracy = evaluate(run)[str(run / "model.keras")]["accuracy"]
    assert facts.numbers["accuracy"] == accuracy and 0 <= facts.numbers["calibration_error"] <= 1
    assert facts.whole and facts.split == facts.recipe.data.test
    model = load_run(run).model
    worst, best = facts.examples["Worst"], facts.examples["Best"]
    logits = np.asarray(model(np.stack([one.image for one in worst])))
    assert all(f"{digit} (" in one.caption for digit, one in zip(logits.argmax(-1), worst))
    right = [one.caption for one in best if "predicted" not in one.caption]
    certainty = [float(caption.partition("(")[2][:-2]) for caption in right]
    assert certainty == sorted(certainty, reverse=True) and "predicted" in worst[0].caption
    assert len(facts.figures) == 4 and len(facts.points) == len(facts.labels) == facts.images
    assert "CPU cores" in facts.machine["device"] and not facts.shipped
    assert len(facts.history["loss"]) == 1 and facts.exports == []


@slow
def test_shipped_weights_and_a_part_of_the_split(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (9, 28, 28, 1)).astype("uint8")
    facts = gather("mnist", (images, np.arange(9)), most=6)
    assert facts.images == 6 and not facts.whole and facts.shipped and not facts.history
    np.testing.assert_array_equal(facts.shown, images[:6])
    assert facts.split == "images from arrays"


def test_a_run_on_arrays_needs_them(run, tmp_path):
    data = json.loads((run / "data.json").read_text())
    (run / "data.json").write_text(json.dumps({**data, "arrays": True}))
    with pytest.raises(ValueError, match="Pass `arrays`"):
        gather(run)


def test_a_model_without_blocks_is_refused_before_it_is_measured(tmp_path):
    inputs = keras.Input((8, 8, 1))
    keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Flatten()(inputs))).save(tmp_path / "a.keras")
    with pytest.raises(ValueError, match="exactly one functional model with `TransformerBlock` layers"):
        gather(tmp_path / "a.keras", arrays=(np.zeros((3, 8, 8, 1)), np.zeros(3, int)))

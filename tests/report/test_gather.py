import json

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import evaluate, load_run
from keras_vit.report.gather import gather


def test_a_run_is_measured_as_by_evaluate(run):
    facts = gather(run)
    accuracy = (facts.probabilities.argmax(-1) == facts.labels).mean()
    assert accuracy == pytest.approx(evaluate(run)[str(run / "model.keras")]["accuracy"])
    assert facts.whole and facts.split == facts.recipe.data.test
    model, *_ = load_run(run)
    np.testing.assert_allclose(facts.probabilities.sum(-1), 1, atol=1e-5)
    indices, images = facts.worst
    assert (facts.probabilities[indices].argmax(-1) != facts.labels[indices]).all()
    logits = np.asarray(model(np.stack(images)))
    np.testing.assert_array_equal(logits.argmax(-1), facts.probabilities[indices].argmax(-1))
    assert "CPU cores" in facts.machine["device"] and not facts.shipped
    assert len(facts.history["loss"]) == 1 and facts.exports == []


def test_shipped_weights_and_a_part_of_the_split(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    images = np.random.default_rng(0).integers(0, 256, (9, 28, 28, 1)).astype("uint8")
    facts = gather("mnist", (images, np.arange(9)), most=6)
    assert len(facts.labels) == 6 and not facts.whole and facts.shipped and not facts.history
    np.testing.assert_array_equal(facts.shown, images[:6])
    assert facts.split == "images from arrays"


def test_a_run_on_arrays_needs_them(run, tmp_path):
    (run / "data.json").write_text(json.dumps({"arrays": True}))
    with pytest.raises(ValueError, match="Pass `arrays`"):
        gather(run)

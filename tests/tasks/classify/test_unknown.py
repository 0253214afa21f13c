import numpy as np
import pytest

import keras_vit
from keras_vit.explain.embedding import unit
from keras_vit.models.metadata import keep
from keras_vit.tasks.classify import unknown

RNG = np.random.default_rng(0)
QUANTILES = np.linspace(-4, 4, 101).tolist()
ENERGY = {"rule": "energy", "temperature": 1.0, "threshold": -1.0, "rate": 0.05, "quantiles": QUANTILES}
NEIGHBOURS = {
    "rule": "neighbours",
    "k": 2,
    "threshold": 0.5,
    "rate": 0.05,
    "quantiles": np.linspace(0, 1, 101).tolist(),
}


def task(rule, **more):
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    if rule:
        keep(model, unknown=rule)
    return keras_vit.Classify(classes=("a", "b", "c"), **more).of_model(model)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_energy_is_the_formula(temperature):
    logits = RNG.normal(size=(5, 4)) * 3
    expected = [-temperature * np.log(sum(np.exp(z / temperature) for z in row)) for row in logits]
    np.testing.assert_allclose(unknown.energies(logits, temperature), expected, rtol=1e-12)
    divided = unknown.energies(logits / 2, temperature / 2)  # as calibration divides
    np.testing.assert_allclose(divided * 2, expected, rtol=1e-12)
    assert np.isfinite(unknown.energies(np.array([1e5, -1e5]))).all()


def test_distances_are_those_of_scikit_learn():
    from sklearn.neighbors import NearestNeighbors

    vectors, kept = RNG.normal(size=(7, 6)), RNG.normal(size=(40, 6))
    found = NearestNeighbors(n_neighbors=9).fit(unit(kept)).kneighbors(unit(vectors))[0]
    for k in (1, 4, 9):
        np.testing.assert_allclose(unknown.distances(3 * vectors, kept / 2, k), found[:, k - 1], atol=1e-7)
    assert (
        unknown.distances(kept[:1], kept, 1)[0] < 1e-7 and np.isfinite(unknown.distances(0 * kept[:1], kept, 1)).all()
    )


def test_distances_are_found_a_block_at_once():
    import tracemalloc

    vectors, kept = RNG.normal(size=(5000, 4)), RNG.normal(size=(1000, 4))
    tracemalloc.start()
    found = unknown.distances(vectors, kept, 3)
    assert tracemalloc.get_traced_memory()[1] < 30e6  # all at once take 120 MB
    tracemalloc.stop()
    np.testing.assert_allclose(found[-5:], unknown.distances(vectors[-5:], kept, 3), rtol=1e-6)


def test_no_more_than_the_rate_is_above_the_threshold():
    values = RNG.normal(size=777)
    for rate in (0.01, 0.05, 0.3):
        rule = unknown.fitted(values, rate)
        above = (values > rule["threshold"]).mean()
        assert rate - 1 / len(values) < above <= rate
        assert unknown.share_below(rule, rule["threshold"]) == pytest.approx(1 - rate, abs=0.01)
    assert unknown.share_below(rule, 1e9) == 1 and unknown.share_below(rule, -1e9) == 0
    with pytest.raises(ValueError, match="rate of 0.05 needs 20 validation images or more. Received: 19"):
        unknown.fitted(values[:19], 0.05)


def test_an_image_of_none_of_the_classes_is_said_so():
    known, strange = np.array([9.0, 0, 0]), np.array([0.1, 0.0, -3.0])
    of = task(ENERGY)
    assert of.heading(known) == "a (100%)" and [*of.answer(known)] == ["a", "b", "c"]
    assert [name for name, _ in of.listed(strange, 2)] == ["none of these", "a"]
    assert of.heading(strange).startswith("none of these (") and next(iter(of.bars(strange))) == "none of these"
    assert of.said(dict(of.listed(strange, 2))).startswith("none of these 40.4%, a 51.3%")
    assert of.caption(strange, {"labels": 1}).startswith("b, predicted none of these")
    assert task(None).heading(strange) == "a (51%)"


def test_distances_are_a_column_more():
    of = task(NEIGHBOURS)
    near, far = np.array([2.0, 1, 0, 0.4]), np.array([2.0, 1, 0, 0.9])
    assert of.heading(near) == "a (67%)" and [*of.answer(far)] == ["none of these", "a", "b", "c"]
    assert of.answer(far)["none of these"] == pytest.approx(0.9) and of.answer(near)["a"] == of.answer(far)["a"]
    assert of.heading(near[:3]) == "a (67%)"  # nothing shows how far


def test_what_is_no_rule_is_left_out():
    for change in ({"rule": "other"}, {"threshold": None}, {"temperature": 0}, {"quantiles": [1.0]}, {"quantiles": 3}):
        assert task({**ENERGY, **change}).unknown is None
    assert task(ENERGY, multilabel=True).unknown is None


def test_training_further_forgets_the_rule():
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    keep(model, unknown=ENERGY)
    keras_vit.Classify(classes=("a", "b", "c")).learner(model)
    assert "unknown" not in model.get_layer("rescale").metadata

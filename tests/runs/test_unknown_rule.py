import re

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.models.metadata import keep, metadata
from keras_vit.models.unknown import mark
from keras_vit.runs import unknown, unknown_rule
from tests.commands.helpers import run as command
from tests.runs.strangers import said

RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore:No temperature")
def test_pictures_choose_and_vectors_stay_next_to_the_model(colors):
    out = said("calibrate", colors / "run", "--unknown", "0.1", "--unknown-pictures", colors / "strange")
    areas = dict(re.findall(r"by (energy|neighbours): ([\d.]+)", out))
    assert set(areas) == {"energy", "neighbours"}
    path = colors / "run" / "calibrated.keras"
    loaded = keras_vit.load_run(path)
    better = max(areas, key=lambda name: (float(areas[name]), name == "energy"))
    assert loaded.task.unknown["rule"] == better and unknown.vectors_file(path).exists() == (better == "neighbours")
    command("calibrate", str(colors / "run"), "--unknown", "0.1", status=2)  # exists
    scores = keras_vit.evaluate(path, unknown=colors / "strange")[str(path)]
    assert scores["unknown_auroc"] == pytest.approx(float(areas[better]), abs=0.15)
    assert ("none of these" in said("predict", path, colors / "strange")) == (scores["unknown_found"] > 0)
    assert "none of these" in said("evaluate", path, "--unknown", colors / "strange")


def test_vectors_are_few_and_always_the_same(colors, monkeypatch):
    loaded = keras_vit.load_run(colors / "run")
    monkeypatch.setattr(unknown_rule, "MOST", 20)
    from keras_vit.runs import results

    source = results.source_of(loaded, loaded.bound.data.train, None)
    one, other = (
        unknown_rule.kept_of(source, loaded.bound, loaded.size, unknown.with_vectors(loaded.model)) for _ in range(2)
    )
    assert one.shape == (20, 32) and unknown.digest(one) == unknown.digest(other)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, atol=1e-6)
    assert [unknown_rule.neighbour(count) for count in (1, 900, 5000, 50_000)] == [1, 1, 5, 50]


def test_vectors_of_a_stream(colors, tmp_path):
    """Of data that do not fit into memory: runs of records from everywhere, no more than asked for."""
    import tensorflow as tf

    from keras_vit.data.readers.records import Stream
    from tests.data.readers.test_records import write

    paths = [write(tmp_path / f"{i}", range(60 * i, 60 * i + 60)) for i in range(2)]
    stream = Stream.of([(path, 0, 60) for path in paths], ("red", "green", "blue"), 10_000)
    loaded = keras_vit.load_run(colors / "run")
    seen = []

    def run(images):
        seen.extend(images[:, 0, 0, 0].astype(int).tolist())
        return None, tf.ones((len(images), 2)).numpy()

    unknown_rule.MOST, before = 55, unknown_rule.MOST
    try:
        assert unknown_rule.kept_of(stream, loaded.bound, loaded.size, run).shape == (50, 2)
    finally:
        unknown_rule.MOST = before
    assert len({*seen}) == 50 and min(seen) == 0 and max(seen) > 115
    assert seen == sorted(seen)


def test_calibrating_again_keeps_the_same_images():
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    model.get_layer("head").kernel.assign(RNG.normal(size=(32, 3)) * 3)
    images = RNG.integers(0, 256, (300, 8, 8, 3)).astype("float32")
    logits = np.asarray(model(images), "float64")
    labels = np.array([RNG.choice(3, p=p) for p in np.exp(logits / 2) / np.exp(logits / 2).sum(1, keepdims=True)])
    found = keras_vit.calibrate(model, arrays=(images, labels), unknown=0.2)
    before = [next(iter(found_of(model).answer(row))) == "none of these" for row in np.asarray(model(images))]
    assert np.mean(before) == pytest.approx(0.2, abs=0.01)
    energy = -np.log(np.exp(logits).sum(1))  # of the logits as they were trained
    assert {*np.argsort(energy)[-60:]} == {*np.nonzero(before)[0]}
    assert found.unknown["threshold"] * found.temperature == pytest.approx(np.sort(energy)[-61:-59].mean(), rel=1e-4)
    model.get_layer("head").set_weights([2 * weight for weight in model.get_layer("head").get_weights()])
    keep(model, unknown={**found.unknown, "temperature": 2 * found.unknown["temperature"],
                         "threshold": 2 * found.unknown["threshold"], "mark": mark(model)})  # fmt: skip
    keras_vit.calibrate(model, arrays=(images, labels))
    after = [next(iter(found_of(model).answer(row))) == "none of these" for row in np.asarray(model(images))]
    assert after == before


def found_of(model):
    return keras_vit.Classify(classes=("a", "b", "c")).of_model(model)


def test_what_cannot_tell_unknown_images_is_refused(colors, tmp_path):
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    images, labels = RNG.integers(0, 256, (30, 8, 8, 3)).astype("float32"), np.arange(30) % 3
    single = keras_vit.vit("mu/4", image_size=8, num_classes=1)
    named = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    keras_vit.class_names(named, ["a", "b", "none of these"])
    named.save(tmp_path / "named.keras")
    cases = [
        (
            dict(target=model, arrays=(images, labels), unknown=0),
            "above 0 and below 1, such as 0.05. Received: unknown=0",
        ),
        (dict(target=model, arrays=(images, labels), unknown=True), "Received: unknown=True"),
        (
            dict(target=model, arrays=(images, labels), unknown=0.01),
            "needs 100 validation images or more. Received: 30",
        ),
        (dict(target=model, arrays=(images, labels), unknown_pictures="x"), "choose the rule of `unknown`"),
        (dict(target=model, arrays=(images, labels), unknown=0.1, unknown_pictures="x"), "with arrays"),
        (
            dict(target=single, arrays=(images, labels % 2), unknown=0.1),
            "one label for each. Received: .* of one logit",
        ),
        (dict(target=tmp_path / "named.keras", arrays=(images, labels), unknown=0.1), "No class may be called"),
        (dict(target="nuclei", unknown=0.1), "classifiers of images with one label.* of Segment"),
    ]
    weights = model.get_weights()
    for arguments, pattern in cases:
        with pytest.raises(ValueError, match=pattern):
            keras_vit.calibrate(**arguments)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        keras_vit.calibrate(colors / "run", unknown=0.1, unknown_pictures=tmp_path / "nothing")
    with pytest.raises(ValueError, match="has no threshold for unknown images. Set it by"):
        keras_vit.evaluate(colors / "run", unknown=colors / "strange")
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert "unknown" not in metadata(model)

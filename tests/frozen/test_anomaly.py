import json

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import AnomalyDetector
from keras_vit.export import prepare
from keras_vit.frozen.anomaly import image_scores
from keras_vit.traits import Traits
from keras_vit.utils.warned import LeftOut
from tests.marks import slow

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
GOOD = np.clip(RNG.normal(80, 8, (12, 32, 32, 3)), 0, 255).astype("uint8")
BAD = GOOD[:3].copy()
BAD[:, 8:16, 16:24] = (250, 0, 0)  # rows 2 and 3, columns 4 and 5 of the patches


@pytest.fixture(scope="module")
def detector():
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap")
    return AnomalyDetector(model, batch_size=4).fit(GOOD)


def test_what_is_foreign_is_found_and_shown(detector):
    found = detector.score(BAD)
    assert found.images.shape == (3,) and found.maps.shape == (3, 8, 8)
    assert (found.images > detector.threshold).all()
    for heat in found.maps:
        row, column = np.unravel_index(heat.argmax(), heat.shape)
        assert row in (2, 3) and column in (4, 5)


def test_a_remembered_image_has_no_distance(detector):
    np.testing.assert_allclose(detector.score(GOOD).maps, 0, atol=1e-5)


def test_the_threshold_lets_normal_images_pass(detector):
    new = np.clip(RNG.normal(80, 8, (20, 32, 32, 3)), 0, 255).astype("uint8")
    assert (detector.score(new).images <= detector.threshold).mean() >= 0.7


def test_the_model_alone_gives_the_maps(detector):
    maps = np.asarray(detector.model(BAD))
    np.testing.assert_allclose(maps, detector.score(BAD).maps, atol=1e-5)


@pytest.mark.parametrize("resize", ["crop", "squash", "window"])
def test_what_is_abnormal_at_the_border_is_found(resize, tmp_path):
    """Whatever the model's own evaluation crops away, the detector, its file and its pictures see the whole image."""
    rule = {"resize": resize, "interpolation": "bicubic", "antialias": True}
    rule |= {"crop_pct": 0.5} if resize != "window" else {}
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap")
    model.get_layer("rescale").metadata["evaluation"] = rule
    good = np.clip(RNG.normal(80, 8, (6, 48, 96, 3)), 0, 255).astype("uint8")
    found = AnomalyDetector(model).fit(good)
    for row, column in ((0, 0), (0, 7), (7, 0), (7, 7)):  # of the map, the corners of the image
        bad = good[0].copy()
        bad[6 * row : 6 * row + 6, 12 * column : 12 * column + 12] = (250, 0, 0)
        scores = found.score(bad)
        assert scores.images > found.threshold
        assert np.unravel_index(scores.maps[0].argmax(), (8, 8)) == (row, column)
    assert keras_vit.preprocess(found.model, bad)[0, -1, -1, 0] > 200
    assert keras_vit.preprocess(model, good[0]).shape == (1, 32, 32, 3)
    assert model.get_layer("rescale").metadata["evaluation"] == rule  # the caller's model is unchanged
    found.save(tmp_path / "a.keras")
    again = AnomalyDetector.load(tmp_path / "a.keras")
    np.testing.assert_allclose(again.score(bad).maps, scores.maps, atol=1e-5)


def test_one_bad_file_does_not_end_the_others(detector, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no image")
    files = [GOOD[0], tmp_path / "bad.png", BAD[0]]
    with pytest.raises(ValueError, match="bad.png' is not a PNG"):
        detector.score(files)
    with pytest.warns(LeftOut, match="Left out 1 of 3 images, which cannot be read:\n.*bad.png"):
        found = detector.score(files, bad_images="skip")
    assert np.isnan(found.images[1]) and np.isnan(found.maps[1]).all()
    np.testing.assert_allclose(found.images[[0, 2]], detector.score(files[::2]).images, atol=1e-5)
    model = detector._embedder.model
    with pytest.warns(LeftOut):
        fitted = AnomalyDetector(model).fit([*GOOD, tmp_path / "bad.png"], bad_images="skip")
    assert abs(fitted.score(BAD).images - detector.score(BAD).images).max() < 1e-5
    with pytest.warns(LeftOut), pytest.raises(ValueError, match="Two normal images or more.*Received: 1 that can be"):
        AnomalyDetector(model).fit(files[:2], bad_images="skip")


@pytest.mark.parametrize("threshold", [np.nan, np.inf, [1.0]])
def test_a_threshold_that_never_alarms_is_refused(threshold, detector, tmp_path):
    layer = detector.model.layers[-1]
    kept, layer.threshold = layer.threshold, threshold
    detector.save(tmp_path / "a.keras")
    layer.threshold = kept
    with pytest.raises(ValueError, match="must have a finite threshold. Received: threshold="):
        AnomalyDetector.load(tmp_path / "a.keras")


def test_saved_and_loaded(detector, tmp_path):
    detector.save(tmp_path / "a.keras")
    again = AnomalyDetector.load(tmp_path / "a.keras")
    assert again.threshold == detector.threshold
    np.testing.assert_allclose(again.score(BAD).images, detector.score(BAD).images, atol=1e-5)
    with pytest.raises(FileExistsError):
        detector.save(tmp_path / "a.keras")


def test_few_patches_are_chosen_and_more_than_there_are_refused(detector):
    small = AnomalyDetector(detector._embedder.model).fit(GOOD, patches=50)
    assert small.model.layers[-1].tokens == 50
    assert (small.score(BAD).images > small.score(GOOD).images.max()).all()
    with pytest.raises(ValueError, match="`patches` must be at most the 768 of 12 images. Received: patches=769"):
        small.fit(GOOD, patches=769)


def test_scores_are_the_mean_of_the_largest_hundredth():
    maps = np.arange(400, dtype="float32").reshape(1, 20, 20)
    assert image_scores(maps) == np.mean([396, 397, 398, 399])
    assert image_scores(maps[:, :2, :2]) == 21


def test_bad_input(detector, tmp_path):
    new = AnomalyDetector(detector._embedder.model)
    for call in (lambda: new.score(BAD), lambda: new.save(tmp_path / "b.keras"), lambda: new.threshold):
        with pytest.raises(ValueError, match="has seen no normal images: call fit first"):
            call()
    with pytest.raises(ValueError, match="Two normal images or more are needed. Received: 1"):
        new.fit(GOOD[:1])
    with pytest.raises(ValueError, match="Received: false_alarms=0"):
        new.fit(GOOD, false_alarms=0)
    with pytest.raises(ValueError, match="`path` must end in .keras"):
        detector.save(tmp_path / "b.h5")
    (tmp_path / "c.keras").write_bytes(b"no model")
    with pytest.raises(ValueError, match="c.keras' cannot be read"):
        AnomalyDetector.load(tmp_path / "c.keras")
    detector._embedder.model.save(tmp_path / "d.keras")
    with pytest.raises(ValueError, match="must be an AnomalyDetector's file"):
        AnomalyDetector.load(tmp_path / "d.keras")


@slow
def test_it_is_exported_with_its_encoder(detector, tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("exports need TensorFlow")
    report = keras_vit.export_tflite(detector.model, tmp_path / "a.tflite")
    assert report.max_abs_diff < 1e-4 and not report.outside
    keras_vit.export_saved_model(detector.model, tmp_path / "saved")
    for path in (tmp_path / "a.tflite.json", tmp_path / "saved" / "assets.extra" / "keras_vit.json"):
        stated = json.loads(path.read_text())
        assert stated["threshold"] == detector.threshold and stated["score"]["largest"] == 1 and not stated["labels"]
    with pytest.raises(ValueError, match="Distances have no probabilities"):
        keras_vit.export_tflite(detector.model, tmp_path / "b.tflite", probabilities=True)


@pytest.mark.filterwarnings("error::UserWarning")
def test_an_export_states_how_a_score_is_made(detector):
    memory = detector.model.layers[-1]
    maps = np.random.default_rng(1).uniform(size=(2, 20, 30)).astype("float32")
    stated = memory.export_facts((None, *maps.shape[1:]))
    assert stated["score"]["largest"] == 6 and "the mean of the 6 largest" in stated["score"]["rule"]
    by_hand = np.sort(maps.reshape(2, -1))[:, -6:].mean(1)
    np.testing.assert_allclose(image_scores(maps), by_hand, rtol=1e-6)
    rescale = detector.model.get_layer("rescale")
    before, rescale.metadata = rescale.metadata, {"labels": list("abcdefgh")}  # as many as the map has columns
    assert prepare.facts(Traits(detector.model), None)["labels"] is None
    rescale.metadata = before

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import AnomalyDetector
from keras_vit.frozen.anomaly import image_scores

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)
GOOD = np.clip(RNG.normal(80, 8, (12, 32, 32, 3)), 0, 255).astype("uint8")
BAD = GOOD[:3].copy()
BAD[:, 8:16, 16:24] = (250, 0, 0)  # rows 2 and 3, columns 4 and 5 of the patches


@pytest.fixture(scope="module")
def detector():
    model = keras_vit.vit("mu/4", image_size=32, num_classes=0, depth=1, pooling="gap", weights=None)
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


def test_it_is_exported_with_its_encoder(detector, tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("exports need TensorFlow")
    report = keras_vit.export_tflite(detector.model, tmp_path / "a.tflite")
    assert report.max_abs_diff < 1e-4 and not report.outside

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.tasks.generate.moments import Moments, frechet
from keras_vit.tasks.generate.sample_tally import SampleTally, judge_of, thumbnails

RNG = np.random.default_rng(0)


@pytest.fixture
def judge(tmp_path):
    model = keras_vit.vit("mu/4", image_size=8, channels=1, num_classes=3)
    model.get_layer("head").set_weights([RNG.normal(size=(32, 3)), np.zeros(3)])
    model.save(tmp_path / "judge.keras")
    return str(tmp_path / "judge.keras"), model


def test_thumbnails_are_means_over_areas():
    images = RNG.uniform(0, 255, (2, 16, 24, 3))
    expected = images.reshape(2, 8, 2, 8, 3, 3).mean((2, 4)) / 127.5 - 1
    np.testing.assert_allclose(thumbnails(images), expected.reshape(2, -1), atol=1e-5)
    uneven = thumbnails(np.full((1, 28, 5, 1), 255.0))
    assert uneven.shape == (1, 40) and np.allclose(uneven, 1)


def test_scores_of_a_judge(judge):
    path, model = judge
    real, made = (RNG.uniform(0, 255, (12, 8, 8, 1)).astype("float32") for _ in range(2))
    labels, tally = np.arange(12) % 3, SampleTally(path)
    for part in (slice(0, 7), slice(7, 12)):
        shares = tally.add({"originals": real[part], "labels": labels[part]}, made[part])
        assert shares.shape == labels[part].shape and ((shares > 0) & (shares < 1)).all()
    found = tally.result()
    assert found["accuracy"] == (np.asarray(model(made)).argmax(-1) == labels).mean()
    import keras

    features = keras.Model(model.input, model.get_layer("head").input)
    both = Moments(), Moments()
    for moments, images in zip(both, (made, real)):
        moments.add(np.asarray(features(images)))
    np.testing.assert_allclose(found["frechet"], frechet(*both), rtol=1e-3)
    assert list(found) == ["accuracy", "frechet", "thumbnail_frechet"]
    assert judge_of(path) is judge_of(path)


def test_without_a_judge():
    tally = SampleTally()
    assert tally.result() == {}
    assert tally.add({"originals": np.zeros((4, 8, 8, 1)), "labels": np.zeros(4)}, np.full((4, 8, 8, 1), 255.0)) is None
    np.testing.assert_allclose(tally.result()["thumbnail_frechet"], 64 * 4)


def test_judges_that_cannot_judge(judge, tmp_path):
    path, _ = judge
    judge_of(path).check(("a", "b", "c"), (8, 8, 1))
    with pytest.raises(ValueError, match="must have the classes of the data, a, b. Received: judge=.* with 3 classes"):
        judge_of(path).check(("a", "b"))
    keras_vit.vit("mu/4", image_size=8, num_classes=0).save(tmp_path / "headless.keras")
    keras_vit.vit("mu/4", image_size=8, num_classes=3, value_range=(0, 1)).save(tmp_path / "scaled.keras")
    for name in ("headless", "scaled"):
        with pytest.raises(ValueError, match="The judge must be a classifier of images, 0 to 255. Received: judge="):
            SampleTally(str(tmp_path / f"{name}.keras"))


def test_a_judge_that_returns_probabilities(judge, tmp_path):
    path, model = judge
    import keras

    keras.Model(model.input, keras.layers.Softmax()(model.output)).save(tmp_path / "shares.keras")
    images = RNG.uniform(0, 255, (6, 8, 8, 1)).astype("float32")
    given = {"originals": images, "labels": np.arange(6) % 3}
    one, other = (SampleTally(str(source)) for source in (path, tmp_path / "shares.keras"))
    np.testing.assert_allclose(one.add(given, images), other.add(given, images), rtol=1e-5)
    assert one.result() == pytest.approx(other.result(), abs=1e-5)

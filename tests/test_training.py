import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import config, training, vit
from keras_vit.data.sources import Source

RNG = np.random.default_rng(0)
SOURCE = Source(
    RNG.integers(0, 256, (40, 8, 8, 1)).astype("uint8"), RNG.integers(0, 3, 40).astype("int32"), tuple("abc")
)
RECIPE = config.Recipe(
    name="x",
    model={},
    data=config.Data(batch_size=8),
    augment=config.Augment(rotation=10.0, translation=0.1),
    optim=config.Optim(epochs=4, warmup_epochs=1.0, learning_rate=0.01, weight_decay=0.1),
)


def tiny():
    keras.utils.set_random_seed(0)
    return vit("mu/4", image_size=8, channels=1, num_classes=3, depth=2, stochastic_depth=0.3, dropout=0.1)


def test_learning_rate_warms_up_and_falls_to_zero():
    rate = training.compile_model(tiny(), RECIPE, 100).optimizer._learning_rate
    found = [float(rate(step)) for step in (0, 50, 100, 250, 400)]
    np.testing.assert_allclose(found, [0, 0.005, 0.01, 0.005, 0], atol=1e-8)  # cosine: half-way at the middle


def test_without_warmup_it_starts_at_the_top():
    rate = training.compile_model(
        tiny(), config.override(RECIPE, {"optim.warmup_epochs": 0}), 100
    ).optimizer._learning_rate
    np.testing.assert_allclose([float(rate(s)) for s in (0, 200, 400)], [0.01, 0.005, 0], atol=1e-8)


def test_only_kernels_decay():
    """With no gradient at all, AdamW multiplies what decays by 1 - learning_rate * decay and leaves the rest."""
    model = training.compile_model(tiny(), config.override(RECIPE, {"optim.warmup_epochs": 0}), 100)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    model.optimizer.apply([keras.ops.zeros(v.shape) for v in model.trainable_variables], model.trainable_variables)
    for variable in model.trainable_variables:
        expected = 1 - 0.01 * 0.1 if variable.path.endswith("kernel") else 1
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-6, err_msg=variable.path)


def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir(), (tmp_path / "cut").mkdir()
    whole = tiny()
    history = training.fit(whole, RECIPE, SOURCE, SOURCE, tmp_path / "whole", verbose=0)
    assert len(history["loss"]) == len(history["val_accuracy"]) == 4

    keep = training._Keep.on_epoch_end

    def cut(self, epoch, logs=None):
        keep(self, epoch, logs)
        if epoch == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(training._Keep, "on_epoch_end", cut)
    with pytest.raises(KeyboardInterrupt):
        training.fit(tiny(), RECIPE, SOURCE, SOURCE, tmp_path / "cut", verbose=0)
    monkeypatch.undo()
    resumed = tiny()
    found = training.fit(resumed, RECIPE, SOURCE, SOURCE, tmp_path / "cut", verbose=0)
    np.testing.assert_allclose(found["loss"], history["loss"], rtol=1e-4)
    for a, b in zip(resumed.get_weights(), whole.get_weights()):
        np.testing.assert_allclose(a, b, atol=1e-5)
    best = keras.models.load_model(tmp_path / "cut" / training.BEST)
    assert training.evaluate(best, RECIPE, SOURCE) == pytest.approx(max(history["val_accuracy"]))


def test_a_finished_run_is_not_trained_again(tmp_path):
    training.fit(tiny(), RECIPE, SOURCE, SOURCE, tmp_path, verbose=0)
    before = (tmp_path / training.LAST).read_bytes()
    training.fit(tiny(), RECIPE, SOURCE, SOURCE, tmp_path, verbose=0)
    assert (tmp_path / training.LAST).read_bytes() == before


def test_infinite_loss_stops_the_run_and_keeps_the_good_epoch(tmp_path, monkeypatch):
    keep = training._Keep.on_epoch_end

    def poison(self, epoch, logs=None):
        keep(self, epoch, logs)
        self.model.get_layer("head").bias.assign([np.nan] * 3)

    monkeypatch.setattr(training._Keep, "on_epoch_end", poison)
    with pytest.raises(RuntimeError, match=r"(?i)nan|invalid loss"):
        training.fit(tiny(), RECIPE, SOURCE, SOURCE, tmp_path, verbose=0)
    kept = keras.models.load_model(tmp_path / training.LAST)
    assert all(np.isfinite(w).all() for w in kept.get_weights())


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.keras"
    path.write_text("good")

    def fail(temporary):
        temporary.write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        training.write(path, fail)
    assert path.read_text() == "good" and list(tmp_path.iterdir()) == [path]


def test_accuracy_counts_every_image():
    right = training.accuracy(lambda images: np.eye(3)[SOURCE.labels[: len(images)]], RECIPE, SOURCE, (8, 8, 1))
    expected = np.mean([SOURCE.labels[i] == SOURCE.labels[i % 8] for i in range(40)])
    assert right == pytest.approx(expected)

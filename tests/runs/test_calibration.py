import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import export
from keras_vit.models import kinds
from keras_vit.models.metadata import metadata
from keras_vit.runs import calibration
from tests.commands.helpers import run as command
from tests.marks import few, slow

RNG = np.random.default_rng(0)


def overconfident(factor=4.0, **more):
    """Returns a model, images, and labels drawn from its own probabilities; then the head is made too sure."""
    model = keras_vit.vit("mu/4", image_size=8, num_classes=3, **more)
    images = RNG.integers(0, 256, (1000, 8, 8, 3)).astype("float32")
    for head in calibration._heads(model):
        head.kernel.assign(RNG.normal(size=head.kernel.shape))
    logits = np.asarray(model(images))
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    labels = np.array([RNG.choice(3, p=row / row.sum()) for row in shares.astype("float64")])
    for head in calibration._heads(model):
        head.set_weights([weight * factor for weight in head.get_weights()])
    return model, images, labels


@few(1)
@pytest.mark.parametrize("more", [{}, {"tokens": {"distilled": True}}])
def test_finds_the_factor_that_made_a_head_too_sure(more, tmp_path):
    model, images, labels = overconfident(**more)
    before = np.asarray(model(images))
    found = keras_vit.calibrate(model, arrays=(images, labels))
    assert found.model is model and 3.2 < found.temperature < 5
    assert found.error[1] < found.error[0] / 2 and found.loss[1] < found.loss[0]
    after = np.asarray(model(images))
    np.testing.assert_allclose(after * found.temperature, before, rtol=1e-4, atol=1e-4)
    again = keras_vit.calibrate(model, arrays=(images, labels))
    assert again.temperature == pytest.approx(1, abs=1e-3)
    model.save(tmp_path / "model.keras")
    kept = keras.models.load_model(tmp_path / "model.keras").get_layer("rescale").metadata["temperature"]
    assert kept == pytest.approx(found.temperature, rel=1e-2)


@slow
def test_a_file_and_a_run_on_arrays_are_fitted_to_arrays(run, tmp_path):
    model, images, labels = overconfident()
    model.save(tmp_path / "alone.keras")
    found = keras_vit.calibrate(model, arrays=(images, labels))
    again = keras_vit.calibrate(tmp_path / "alone.keras", arrays=(images, labels))
    assert again.temperature == pytest.approx(found.temperature, rel=1e-3)
    data = json.loads((run / "data.json").read_text())
    (run / "data.json").write_text(json.dumps({**data, "arrays": True}))
    images = RNG.integers(0, 256, (50, 8, 8, 1))
    logits = keras_vit.load_run(run).viewer()(images.astype("float32"))
    with pytest.raises(ValueError, match="Received: 50 images, 0.0% of them right"):  # which no temperature fits
        keras_vit.calibrate(run, arrays=(images, np.argmin(logits, axis=-1)))


def test_no_other_temperature_has_a_smaller_loss():
    model, images, labels = overconfident(0.3)
    logits = np.asarray(model(images), "float64")
    found = keras_vit.calibrate(model, arrays=(images, labels))
    losses = [calibration._loss(keras_vit.Classify(), logits / t, labels) for t in np.geomspace(0.05, 20, 500)]
    assert found.temperature < 1 and found.loss[1] <= min(losses) + 1e-7


def test_one_logit_is_of_two_classes():
    """The temperature is that of the logits 0 and z: the same as of a model that returns both."""
    rng = np.random.default_rng(0)
    model = keras_vit.vit("mu/4", image_size=8, num_classes=1, depth=1)
    model.get_layer("head").kernel.assign(4 * rng.normal(size=(32, 1)))
    images = rng.integers(0, 256, (400, 8, 8, 3)).astype("float32")
    z = np.asarray(model(images), "float64")
    labels = (rng.random(400) < 1 / (1 + np.exp(-z[:, 0] / 3))).astype(int)
    found = keras_vit.calibrate(model, arrays=(images, labels))
    assert found.temperature == pytest.approx(
        calibration._fitted(keras_vit.Classify(), np.hstack([0 * z, z]), labels), rel=1e-6
    )
    assert 2 < found.temperature < 4.5 and found.error[1] < found.error[0] and found.loss[1] < found.loss[0]
    np.testing.assert_allclose(np.asarray(model(images)) * found.temperature, z, rtol=1e-4, atol=1e-4)


@slow
def test_runs_are_fitted_to_their_validation_split_and_exports_keep_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command("fit", "digits", "optim.epochs=6", "model.depth=1", "--workdir", "run")
    found = keras_vit.calibrate("run")
    assert found.loss[1] <= found.loss[0]
    command("calibrate", "run")
    assert "run/calibrated.keras: temperature" in capsys.readouterr().out
    command("calibrate", "run", status=2)
    command("calibrate", "run", "--to", "a.h5", status=2)
    model = keras_vit.load_run("run/calibrated.keras").model
    assert model.get_layer("rescale").metadata["temperature"] == pytest.approx(found.temperature, rel=1e-3)
    x = RNG.integers(0, 256, (4, 8, 8, 1)).astype("float32")
    export.export_tflite(model, "a.tflite")
    outputs = export.runtimes.tflite("a.tflite")[0](x)
    np.testing.assert_allclose(outputs, found.model(x), atol=1e-3)


def test_what_cannot_be_calibrated_is_refused():
    model, images, labels = overconfident()
    weights = model.get_weights()
    logits = np.asarray(model(images))
    several = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    kinds.note(several, "labels")
    cases = [
        (dict(target=model), r"needs `arrays`, \(images, labels\)"),
        (dict(target=model, arrays=(images, labels[:5])), "1000 images and 5 labels"),
        (dict(target=model, arrays=(images[:9], logits[:9].argmax(-1))), "9 images, 100.0% of them right"),
        (dict(target=keras.Model(model.input, keras.layers.Softmax()(model.output)), arrays=(images, labels)),
         "must end in a linear layer"),
        (dict(target=keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Flatten(), keras.layers.Dense(3)]),
              arrays=(images, labels)), "must end in a linear layer"),
        (dict(target=model, arrays=(images[:0], labels[:0])), "Received"),
        (dict(target=several, arrays=(images, labels)), "with one label for .* Received: .* of several labels"),
        (dict(target="nuclei"), "for classifiers with one label.* Received: .*nuclei.keras', for Segment"),
    ]  # fmt: skip
    for arguments, said in cases:
        with pytest.raises(ValueError, match=said):
            keras_vit.calibrate(**arguments)
    for ours, theirs in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_sigmoid_for_each_class_has_its_own_loss():
    logits, labels = RNG.normal(size=(20, 3)) * 3, RNG.integers(0, 3, 20)
    task = keras_vit.Classify(loss="sigmoid")
    wanted = task.compiled(None)["loss"](np.eye(3)[labels], logits)
    assert calibration._loss(task, logits, labels) == pytest.approx(float(wanted), rel=1e-5)


def test_a_model_put_together_by_hand():
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (500, 8, 8, 3))
    x = inputs = keras.Input((8, 8, 3))
    for layer in (keras_vit.Rescale(), keras_vit.Patches(4), keras_vit.PatchEncoder(8), keras_vit.TokenPool("gap")):
        x = layer(x)
    model = keras.Model(inputs, keras.layers.Dense(2)(x))
    model.layers[-1].set_weights([8 * random.normal(size=(8, 2)), np.zeros(2)])
    outputs = model.predict(images, verbose=0)
    share = 1 / (1 + np.exp((outputs[:, 0] - outputs[:, 1]) / 2))  # of class 1, at a temperature of 2
    done = keras_vit.calibrate(model, arrays=(images, (random.random(500) < share).astype(int)))
    temperature = metadata(done.model)["temperature"]
    assert 1.2 < temperature < 4
    np.testing.assert_allclose(done.model.predict(images, verbose=0), outputs / temperature, rtol=1e-3, atol=1e-4)

import contextlib
import io
import json
import pathlib
import re

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.models.metadata import keep, metadata
from keras_vit.runs import unknown
from tests.commands.helpers import run as command
from tests.marks import slow

RNG = np.random.default_rng(0)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "looking.md"
COLORS = np.array([[250, 20, 20], [20, 250, 20], [20, 20, 250]])


def picture(color, rng):
    return np.clip(rng.normal(size=(8, 8, 3)) * 30 + color, 0, 255).astype("uint8")


def write(folder, name, color, count, rng):
    from PIL import Image

    (folder / name).mkdir(parents=True)
    for i in range(count):
        Image.fromarray(picture(color, rng)).save(folder / name / f"{i}.png")


@pytest.fixture(scope="module")
def colors(tmp_path_factory):
    """A run that tells three colors apart, a folder of noise in gray and of black, and one of its own kind."""
    folder = tmp_path_factory.mktemp("colors")
    rng = np.random.default_rng(1)
    for name, color in zip(("red", "green", "blue"), COLORS):
        write(folder / "data", name, color, 60, rng)
    write(folder, "strange", (0, 0, 0), 30, rng)
    recipe = keras_vit.config.Recipe(
        name="colors",
        task=keras_vit.Classify(),
        model={"variant": "mu/4", "image_size": 8, "depth": 1},
        data=keras_vit.config.Data(source=f"folder:{folder / 'data'}", train="all[:50%]", validation="all[50%:80%]",
                                   test="all[80%:]", batch_size=30),
        augment=keras_vit.config.Augment(),
        optim=keras_vit.config.Optim(epochs=15, learning_rate=3e-3, warmup_epochs=0.0),
    )  # fmt: skip
    keras_vit.fit(recipe, folder / "run", verbose=False)
    return folder


def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        command(*map(str, words))
    return out.getvalue()


@pytest.mark.filterwarnings("ignore:No temperature")
def test_energy_without_pictures(colors, tmp_path):
    out = said("calibrate", colors / "run", "--unknown", "0.1", "--to", tmp_path / "a.keras")
    assert '"none of these" by energy, above' in out and "--unknown-pictures FOLDER would compare" in out
    loaded = keras_vit.load_run(tmp_path / "a.keras")
    rule = loaded.task.unknown
    assert (
        rule["rule"] == "energy"
        and loaded.about.unknown == rule
        and not unknown.vectors_file(tmp_path / "a.keras").exists()
    )
    order = [loaded.task.classes.index(name) for name in ("red", "green", "blue")] * 10
    arrays = np.stack([picture(color, RNG) for color in [*COLORS] * 10]), np.array(order)
    scores = keras_vit.evaluate(loaded, arrays=arrays, unknown=colors / "strange")[loaded.file]
    assert {"accuracy", "unknown_auroc", "false_alarms", "unknown_found"} <= set(scores)
    outputs = loaded.viewer()(np.asarray(arrays[0], "float32"))
    energy = -rule["temperature"] * np.log(np.exp(outputs / rule["temperature"]).sum(-1))
    assert scores["false_alarms"] == pytest.approx((energy > rule["threshold"]).mean())


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


@pytest.mark.filterwarnings("ignore:No temperature")
def test_a_rule_of_vectors(colors, tmp_path, monkeypatch):
    """Whatever the areas are: the distance to the nearest of the kept vectors, in predict, evaluate and the demo."""
    monkeypatch.setattr(unknown, "area", lambda known, others: float(known.min() >= 0))
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


def test_vectors_are_few_and_always_the_same(colors, monkeypatch):
    loaded = keras_vit.load_run(colors / "run")
    monkeypatch.setattr(unknown, "MOST", 20)
    from keras_vit.runs import results

    source = results.source_of(loaded, loaded.bound.data.train, None)
    one, other = (
        unknown.kept_of(source, loaded.bound, loaded.size, unknown.with_vectors(loaded.model)) for _ in range(2)
    )
    assert one.shape == (20, 32) and unknown.digest(one) == unknown.digest(other)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, atol=1e-6)
    assert [unknown.neighbour(count) for count in (1, 900, 5000, 50_000)] == [1, 1, 5, 50]


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
                         "threshold": 2 * found.unknown["threshold"]})  # fmt: skip
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


def block_of(word):
    """Returns the code block of the page that has a word."""
    return next(block for block in re.findall(r"```py\n(.*?)```", PAGE.read_text(), flags=re.S) if word in block)


@pytest.mark.filterwarnings("ignore:No temperature")
def test_lines_of_numpy_apply_an_exported_rule(colors, tmp_path, monkeypatch):
    """The lines on the page, run as they are written."""
    monkeypatch.chdir(tmp_path)
    found = keras_vit.calibrate(colors / "run", unknown=0.3)
    keras_vit.export_tflite(found.model, "model.tflite")
    stated = json.loads(pathlib.Path("model.tflite.json").read_text())["unknown"]
    assert stated == json.loads(json.dumps(found.unknown))
    images = np.stack([picture(color, RNG) for color in [*COLORS, (0, 0, 0)] * 4]).astype("float32")
    logits = keras_vit.export.runtimes.tflite("model.tflite")[0](images)
    names = {"logits": logits, "np": np, "json": json, "pathlib": pathlib}
    exec(block_of("np.log("), names)
    task = keras_vit.load_run(colors / "run").task.of_model(found.model)
    assert names["names"] == [next(iter(task.answer(row))) for row in logits]


@slow
@pytest.mark.filterwarnings("ignore:No temperature")
def test_lines_of_numpy_apply_a_rule_of_vectors(colors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rule = {"rule": "neighbours", "k": 2, "threshold": 0.2}
    vectors, kept = RNG.normal(size=(9, 5)), RNG.normal(size=(40, 5))
    names = {"rule": rule, "vectors": vectors, "kept": kept, "names": ["a"] * 9, "np": np}
    exec(block_of("np.partition("), names)
    from keras_vit.tasks.classify.unknown import distances

    expected = ["none of these" if each > 0.2 else "a" for each in distances(vectors, kept, 2)]
    assert names["names"] == expected

"""Pictures of five bands of 16 bits, from a folder to what is exported: the same numbers everywhere."""

import dataclasses
import json
import os
import shutil
import signal

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.__main__ import main
from keras_vit.config import Augment, Data, Optim, Recipe
from keras_vit.export import runtimes
from keras_vit.runs import results
from keras_vit.runs.looking import explain
from keras_vit.training import rundir
from tests.commands.helpers import run as command
from tests.marks import slow

tifffile = pytest.importorskip("tifffile")
pytest.importorskip("imagecodecs")
MODEL = dict(width=16, depth=1, num_heads=2, mlp_dim=32, patch_size=8, image_size=24, channels=5)


def made(count, seed=0):
    """Returns pictures whose class, 0 or 1, is in the last band alone."""
    random = np.random.default_rng(seed)
    values = random.integers(500, 20_000, (count, 5, 30, 26)).astype("uint16")
    labels = np.arange(count) % 2
    values[labels == 1, 4] += 30_000
    return values, labels


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("bands")
    values, labels = made(60)
    for i, (image, label) in enumerate(zip(values, labels)):
        (place / "data" / "ab"[label]).mkdir(parents=True, exist_ok=True)
        path = place / "data" / "ab"[label] / f"{i}.tif"
        tifffile.imwrite(path, image, photometric="minisblack", planarconfig="separate", compression="lzw")
    recipe = Recipe(
        "bands",
        {**MODEL, "mean": "data", "std": "data"},
        data=Data(source=f"folder:{place / 'data'}", batch_size=14, value_range="percentiles", bands=(5, 1, 2, 3, 4)),
        augment=Augment(flip=True),
        optim=Optim(epochs=4, learning_rate=3e-3, warmup_epochs=0.5, xla=False),
    )
    keras_vit.fit(recipe, place / "run", verbose=0)
    return place, recipe


def test_the_numbers_are_kept(run, capsys):
    place, recipe = run
    kept = rundir.recipe_of(place / "run")
    pairs = kept.data.value_range
    assert len(pairs) == 5 and pairs[0][1] > 45_000 > 20_000 >= pairs[1][1]
    model = keras_vit.load_run(place / "run").model
    assert model.get_layer("rescale").value_range == [list(pair) for pair in pairs]
    assert len(model.get_layer("rescale").mean) == 5
    keras_vit.fit(recipe, place / "run")  # the same run
    said = capsys.readouterr().out
    assert "already finished" in said and f"bands: 5 from {pairs[0][0]:g} to {pairs[0][1]:g}, 1 from" in said


def test_a_run_a_file_and_arrays_agree(run):
    place, _ = run
    files = sorted((place / "data").rglob("*.tif"))[:7]
    of_run = keras_vit.predict(place / "run", files)
    shutil.copy(place / "run" / "model.keras", place / "alone.keras")
    of_file = keras_vit.predict(place / "alone.keras", files)
    for one, other in zip(of_run, of_file):
        assert [name for name, _ in one] == [name for name, _ in other]
        np.testing.assert_allclose([p for _, p in one], [p for _, p in other], atol=1e-4)
    assert [one[0][0] for one in of_run] == [path.parent.name for path in files]
    arrays = np.stack([tifffile.imread(path)[[4, 0, 1, 2, 3]].transpose(1, 2, 0) for path in files])
    model = keras_vit.load_run(place / "run").model
    pixels = keras_vit.preprocess(model, list(arrays))
    np.testing.assert_allclose(pixels, keras_vit.preprocess(model, files), atol=0.01)
    np.save(place / "three.npy", arrays[0, ..., :3])
    with pytest.raises(ValueError, match="has the bands 1 to 3"):
        keras_vit.predict(place / "run", [place / "three.npy"])


def test_exports_take_the_files_numbers(run):
    place, _ = run
    results.export(place / "run")
    scores = keras_vit.evaluate(place / "run")
    assert len(scores) == 3 and {score["accuracy"] for score in scores.values()} == {1.0}
    facts = json.loads((place / "run" / "model.tflite.json").read_text())["input"]
    assert facts["range"] == [list(pair) for pair in rundir.recipe_of(place / "run").data.value_range]
    assert facts["bands"] == {"count": 5, "bands": [5, 1, 2, 3, 4]} and facts["channels"] is None
    outputs, _ = runtimes.tflite(place / "run" / "model.tflite")
    model = keras_vit.load_run(place / "run").model
    beyond = np.random.default_rng(0).uniform(-9e4, 9e4, (4, 24, 24, 5)).astype("float32")  # clipped in the file too
    np.testing.assert_allclose(outputs(beyond), model.predict(beyond, verbose=0), atol=1e-3)


def test_bands_of_pictures_of_8_bits(tmp_path):
    from PIL import Image

    random = np.random.default_rng(0)
    for i in range(12):
        (tmp_path / "data" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 255, (24, 24, 3), "uint8")
        Image.fromarray(pixels).save(tmp_path / "data" / "ab"[i % 2] / f"{i}.{('png', 'jpg')[i // 6]}")
    recipe = Recipe(
        "bands",
        {**MODEL, "channels": 2},
        data=Data(source=f"folder:{tmp_path / 'data'}", batch_size=4, bands=(3, 1)),
        optim=Optim(epochs=1, xla=False),
    )
    keras_vit.fit(recipe, tmp_path / "run", verbose=0)
    trained = keras_vit.load_run(tmp_path / "run")
    files = [tmp_path / "data/a/0.png", tmp_path / "data/b/7.jpg"]
    want = trained.model.predict(np.stack([np.asarray(Image.open(path))[..., [2, 0]] for path in files]), verbose=0)
    for place in ("run", "run/model.keras"):
        rows = keras_vit.predict(tmp_path / place, files)
        np.testing.assert_allclose([row[0][1] for row in rows], keras.ops.softmax(want).numpy().max(1), rtol=1e-4)


def test_pictures_are_drawn(run):
    place, _ = run
    report = keras_vit.report(place / "run", place / "report.html").read_text()
    assert "Pictures show bands 5, 1 and 2 in red, green and blue, each in its range." in report
    explain(place / "run", sorted((place / "data").rglob("*.tif"))[:2], place / "explained")
    assert (place / "explained" / "attention.png").stat().st_size > 1000


def test_a_run_is_published_and_its_patches_are_painted(run):
    place, _ = run
    pytest.importorskip("huggingface_hub")
    pairs = rundir.recipe_of(place / "run").data.value_range
    keras_vit.push_to_hub(place / "run", "hf://me/bands", license="mit", folder=place / "hub")
    low, high = min(low for low, _ in pairs), max(high for _, high in pairs)
    assert (
        f"5 channels, from {low:g} to {high:g}, in a range of its own for each band"
        in (place / "hub" / "README.md").read_text()
    )
    command = ["pca", str(place / "data"), "--model", str(place / "run"), "--to", str(place / "pca.png")]
    assert not main(command) and keras.utils.load_img(place / "pca.png").width > 100


def test_one_band_is_repeated_for_three_channels(tmp_path):
    values, labels = made(12)
    for i, (image, label) in enumerate(zip(values, labels)):
        (tmp_path / "data" / "ab"[label]).mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "data" / "ab"[label] / f"{i}.npy", image[4])
    data = Data(source=f"folder:{tmp_path / 'data'}", batch_size=4, value_range="minmax")
    recipe = Recipe("gray", {**MODEL, "channels": 3, "mean": "data", "std": "data"}, data=data)
    recipe = dataclasses.replace(recipe, optim=Optim(epochs=1, xla=False))
    limits = []
    for name, options in {"a": {}, "b": {"crops_per_image": 2}, "c": {"value_range": (500, 50_000)}}.items():
        own = dataclasses.replace(recipe, data=dataclasses.replace(data, **options))
        model, _ = keras_vit.fit(own, tmp_path / name, verbose=0)
        keras_vit.fit(own, tmp_path / name, verbose=0)  # the same run
        limits.append(np.array(model.get_layer("rescale").limits))
        assert limits[-1].shape == (2, 3) and (limits[-1] == limits[-1][:, :1]).all()
        pixels = keras_vit.preprocess(model, tmp_path / "data" / "b" / "1.npy")
        assert pixels.shape[-1] == 3 and pixels.min() > 30_000 and (pixels == pixels[..., :1]).all()
    np.testing.assert_array_equal(limits[0], limits[1])
    np.testing.assert_array_equal(limits[2], [[500] * 3, [50_000] * 3])
    with pytest.raises(ValueError, match="data.value_range must be a pair, or one for each of 1 bands"):
        keras_vit.fit(
            dataclasses.replace(recipe, data=dataclasses.replace(data, value_range=((0, 9), (0, 9)))), tmp_path / "d"
        )


@pytest.mark.parametrize("more", [(), ("--tiles",)])
def test_patches_of_bands_are_compared_and_drawn(run, tmp_path, more):
    place, _ = run
    for name in ("good", "new"):
        (tmp_path / name).mkdir()
    for i, path in enumerate(sorted((place / "data" / "a").glob("*.tif"))[:4]):
        shutil.copy(path, tmp_path / ("good" if i < 3 else "new"))
    words = [str(tmp_path / "new"), "--model", str(place / "run"), *more]
    command("anomaly", str(tmp_path / "good"), *words, "--to", str(tmp_path / "maps"))
    assert len([*(tmp_path / "maps").iterdir()]) == 1
    command("pca", *words, "--whole", "--to", str(tmp_path / "pca"))
    assert (tmp_path / "pca").exists()


@slow
def test_arrays_of_any_type_train(tmp_path):
    values, labels = made(40)
    images = values[:, :, :24, :24].transpose(0, 2, 3, 1)
    data = Data(batch_size=10, value_range=((0, 50_000),) * 5)
    recipe = Recipe(
        "arrays", {**MODEL, "num_classes": 2}, data=data, optim=Optim(epochs=3, learning_rate=3e-3, xla=False)
    )
    histories = []
    for kind in ("uint16", "int32", "float64"):
        pair = (images.astype(kind), labels)
        _, history = keras_vit.fit(recipe, tmp_path / kind, train=pair, validation=pair, verbose=0)
        histories.append(history["loss"])
    assert histories[0] == histories[1] == histories[2]
    holes = images.astype("float32")
    holes[3, 4, 5] = np.nan
    with pytest.raises(ValueError, match="data.no_data='nan' masks NaN"):
        keras_vit.fit(recipe, tmp_path / "holes", train=(holes, labels), validation=(holes, labels), verbose=0)
    assert not (tmp_path / "holes").exists()
    masked = dataclasses.replace(recipe, data=dataclasses.replace(data, no_data="nan"))
    _, history = keras_vit.fit(masked, tmp_path / "h", train=(holes, labels), validation=(holes, labels), verbose=0)
    assert np.isfinite(history["loss"]).all()


def test_tasks_that_see_bytes_refuse_bands(run):
    place, _ = run
    recipe = Recipe("restore", dict(MODEL), task=keras_vit.Restore(), data=Data(source=f"folder:{place / 'data'}"))
    recipe = dataclasses.replace(recipe, data=dataclasses.replace(recipe.data, value_range=(0, 1)))
    with pytest.raises(ValueError, match="Restore"):
        keras_vit.fit(recipe, place / "restored", verbose=0)
    assert not (place / "restored").exists()


def test_a_stopped_run_resumes_bit_for_bit(run):
    place, recipe = run
    augment = Augment(flip=True, crop="inception", erase=0.3, mixup=0.2)
    recipe = dataclasses.replace(recipe, augment=augment, optim=dataclasses.replace(recipe.optim, epochs=2))

    class Stop(keras.callbacks.Callback):
        steps = 0

        def on_train_batch_end(self, batch, logs=None):
            self.steps += 1
            if self.steps == 4:
                os.kill(os.getpid(), signal.SIGTERM)

    whole, _ = keras_vit.fit(recipe, place / "whole", verbose=0)
    with pytest.raises(KeyboardInterrupt, match="Stopped after epoch"):
        keras_vit.fit(recipe, place / "stopped", verbose=0, callbacks=[Stop()])
    resumed, _ = keras_vit.fit(recipe, place / "stopped", verbose=0)
    for one, other in zip(whole.get_weights(), resumed.get_weights()):
        np.testing.assert_array_equal(one, other)


def test_masked_patches_are_reconstructed_in_their_range(run):
    place, recipe = run
    task = keras_vit.Pretrain(decoder_width=16, decoder_depth=1, decoder_heads=2, normalize=False)
    recipe = dataclasses.replace(recipe, task=task, optim=Optim(epochs=2, learning_rate=3e-3, xla=False))
    _, history = keras_vit.fit(recipe, place / "masked", verbose=0)
    assert history["val_loss"][-1] < history["val_loss"][0]
    trained = keras_vit.load_run(place / "masked")
    images = keras_vit.preprocess(trained.model, sorted((place / "data").rglob("*.tif"))[:2])
    views = trained.viewer()(images)
    assert views.shape == (2, 2, 24, 24, 5) and views.min() >= 0 and views.max() <= 255 < images.max()
    crops = dataclasses.replace(recipe, task=keras_vit.Pretrain(method="dino", colors=False))
    with pytest.raises(ValueError, match="Pretrain sees pictures of 8 bits alone"):
        keras_vit.fit(crops, place / "dino", verbose=0)

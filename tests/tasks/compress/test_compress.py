import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Augment, Compress, Data, Generate, Optim, Recipe
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.models.inputs import metadata_of
from keras_vit.models.whole_autoencoder import SCALE, scale_of
from keras_vit.runs import predictions
from keras_vit.training import history
from tests.marks import fuller, slow
from tests.tasks.generate.test_by_texts import TASK, written
from tests.tasks.harness import run_task_test

MODEL = dict(image_size=8, channels=3, widths=[4, 8], depth=1, groups=2, latent_channels=2, attention=True)
DIT = dict(variant=None, image_size=4, channels=2, patch_size=2, width=16, depth=1, num_heads=2)
SPLITS = dict(train="all[:67%]", validation="all[67%:]", test="all[67%:]", batch_size=4)


def recipe(source, **changes):
    given = dict(
        name="latents",
        task=Compress(kl=1e-3),
        model=MODEL,
        data=Data(source=f"folder:{source}", **SPLITS, resize="window"),
        augment=Augment(crop="window", flip=True),
        optim=Optim(epochs=1, warmup_epochs=0.0, ema=0.9),
    )
    return Recipe(**{**given, **changes})


@pytest.fixture
def pictures(tmp_path):
    return written(tmp_path / "pictures")


@pytest.fixture
def trained(tmp_path, pictures):
    data = Data(source=f"folder:{pictures}", **{**SPLITS, "validation": "all"}, resize="window")
    keras_vit.fit(recipe(pictures, data=data), tmp_path / "latents", verbose=0)
    return tmp_path / "latents"


@slow
@fuller
def test_compress(tmp_path, monkeypatch, pictures):
    for i, size in enumerate([(12, 9), (8, 8)]):  # of other sizes than the windows
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (*size, 3), "uint8")).save(pictures / f"{i}.png")
    images = [pictures / f"{i}.png" for i in range(2)]
    run = run_task_test(recipe(pictures), tmp_path, monkeypatch, images, source=False)
    scale = scale_of(run.model)
    last = {name: values[-1] for name, values in history.read(run.run).items()}
    assert last["val_latent_std"] == pytest.approx(1 / scale["scaling_factor"])
    assert set(keras_vit.evaluate(run)[run.file]) == {"psnr"}  # SSIM is of larger images
    predictions.predict(run, images, to=tmp_path / "again")
    for path in images:
        with Image.open(tmp_path / "again" / path.name) as found, Image.open(path) as image:
            assert found.size == image.size and found.mode == "RGB"
    whole = keras_vit.from_pretrained(run.run)
    pixels = np.random.default_rng(0).uniform(0, 255, (2, 8, 8, 3)).astype("float32")
    np.testing.assert_array_equal(whole(pixels), run.model(pixels))
    for file in ("model.keras", "best.keras"):
        encoder, decoder = (keras_vit.from_checkpoint(run.run / file, part=part) for part in ("encoder", "decoder"))
        assert encoder.output_shape == (None, 4, 4, 4) and decoder.output_shape == (None, 8, 8, 3)


def drawing(source, autoencoder, **changes):
    given = dict(
        name="drawn",
        task=Generate(autoencoder=str(autoencoder), steps=2, samples=8, every=2),
        model={**DIT, "num_classes": 2},
        data=Data(source=f"folder:{source}", **SPLITS),
        optim=Optim(epochs=1, warmup_epochs=0.0, ema=0.9),
    )
    return Recipe(**{**given, **changes})


def test_texts_and_latents_together(tmp_path, monkeypatch, trained, pictures):
    monkeypatch.chdir(trained.parent)  # the autoencoder is named from here
    task = Generate(**{**vars(TASK), "autoencoder": "latents"})
    one = drawing(pictures, trained, task=task, model=DIT)
    run = run_task_test(one, tmp_path / "drawn", monkeypatch, source=False, whole=False, exported=False)
    assert metadata_of(run.model)[AUTOENCODER] == str(trained.resolve())
    monkeypatch.chdir("/")
    images = keras_vit.sample(run.model, ["a red image", None], steps=2)
    assert images.shape == (2, 8, 8, 3) and images.std() > 0
    assert set(keras_vit.evaluate(run)[run.file]) == {"thumbnail_frechet"}


def arrays():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (8, 8, 8, 3)).astype("uint8"), np.arange(8) % 2


def test_a_run_in_latents_of_another_scale_is_another_run(tmp_path, trained):
    one, data = drawing("x", trained), {"train": arrays(), "validation": arrays()}
    keras_vit.fit(one, tmp_path / "run", **data, verbose=0)
    model = keras_vit.from_pretrained(trained)
    metadata_of(model)[SCALE]["scaling_factor"] *= 2
    model.save(trained / "model.keras")  # the same weights
    with pytest.raises(ValueError, match="a run on other data.*teacher_scale"):
        keras_vit.fit(one, tmp_path / "run", **data, verbose=0)
    drawing_model = keras_vit.from_pretrained(tmp_path / "run")
    with pytest.raises(ValueError, match="was trained in latents of the scale and shift .* Was it trained again"):
        keras_vit.sample(drawing_model, [0], steps=1)
    with pytest.raises(ValueError, match="was trained in latents of the scale and shift"):
        keras_vit.evaluate(tmp_path / "run", arrays=arrays())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"augment": Augment(flip=True)}, "Compress cuts images out .* must be 'window'. Received: augment.crop=None"),
        ({"model": {**MODEL, "pooling": "gap"}}, "pooling"),
        ({"model": {k: v for k, v in MODEL.items() if k != "image_size"}}, "Compress needs model.image_size"),
        ({"model": {**MODEL, "image_size": 7}}, "must be a multiple of 2. Received: image_size=7"),
        ({"model": {**MODEL, "image_size": 10}}, "10 x 10 pixels or more, the model's image_size. Received: 16"),
        ({"model": {**MODEL, "dtype": "mixed_float16"}}, "must not be float16"),
        ({"task": Compress(classes=("a",))}, "Compress has no classes. Received"),
        ({"optim": Optim(freeze=1)}, "An autoencoder has no blocks of a Transformer. Received: optim.freeze=1"),
    ],
)
def test_what_does_not_fit_is_named_before_the_run(changes, message, tmp_path, pictures):
    with pytest.raises(ValueError, match=message):
        keras_vit.fit(recipe(pictures, **changes), tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()

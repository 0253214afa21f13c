import dataclasses
import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Augment, Data, Depth, Optim, Recipe
from keras_vit.models.map_heads import head_of
from keras_vit.runs import predictions
from tests.checkpoints.helpers import GOLDEN
from tests.depths import folder
from tests.marks import fuller, slow
from tests.tasks.harness import run_task_test

SMALL = dict(variant="mu/4", image_size=16, depth=2)
PUBLISHED = GOLDEN.parent / "depth" / "depth_anything" / "checkpoint.safetensors"


@slow
@fuller
def test_everything_that_is_done_with_a_task(tmp_path, monkeypatch):
    path = folder(tmp_path / "pairs")
    recipe = Recipe(
        name="depth",
        task=Depth(),
        model=dict(SMALL, dropout=0.1),
        data=Data(source=f"folder:{path}", train="all[:67%]", validation="all[67%:]", test="all[67%:]", batch_size=4),
        augment=Augment(crop="inception", crop_area=0.5, flip=True, rotation=20.0, jitter=0.2),
        optim=Optim(ema=0.9),
    )
    images = sorted((path / "images").iterdir())
    run = run_task_test(recipe, tmp_path, monkeypatch, images[:1])
    predictions.predict(run, images[:3], to=tmp_path / "predicted", json=tmp_path / "a.json")
    for image in images[:3]:
        with (
            Image.open(image) as given,
            Image.open(tmp_path / "predicted" / image.name) as found,
            Image.open(tmp_path / "predicted" / f"{image.stem}.color.png") as colors,
        ):
            assert found.size == colors.size == given.size and found.mode == "I;16" and colors.mode == "RGB"
            assert "inverse depth of any scale and shift = " in found.text["depth"]
            assert np.ptp(np.asarray(found).astype(int)) == 65535
    names = {row["name"] for row in json.loads((tmp_path / "a.json").read_text())}
    assert names == {"width", "height", "smallest relative inverse depth", "largest relative inverse depth"}
    with pytest.raises(FileExistsError, match="exists. Choose another folder"):
        predictions.predict(run, images[:3], to=tmp_path / "predicted")
    picture = run.task.picture(np.zeros((16, 16, 3)), np.ones((16, 16, 1)), {"depths": np.eye(16) + 1})
    assert picture.shape == (16, 3 * 16 + 2, 3)


@slow
def test_meters(tmp_path, eagerly):
    """Millimeters in arrays; the file alone, without its recipe, knows that it says meters."""
    rng = np.random.default_rng(0)
    depth = rng.uniform(1000, 5000, (8, 16, 16)).astype("float32")
    depth[:, :2] = np.nan
    images = (depth[..., None] / 20).repeat(3, -1).clip(0, 255)
    images[np.isnan(images)] = 0
    recipe = Recipe(
        name="meters",
        task=Depth(largest=10.0, unit=0.001),
        model=SMALL,
        data=Data(source="", batch_size=4),
        optim=Optim(epochs=1, xla=False),
    )
    pair = (images, depth)
    model, history = keras_vit.fit(recipe, tmp_path / "run", train=pair, validation=pair, verbose=0)
    assert np.isfinite(history["val_abs_rel"]).all() and head_of(model)["scale"] == 10.0
    (tmp_path / "alone").mkdir()
    model.save(tmp_path / "alone" / "m.keras")
    Image.fromarray(images[0].astype("uint8")).save(tmp_path / "a.png")
    (answer,) = keras_vit.predict(tmp_path / "alone" / "m.keras", tmp_path / "a.png", to=tmp_path / "out")
    found = dict(answer)
    assert 0 <= found["smallest depth in meters"] <= found["largest depth in meters"] <= 10
    with Image.open(tmp_path / "out" / "a.png") as image:
        assert image.text["depth"] == "meters = value / 1000"
        assert abs(np.asarray(image).max() / 1000 - found["largest depth in meters"]) < 1e-3


@slow
def test_a_published_head_is_continued():
    """Its own head, weights and all; another one if its width is asked for."""
    published = keras_vit.from_checkpoint(PUBLISHED, image_size=(28, 42))
    arguments = dict(variant=None, weights=str(PUBLISHED), image_size=(28, 42))
    model = Depth().model(**arguments)
    images = np.random.default_rng(0).uniform(0, 255, (1, 28, 42, 3)).astype("float32")
    np.testing.assert_allclose(np.asarray(model(images)), np.asarray(published(images)), atol=1e-4)
    metric = head_of(Depth(largest=20.0).model(**arguments))
    assert (metric["end"], metric["scale"], metric["filters"]) == ("sigmoid", 20.0, 8)
    assert head_of(Depth(width=4).model(**arguments))["filters"] == 4


def test_heads_fit_their_encoder():
    for more, factors in (
        (dict(SMALL), (1, 0.5, 0.25, 0.125)),
        (dict(SMALL, variant="mu/8", image_size=(32, 48)), (2, 1, 0.5, 0.25)),
        (dict(SMALL, depth=1), (1, 0.5, 0.25, 0.125)),
        (dict(SMALL, stem=((8, 2),), patch_size=4, final_norm=None), (2, 1, 0.5, 0.25)),
    ):
        model = Depth().model(**more)
        assert head_of(model)["factors"] == factors and model.output_shape[1:] == (*model.input_shape[1:3], 1)
        depth = np.asarray(model(np.full((1, *model.input_shape[1:]), 99.0)))
        assert depth.max() > 0  # a ReLU does not begin at 0 everywhere


def test_refused(tmp_path):
    recipe = Recipe(name="x", model=SMALL, task=Depth(), data=Data(source="digits"))
    for changed, pattern in (
        (dict(augment=Augment(mixup=0.2)), "MixUp, CutMix and RandAugment do not change maps of depth"),
        (dict(data=Data(source="digits", resize=32)), "Maps of depth are scored whole"),
    ):
        with pytest.raises(ValueError, match=pattern):
            dataclasses.replace(recipe, **changed).task.check(dataclasses.replace(recipe, **changed))
    with pytest.raises(ValueError, match="has no classes"):
        Depth(classes=("a",)).check()
    with pytest.raises(ValueError, match="Received: both"):
        Depth(largest=3.0, disparity=True).check()
    with pytest.raises(ValueError, match="Depth.largest must be at least"):
        Depth(largest=-1.0)
    for maps, pattern in (
        (np.ones((4, 8, 8)), "of the shape .4, 16, 16., as the images. Received: shape=.4, 8, 8, 1."),
        (-np.ones((4, 16, 16)), "at least 0; 0 and NaN are holes"),
        (np.zeros((4, 16, 16)), "nothing but holes"),
    ):
        pair = (np.zeros((4, 16, 16, 3), "uint8"), maps)
        with pytest.raises(ValueError, match=pattern):
            keras_vit.fit(recipe, tmp_path / "run", train=pair, validation=pair, verbose=0)

"""A model with references, taken through everything that is done with a task."""

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit import config
from keras_vit.config import Augment, Data, Optim, Recipe, Restore
from keras_vit.demo.page import page
from keras_vit.runs import looking, predictions, results
from tests.marks import fuller, slow
from tests.tasks.harness import run_task_test


@slow
@fuller
def test_references(tmp_path, monkeypatch):
    for part in ("images", "references"):
        (tmp_path / "photos" / part).mkdir(parents=True)
    images = [tmp_path / "photos" / "images" / f"{i}.png" for i in range(12)]
    for i, path in enumerate(images):
        pixels = np.random.default_rng(i).integers(0, 256, (9, 9, 3), "uint8")
        image = Image.fromarray(pixels).resize(((44, 48, 70)[i % 3], (44, 60, 50)[i % 3]))
        image.save(path)
        image.rotate(2, Image.Resampling.BICUBIC).save(tmp_path / "photos" / "references" / path.name)
    recipe = Recipe(
        name="references",
        task=Restore(scale=2, reference=True),
        model=dict(variant="mu/4", stem=[[8, 1]], patch_size=4, image_size=8, depth=1, dropout=0.1),
        data=Data(
            source=f"folder:{tmp_path / 'photos'}",
            train="all[:67%]",
            validation="all[67%:]",
            test="all[67%:]",
            batch_size=4,
            resize="window",
        ),
        augment=Augment(crop="window", flip=True),
        optim=Optim(ema=0.9),
    )
    run = run_task_test(recipe, tmp_path, monkeypatch, demo=False)
    own = tmp_path / "photos" / "references"
    for given, count in ((own, 2), (own / "3.png", 1)):
        predictions.predict(run, images[:count], reference=given, to=tmp_path / given.stem)
        with Image.open(tmp_path / given.stem / "0.png") as found, Image.open(images[0]) as image:
            assert found.size == (2 * image.width, 2 * image.height)
            enlarged = image.resize(found.size, Image.Resampling.BICUBIC)
            assert np.abs(np.asarray(found, "float32") - np.asarray(enlarged)).mean() < 20
    for given, error, message in (
        (None, ValueError, "needs a picture with each image: pass `reference`. Received: reference=None"),
        (tmp_path / "none", FileNotFoundError, "There is no file"),
        (tmp_path / "3", ValueError, "must have one reference of the name of each image. Received: 0 for .*1.png"),
    ):
        with pytest.raises(error, match=message):
            predictions.predict(run, images[1:2], reference=given, to=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(ValueError, match="takes references"):
        page(run)
    with pytest.raises(ValueError, match="takes references"):
        looking.explain(run, images[:1])
    with pytest.raises(ValueError, match="takes no reference. Received"):
        predictions.predict("mnist", images[:1], reference=own)
    (tmp_path / "photos" / "references").rename(tmp_path / "photos" / "away")
    made = results.evaluate(run)[run.file]  # now of references that are made of the images
    assert made.keys() == {"psnr", "ssim", "input_psnr"} and made["input_psnr"] > 10
    assert "pictures.png" in {path.name for path in looking.explain(run)}
    assert config.to_dict(run.recipe)["task"]["reference"]

"""A model of several jobs, taken through everything that is done with a task."""

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Augment, Data, Optim, Recipe, Restore
from keras_vit.runs import predictions
from tests.marks import QUICKLY, fuller, slow
from tests.tasks.harness import run_task_test


@slow
@fuller
def test_several_jobs(tmp_path, monkeypatch):
    (tmp_path / "photos" / "images").mkdir(parents=True)
    images = [tmp_path / "photos" / "images" / f"{i}.png" for i in range(12)]
    for i, path in enumerate(images):
        pixels = np.random.default_rng(i).integers(0, 256, (3, 3, 3), "uint8")  # smooth: cubic convolution is near
        Image.fromarray(pixels).resize(((24, 16, 18)[i % 3], (20, 16, 30)[i % 3])).save(path)
    recipe = Recipe(
        name="jobs",
        task=Restore(jobs=("x2", "denoise25", "jpeg40")),
        model=dict(variant="mu/4", stem=[[8, 1]], patch_size=4, image_size=16, depth=1, dropout=0.1),
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
    run = run_task_test(recipe, tmp_path, monkeypatch)
    for job, scale in {"x2": 2, "denoise25": 1}.items():
        predictions.predict(run, images[:1], job=job, to=tmp_path / job)
        with Image.open(tmp_path / job / images[0].name) as found, Image.open(images[0]) as image:
            assert found.size == (scale * image.width, scale * image.height)
            enlarged = image.resize(found.size, Image.Resampling.BICUBIC)
            assert np.abs(np.asarray(found, "float32") - np.asarray(enlarged)).mean() < 20
    with pytest.raises(ValueError, match="`job` must be one of 'x2', 'denoise25', 'jpeg40' .* Received: none"):
        predictions.predict(run, images[:1], to=tmp_path / "none")
    with pytest.raises(ValueError, match="`job` must be one of 'x2', 'denoise25', 'jpeg40'. Received: job='x4'"):
        predictions.predict(run, images[:1], job="x4", to=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    if not QUICKLY:
        assert {"psnr", "psnr x2", "ssim denoise25", "input_psnr jpeg40"} <= {*keras_vit.evaluate(run)[run.file]}
        one = keras_vit.load_run(run.run, job="x2")
        assert one.home == run.home / "x2" and {*keras_vit.evaluate(one)} == {run.file}
        pictures = keras_vit.runs.looking.explain(run)
        assert {path.name for path in pictures} >= {"pictures.png", "curves.png"}

"""Clips and texts in one space, taken through everything that is done with a task."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import ContrastClips
from tests.marks import fuller
from tests.spoken import FRAMES, clips, recipe
from tests.tasks.harness import run_task_test


@fuller
def test_contrast_clips(tmp_path, monkeypatch):
    files = clips(tmp_path / "clips")
    task = ContrastClips(frames=FRAMES, width=16, length=8, text=dict(width=16, depth=1, num_heads=2))
    made = recipe(tmp_path / "clips", task, num_classes=16, pooling="gap")
    trained = run_task_test(made, tmp_path, monkeypatch, files[:2], texts="a red clip")
    assert trained.model.output_shape == (None, 2, 16) and trained.task.gives == "pairs"
    assert trained.about.inputs == {"images": (FRAMES, 8, 8, 3), "texts": (8,)}
    found = keras_vit.zero_shot(trained.model, files[:3], ["a red clip", "a blue clip"])
    assert found.probabilities.shape == (3, 2)
    index = keras_vit.frozen.embed_folder(tmp_path / "clips", trained.model, tmp_path / "clips.npz", projected=True)
    [near] = keras_vit.frozen.nearest(index, "a red clip", 2, model=trained.model, tokens=trained.model)
    [vector] = np.asarray(trained.model.get_layer("text")(trained.ids_of("a red clip", 1)["texts"]))
    [clip] = np.asarray(
        trained.model.get_layer("image")(keras_vit.preprocess(trained.model.get_layer("image"), near[0][0]))
    )
    cosine = vector @ clip / np.linalg.norm(vector) / np.linalg.norm(clip)
    assert near[0][1] == pytest.approx(cosine, abs=1e-4) and near[0][1] >= near[1][1]
    seen = keras_vit.runs.looking.explain(trained, files[:2], tmp_path / "seen", texts="a red clip")
    assert next(path.name for path in seen) == "attention.png" and seen[-1].name == "attention.gif"
    with Image.open(seen[-1]) as animation:
        assert animation.n_frames > 1
    with pytest.raises(ValueError, match="ContrastClips takes a text with each image: pass `texts`"):
        keras_vit.predict(trained.run, files[:1])


def test_a_start_must_be_of_clips(tmp_path):
    task = ContrastClips(
        frames=FRAMES,
        width=16,
        length=8,
        text=dict(width=16, depth=1, num_heads=2),
        words=tuple(keras_vit.learn_words(["a red clip"])),
    )
    model = keras_vit.from_recipe(recipe(tmp_path, task, num_classes=16, pooling="gap"))
    assert model.get_layer("image").input_shape == (None, FRAMES, 8, 8, 3)
    model.save(tmp_path / "towers.keras")
    for frames, fine in ((FRAMES, True), (2, False)):
        further = recipe(tmp_path, ContrastClips(frames=frames, length=8, start=str(tmp_path / "towers.keras")))
        further = dataclasses.replace(further, model={})
        if fine:
            assert keras_vit.from_recipe(further).output_shape == (None, 2, 16)
            continue
        with pytest.raises(ValueError, match="must be a model of clips of 2 frames. Received: '.*', 4 frames"):
            keras_vit.from_recipe(further)

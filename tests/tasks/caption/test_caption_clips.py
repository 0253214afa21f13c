"""Captions of clips, taken through everything that is done with a task."""

import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import CaptionClips, check_recipe
from tests.marks import fuller, slow
from tests.spoken import FRAMES, clips, recipe
from tests.tasks.harness import run_task_test

TEXT = dict(width=16, depth=1, num_heads=2)


@slow
@fuller
def test_caption_clips(tmp_path, monkeypatch):
    files = clips(tmp_path / "clips")
    made = recipe(tmp_path / "clips", CaptionClips(frames=FRAMES, length=8, text=TEXT), num_classes=0, pooling="none")
    trained = run_task_test(made, tmp_path, monkeypatch, files[:2], exported=False)
    assert trained.model.get_layer("image").output_shape == (None, 2 * 4, 32)  # steps of four patches
    written = keras_vit.generate_text(trained.model, files[:3], length=8)
    assert len(written.texts) == 3
    first = next(iter(trained.task.answer(trained.viewer()(keras_vit.preprocess(trained.model, files[:1]))[0])))
    assert first == (written.texts[0] or "(nothing)")
    seen = keras_vit.runs.looking.explain(trained, files[:2], tmp_path / "seen")
    assert next(path.name for path in seen) == "attention.png"
    with pytest.raises(ValueError, match="CaptionClips takes images alone. Received: texts='x'"):
        keras_vit.predict(trained.run, files[:1], texts="x")


def test_what_is_refused(tmp_path):
    made = recipe(tmp_path, CaptionClips(frames=FRAMES, length=8, text=TEXT), pooling="gap")
    with pytest.raises(ValueError, match="The decoder attends to all tokens"):
        check_recipe(made)

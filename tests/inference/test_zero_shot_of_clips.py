"""Clips by a model of images: zero-shot classes, an index of clips, and search by text."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import ContrastClips
from keras_vit.frozen.embedder import Embedder
from keras_vit.models.by_frames import by_frames
from keras_vit.training import devices
from tests.clipfiles import animated
from tests.spoken import clips, recipe
from tests.towers import WORDS, two_towers

NAMES = ["a red cat", "dog"]
CLIPS = np.random.default_rng(0).integers(0, 256, (3, 5, 12, 8, 3), "uint8")


def test_arrays_and_files(tmp_path):
    model = two_towers(words=WORDS)
    found = keras_vit.zero_shot(model, CLIPS, NAMES)
    np.testing.assert_allclose(
        found.probabilities, keras_vit.zero_shot(by_frames(model, 5), CLIPS, NAMES).probabilities
    )
    listed = keras_vit.zero_shot(model, [*CLIPS], NAMES)
    np.testing.assert_array_equal(listed.probabilities, found.probabilities)
    with pytest.raises(ValueError, match="must be one picture; of clips, pass `frames`. Received: shape"):
        keras_vit.zero_shot(model, [CLIPS[0], CLIPS[1][:3]], NAMES)
    one = keras_vit.zero_shot(model, CLIPS[:1], NAMES)  # one clip is no batch of frames
    np.testing.assert_allclose(one.probabilities, found.probabilities[:1], atol=1e-6)
    files = [animated(tmp_path / f"{i}.gif", clip) for i, clip in enumerate(np.repeat(CLIPS, 2, axis=1))]
    taken = keras_vit.zero_shot(model, files, NAMES, frames=5)  # every second of ten
    assert taken.probabilities.shape == (3, 2) and taken.kind == "softmax"
    still = np.repeat(CLIPS[:, :1], 5, axis=1)  # a clip of one frame is what the frame is as an image
    images = keras_vit.zero_shot(model, CLIPS[:, 0], NAMES).probabilities
    np.testing.assert_allclose(keras_vit.zero_shot(model, still, NAMES).probabilities, images, atol=1e-5)
    with pytest.raises(ValueError, match="frames"):
        keras_vit.zero_shot(model, files, NAMES, frames=0)
    with pytest.raises(ValueError, match="Received: .*a model of clips"):
        keras_vit.zero_shot(by_frames(model, 5), files, NAMES, frames=5)


def test_clips_of_two_sizes_and_lengths(tmp_path):
    """Each is brought to the model's size and number of frames alone."""
    rng, model = np.random.default_rng(1), two_towers(words=WORDS)
    shapes = ((3, 20, 10, 3), (7, 12, 30, 3))
    files = [animated(tmp_path / f"{i}.gif", rng.integers(0, 256, shape, "uint8")) for i, shape in enumerate(shapes)]
    both = keras_vit.zero_shot(model, files, NAMES, frames=4).probabilities
    each = [keras_vit.zero_shot(model, [file], NAMES, frames=4).probabilities[0] for file in files]
    np.testing.assert_allclose(both, each, atol=1e-6)


def test_a_classifier_of_clips(tmp_path):
    model = two_towers(words=WORDS)
    classifier = keras_vit.zero_shot_classifier(by_frames(model, 5), NAMES)
    classifier.save(tmp_path / "classifier.keras")
    run = keras_vit.load_run(tmp_path / "classifier.keras")
    assert run.class_names == tuple(NAMES) and run.task.clips.segments and run.task.clips.frames == 5
    file = animated(tmp_path / "clip.gif", CLIPS[0])
    [answer] = keras_vit.predict(run, [file])
    expected = keras_vit.zero_shot(model, [file], NAMES, frames=5).probabilities[0]
    np.testing.assert_allclose([dict(answer)[name] for name in NAMES], expected, atol=1e-5)


def test_an_index_of_clips(tmp_path):
    files, model = clips(tmp_path / "clips", 8), two_towers(words=WORDS)
    model.save(tmp_path / "towers.keras")
    made = keras_vit.embed_folder(tmp_path / "clips", tmp_path / "towers.keras", tmp_path / "clips.npz", frames=3)
    index = keras_vit.load_index(made)
    assert index.vectors.shape == (8, 5) and index.about["frames"] == 3 and index.projection is None
    [near] = keras_vit.nearest(index, "a red cat", 8, model=tmp_path / "towers.keras", tokens=WORDS)
    shares = keras_vit.zero_shot(model, [near[0][0], near[-1][0]], NAMES, prompts="{}", frames=3)
    assert shares.probabilities.shape == (2, 2) and near[0][1] > near[-1][1]
    [again] = keras_vit.nearest(index, files[:1], 1)  # by the model that the index names
    assert again[0] == (str(files[0].resolve()), pytest.approx(1, abs=1e-5))
    same = Embedder(model, frames=3)([np.zeros((4, 12, 8, 3))])
    assert same.shape == (1, 5)
    with pytest.raises(FileExistsError, match="differs in"):
        keras_vit.embed_folder(tmp_path / "clips", model, tmp_path / "clips.npz", frames=4)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="There is no clip in the folder"):
        keras_vit.embed_folder(tmp_path / "empty", model, tmp_path / "none.npz", frames=4)
    with pytest.raises(ValueError, match="Vectors of patches are not averaged over frames"):
        Embedder(model, tokens=True, frames=3)


def test_towers_of_images_are_trained_on_clips(tmp_path, monkeypatch):
    """Without a step they are the model by frames; a run keeps how its frames are sampled."""
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    files, model = clips(tmp_path / "clips", 16), two_towers(words=WORDS)
    model.save(tmp_path / "towers.keras")
    made = recipe(tmp_path / "clips", ContrastClips(frames=5, length=8, start=str(tmp_path / "towers.keras")))
    made = dataclasses.replace(made, model={})
    made = keras_vit.config.override(made, {"optim.learning_rate": 0.0, "optim.epochs": 1, "optim.weight_decay": 0.0})
    trained, _ = keras_vit.fit(made, tmp_path / "run", verbose=0)
    run = keras_vit.load_run(tmp_path / "run")
    clip = keras_vit.preprocess(trained.get_layer("image"), files[:2])
    expected = np.asarray(by_frames(model, 5).get_layer("image")(clip))
    np.testing.assert_allclose(np.asarray(run.model.get_layer("image")(clip)), expected, atol=1e-5)
    assert keras_vit.evaluate(run) and keras_vit.predict(run, files[:2], texts="a red cat")
    with pytest.raises(ValueError, match="must see all frames of a clip at once"):
        keras_vit.runs.looking.explain(run, files[:1], tmp_path / "seen", texts="a red cat")

import dataclasses

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.config import Segment
from keras_vit.models.open_segmenter import with_pairs
from keras_vit.utils.keras_private import sublayers
from tests import clipsegs
from tests.marks import slow, slow_on_jax
from tests.towers import LENGTH, WORDS, two_towers

pytestmark = pytest.mark.backend
FILM = {"kind": "film", "width": 8, "num_heads": 2, "mlp_dim": 16}
NEW = Segment(text=True, length=6, vocabulary=20, head=FILM, tower=dict(width=12, depth=1, num_heads=2))
STARTED = Segment(text=True, length=LENGTH)
RNG = np.random.default_rng(0)
IDS = np.array([[2, 5, 7, 1, 0, 0, 0, 0], [2, 9, 1, 0, 0, 0, 0, 0]], "int32")


def images(side):
    return RNG.integers(0, 256, (2, side, side, 3)).astype("float32")


def seen(image):
    """Returns the names of the blocks whose tokens a nested image tower returns."""
    names = {id(layer.output): layer.name for layer in image.layers}
    return [names[id(x)] for x in image.outputs[1:]]


@slow_on_jax
def test_new_towers_and_a_new_decoder():
    model = NEW.model(variant="mu/4", image_size=(16, 8), depth=6)
    image, text, decoder = map(model.get_layer, ("image", "text", "decoder"))
    assert model.output_shape == (None, 16, 8, 1) and model.output.dtype == "float32"
    assert decoder.pairs and decoder.grid == (4, 2) and decoder.units == text.output_shape[-1] == 12
    assert seen(image) == ["block_1", "block_3", "block_5"]
    shallow = NEW.model(variant="mu/4", image_size=8, depth=1).get_layer("image")
    assert len(shallow.outputs) == 2
    chosen = dataclasses.replace(NEW, head={**FILM, "blocks": [0, 2]})
    image = chosen.model(variant="mu/4", image_size=8, depth=3).get_layer("image")
    assert seen(image) == ["block_0", "block_2"]
    stem = NEW.model(variant=None, image_size=16, stem=((8, 2), (16, 2)), patch_size=1, width=16, depth=1, num_heads=2)
    assert stem.get_layer("decoder").patch_size == 4 and stem.output_shape == (None, 16, 16, 1)


@slow_on_jax
def test_all_that_is_trained_has_a_gradient():
    model = NEW.model(variant="mu/4", image_size=8, depth=4)
    learner = NEW.learner(model)
    inputs = {"images": images(8), "texts": IDS[:, :6]}
    np.testing.assert_allclose(np.asarray(learner(inputs)), np.asarray(model(inputs)), atol=1e-6)
    known = {id(v) for v in learner.trainable_variables}
    lacking = [v.path for v in model.trainable_variables if id(v) not in known]
    assert lacking == ["norm/gamma", "norm/beta"]  # after the last block that a mask depends on
    before = [np.asarray(v) for v in learner.trainable_variables]
    learner.compile(keras.optimizers.SGD(10.0), **NEW.compiled(None))
    learner.train_on_batch(inputs, np.eye(8, dtype="uint8")[None, ..., None].repeat(2, 0))
    still = [v.path for v, old in zip(learner.trainable_variables, before) if np.array_equal(np.asarray(v), old)]
    assert not [path for path in still if not path.endswith("bias")]


@slow
def test_the_decoder_of_a_clipseg_is_trained_further(tmp_path):
    clipsegs.folder_of(tmp_path)
    model = STARTED.model(weights=str(tmp_path), image_size=clipsegs.SIDE, channels=3, name="x")
    whole = clipsegs.shared()
    inputs = {"images": images(clipsegs.SIDE), "texts": IDS}
    wanted = np.asarray(whole(inputs))  # (images, height, width, texts)
    wanted = np.stack([wanted[0, ..., 0], wanted[1, ..., 1]])[..., None]
    np.testing.assert_allclose(np.asarray(model(inputs)), wanted, atol=1e-4)
    keras_vit.freeze(model, "all")
    trained = {v.path.partition("/")[0] for v in STARTED.learner(model).trainable_variables}
    assert trained == {"decoder"} and model.get_layer("decoder").trainable_variables
    model.save(tmp_path / "run.keras")
    again = STARTED.model(weights=str(tmp_path / "run.keras"), image_size=clipsegs.SIDE)
    np.testing.assert_allclose(np.asarray(again(inputs)), np.asarray(model(inputs)), atol=1e-6)
    assert all(layer.trainable for layer in sublayers(again))
    whole = keras_vit.from_pretrained(tmp_path / "run.keras")
    np.testing.assert_allclose(np.asarray(with_pairs(whole, True)(inputs)), np.asarray(model(inputs)), atol=1e-6)
    keras_vit.load_weights(model, tmp_path / "run.keras")


@slow_on_jax
def test_towers_get_a_new_decoder(tmp_path):
    towers = two_towers(words=WORDS)
    towers.save(tmp_path / "towers.keras")
    task = dataclasses.replace(STARTED, head=FILM)
    model = task.model(weights=str(tmp_path / "towers.keras"), image_size=(12, 8))
    assert model.output_shape == (None, 12, 8, 1) and seen(model.get_layer("image")) == ["block_0"]
    for tower in ("image", "text"):
        values = zip(model.get_layer(tower).get_weights(), towers.get_layer(tower).get_weights(), strict=True)
        assert all(np.array_equal(*pair) for pair in values)
    clipsegs.folder_of(tmp_path)
    model = task.model(weights=str(tmp_path), image_size=16, head="new")
    assert model.get_layer("decoder").width == 8 and model.get_layer("decoder").patch_size == 8
    image = model.get_layer("image")
    assert seen(image) == ["block_0", "block_1", "block_2"]
    assert image.outputs[0].shape == (None, clipsegs.UNITS)  # for examples in place of texts


@slow_on_jax
def test_weights_of_an_image_tower_alone(tmp_path):
    keras_vit.vit("mu/4", image_size=8, depth=2, num_classes=3).save(tmp_path / "vit.keras")
    model = NEW.model(variant="mu/4", weights=str(tmp_path / "vit.keras"), image_size=16, depth=2)
    trained = keras.models.load_model(tmp_path / "vit.keras").get_layer("block_1").get_weights()
    found = model.get_layer("image").get_layer("block_1").get_weights()
    assert model.output_shape == (None, 16, 16, 1) and all(map(np.array_equal, found, trained))
    model.save(tmp_path / "described.keras")
    again = NEW.model(variant="mu/4", weights=str(tmp_path / "described.keras"), image_size=16, depth=2)
    found = again.get_layer("image").get_layer("block_1").get_weights()
    assert all(map(np.array_equal, found, trained))
    assert not np.array_equal(*(each.get_layer("text").get_weights()[0] for each in (model, again)))


@slow
def test_weights_that_do_not_fit(tmp_path):
    clipsegs.folder_of(tmp_path)
    two_towers(words=WORDS).save(tmp_path / "towers.keras")
    keras_vit.vit("mu/4", image_size=8).save(tmp_path / "vit.keras")
    size = dict(weights=str(tmp_path), image_size=clipsegs.SIDE)
    towers = dict(weights=str(tmp_path / "towers.keras"))
    calls = [
        (dataclasses.replace(STARTED, length=9), size, "as in model.weights, 8. Received: task.length=9"),
        (STARTED, {**size, "channels": 1}, "the channels of model.weights, 3. Received: channels=1"),
        (dataclasses.replace(STARTED, head=FILM), size, "set model.head='new' for another. Received: task.head="),
        (STARTED, {**towers, "image_size": 16}, r"in model.weights, \(12, 8\). Received: image_size=16"),
        (STARTED, {**towers, "head": "require"}, "must have a decoder of masks. Received: .*towers.keras"),
        (dataclasses.replace(STARTED, words=("<pad>",)), towers, "must be those of the model to start from, 12"),
        (dataclasses.replace(STARTED, words=tuple(WORDS)), size, "own, by the rules of 'clip'. Received: those of"),
        (STARTED, dict(weights=str(tmp_path / "vit.keras")), "must have an image tower, and a text tower"),
        (STARTED, {**towers, "dtype": "mixed_bfloat16"}, "are as they were saved.*dtype='mixed_bfloat16'"),
    ]
    for task, arguments, message in calls:
        with pytest.raises(ValueError, match=message):
            task.model(**arguments)


def test_models_that_do_not_fit():
    model = dict(variant="mu/4", image_size=8, depth=2)
    calls = [
        (NEW, {**model, "pooling": "gap"}, "A segmenter's head is the task's"),
        (dataclasses.replace(NEW, head={**FILM, "blocks": [0, 2]}), model, r"from 0 to 1. Received: \[0, 2\]"),
        (
            dataclasses.replace(NEW, head={**FILM, "refined": True}),
            model,
            r"of patches of 16 .* Received: masks of \(2, 2\)",
        ),
        (NEW, {**model, "patch_size": (4, 2)}, r"square patches .* Received: \(2, 4\) patches on \(8, 8\)"),
        (NEW, {**model, "tokens": {"windows": 2}}, "in the order of their patches. Received: tokens in windows"),
    ]
    for task, arguments, message in calls:
        with pytest.raises(ValueError, match=message):
            task.model(**arguments)

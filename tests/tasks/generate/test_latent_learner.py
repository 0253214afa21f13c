import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow as tf

import keras_vit
from keras_vit.config import Augment, Data, Generate, Optim, Recipe
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.tasks.generate.latent_learner import LatentLearner
from tests import latents
from tests.latents import gray
from tests.marks import fuller
from tests.tasks.harness import run_task_test

MODEL = dict(variant=None, image_size=4, channels=4, patch_size=2, width=16, depth=1, num_heads=2, num_classes=10)
IMAGES = tf.constant(np.random.default_rng(0).uniform(0, 255, (4, 8, 8, 1)), "float32")
LABELS = tf.constant([0, 2, 1, 0], "int64")


@pytest.fixture
def autoencoder(tmp_path):
    return gray(tmp_path / "vae")


def recipe(autoencoder, **changes):
    given = dict(
        name="drawn",
        task=Generate(autoencoder=str(autoencoder), steps=2, samples=8, every=2),
        model=MODEL,
        data=Data(source="digits", batch_size=16, limit=32),
        optim=Optim(ema=0.9),
    )
    return Recipe(**{**given, **changes})


def given(task, seed=(1, 2)):
    examples = task.prepare({"images": IMAGES, "labels": LABELS}, tf.constant(seed))
    return examples, task.batch(examples, None, tf.constant(seed))


def test_what_is_learned_leads_from_noise_to_the_latent(autoencoder):
    task = dataclasses.replace(recipe(autoencoder).task, classes=tuple("0123456789"))
    model = task.model(**MODEL)
    assert task.data_shape((4, 4, 4)) == (8, 8, 1) and model.get_layer("rescale").metadata[AUTOENCODER] == str(
        autoencoder
    )
    encoder = task.teacher_for(model)
    learner = task.learner(model, encoder)
    examples, (x, y) = given(task)
    assert examples["images"].shape == (4, 4, 4, 4) and examples["originals"].shape == (4, 8, 8, 1)
    mean, log = np.split(np.asarray(encoder(IMAGES)), 2, axis=-1)
    latent = mean + np.exp(log / 2) * x["spread"]
    seen = []

    def velocity(inputs, training=None):
        seen.append(inputs)
        return tf.concat([latent - x["images"], 9 + 0 * x["images"]], -1)  # the true one, and its variance

    with_truth = LatentLearner(model, encoder)
    with_truth.dit = velocity
    np.testing.assert_allclose(with_truth(x), y, atol=1e-5)
    t = x["times"].numpy()[:, None, None, None]
    np.testing.assert_allclose(seen[0]["images"], (1 - t) * x["images"] + t * latent, atol=1e-5)
    assert not encoder.trainable_weights and len(learner.trainable_variables) == len(model.trainable_variables)
    again = given(task)[1][0]
    np.testing.assert_array_equal(again["spread"], x["spread"])
    assert (given(task, (1, 3))[1][0]["spread"] != x["spread"]).numpy().any()
    assert np.std(x["spread"].numpy() - x["images"].numpy()) > 1  # two noises


@fuller
def test_generate_in_latents(tmp_path, monkeypatch, autoencoder):
    run = run_task_test(recipe(autoencoder), tmp_path, monkeypatch, source=False)
    images = keras_vit.sample(run.model, ["3", None], steps=2)
    assert images.shape == (2, 8, 8, 1) and images.std() > 0
    assert set(keras_vit.evaluate(run)[run.file]) == {"thumbnail_frechet"}


def test_a_trained_task_knows_where_its_autoencoder_was():
    """Whatever the folder is from which it is asked later."""
    task = recipe("vae").task
    assert task.of_model(keras_vit.dit(**MODEL, metadata={AUTOENCODER: "/there/vae"})).autoencoder == "/there/vae"
    assert task.of_model(keras_vit.dit(**MODEL)) == task


def test_color_jitter_is_of_images(tmp_path):
    """Which have other channels than the latents."""
    from keras_vit.data import pipeline
    from keras_vit.data.memory import Source

    task = Generate(autoencoder=str(latents.GOLDEN / "checkpoint.safetensors"), classes=("a", "b"))
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3)).astype("uint8")
    source = Source(images, {"labels": np.array([0, 1, 0, 1], "int32")}, ("a", "b"))
    one = recipe("x", task=task, augment=Augment(jitter=0.4), data=Data(source="digits", batch_size=4))
    x, y = next(iter(pipeline.training_batches(source, one, (4, 4, 4))))
    assert x["pixels"].shape == (4, 8, 8, 3) and y.shape == (4, 4, 4, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": {**MODEL, "channels": 3}},
            "model.channels must be 4, those of the autoencoder's latents.* Received: 3",
        ),
        ({"model": {k: v for k, v in MODEL.items() if k != "channels"}}, "needs model.channels, those of the latents"),
        ({"task": Generate(autoencoder="nowhere")}, "There is no file or folder 'nowhere'"),
    ],
)
def test_what_does_not_fit_is_named_before_the_run(changes, message, tmp_path, autoencoder):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        keras_vit.fit(recipe(autoencoder, **changes), tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()


def test_another_teacher_is_refused(autoencoder):
    task = recipe(autoencoder).task
    with pytest.raises(ValueError, match="Generate takes no teacher. Received"):
        task.teacher_for(None, task.model(**MODEL))

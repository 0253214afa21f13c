"""Layers of Keras, and of the real KerasCV where it is installed, in the training pipeline."""

import os
import pathlib
import random
import subprocess
import sys

import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Augment, Classify, Data, Optim, Recipe  # noqa: E402
from keras_vit.data import pipeline  # noqa: E402
from keras_vit.data.augment import keras_layers  # noqa: E402
from keras_vit.data.sources import Source  # noqa: E402
from tests.marks import few, slow  # noqa: E402

RNG = np.random.default_rng(0)
PIXELS = np.clip(RNG.normal(0, 20, (24, 32, 32, 3)) + np.linspace(20, 220, 32)[:, None, None], 0, 255).astype("uint8")
SOURCE = Source(PIXELS, {"labels": (np.arange(24) % 3).astype("int32")}, ("a", "b", "c"))
LETTERS = Classify(classes=("a", "b", "c"))
RECIPE = Recipe(name="x", model={}, task=LETTERS, data=Data(batch_size=4), optim=Optim(epochs=2))
L = keras.layers
KERAS = {
    "RandAugment": lambda: L.RandAugment(),
    "AugMix": lambda: L.AugMix(),
    "RandomFlip": lambda: L.RandomFlip(),
    "RandomRotation": lambda: L.RandomRotation(0.2),
    "a seed": lambda: L.RandomRotation(0.2, seed=3),
    "RandomErasing": lambda: L.RandomErasing(),
    "RandomColorJitter": lambda: L.RandomColorJitter((0, 255), brightness_factor=0.3, contrast_factor=0.3),
    "Pipeline": lambda: L.Pipeline([L.RandomZoom(0.2), L.RandomTranslation(0.1, 0.1)]),
    "Sequential": lambda: keras.Sequential([L.RandomFlip(), L.RandomRotation(0.1, seed=1)]),
    "no randomness": lambda: L.Equalization(),
}


def batches(*layers, epoch=0, step=0, seed=1):
    recipe = Recipe(**{**vars(RECIPE), "augment": Augment(layers=layers), "seed": seed})
    dataset = pipeline.training_batches(SOURCE, recipe, (32, 32, 3), first_epoch=epoch, first_step=step)
    return np.stack([images for images, _ in dataset.as_numpy_iterator()])


def draws_by_position_alone(make):
    """Checks layers that `make` returns, one after the other: the first difference shows in all later pixels."""
    random.seed(1)
    layers = make()
    whole = batches(*layers)
    assert whole.shape == (12, 4, 32, 32, 3) and whole.dtype == np.float32
    assert (whole != batches()).any(axis=(2, 3, 4)).mean() > 0.5
    np.testing.assert_array_equal(batches(*layers), whole)  # after the layers have drawn
    random.seed(2)
    tf.random.set_seed(2)
    np.testing.assert_array_equal(batches(*make(), epoch=1, step=3), whole[9:])  # others of their kind, resumed


@slow
@few(1)
@pytest.mark.parametrize(
    "names", [["RandAugment"], ["AugMix"], [n for n in KERAS if n not in ("RandAugment", "AugMix")]]
)
def test_layers_of_keras(names):
    draws_by_position_alone(lambda: [KERAS[name]() for name in names])


def test_layers_draw_apart_from_each_other_and_anew_for_each_batch_and_seed():
    noise = lambda: L.RandomBrightness(0.5, seed=1)  # noqa: E731 - the same seed each time
    flat = Source(np.full((24, 32, 32, 3), 100, "uint8"), SOURCE.targets, SOURCE.class_names)

    def shifts(layers, seed=1):
        changed = Recipe(**{**vars(RECIPE), "augment": Augment(layers=layers), "seed": seed})
        found = pipeline.training_batches(flat, changed, (32, 32, 3), first_epoch=0).as_numpy_iterator()
        return np.array([images[0, 0, 0, 0] - 100 for images, _ in found])

    one, two = shifts((noise(),)), shifts((L.Identity(), noise()))
    assert len(set(one)) == 12 and not set(one) & set(shifts((noise(),), seed=2))
    np.testing.assert_array_equal(one, two)  # the layer between draws nothing
    second = shifts((noise(), noise())) - one
    assert (np.abs(second - one) > 1e-3).all() and (np.abs(second[:-1] - one[1:]) > 1e-3).all()


def test_every_generator_is_found_once():
    layer = L.Pipeline([L.RandomFlip(), L.RandomRotation(0.1)])
    layer.own = keras.random.SeedGenerator(3)
    assert len(keras_layers.seed_generators([layer, layer])) == 3


def test_python_s_random_is_left_as_it_was():
    layer, before = L.AugMix(), random.getstate()
    batches(layer)
    assert random.getstate() == before


@pytest.mark.parametrize("name", ["RandAugment", "RandomFlip", "RandomChoice"])
def test_layers_of_keras_cv_work_and_say_that_they_do_not_resume(name):
    cv = pytest.importorskip("keras_cv", reason="KerasCV is not installed: pip install keras-cv").layers
    make = {"RandAugment": lambda: cv.RandAugment((0, 255)), "RandomFlip": lambda: cv.RandomFlip(seed=1),
            "RandomChoice": lambda: cv.RandomChoice([cv.RandomFlip(), cv.RandomRotation(0.2)])}[name]  # fmt: skip
    with pytest.warns(UserWarning, match="has no keras.random.SeedGenerator"):
        found = batches(make())
    assert found.shape == (12, 4, 32, 32, 3) and (found != batches()).any(axis=(2, 3, 4)).mean() > 0.3


def test_what_cannot_be_used_is_refused():
    with pytest.raises(TypeError, match="must contain Keras layers. Received: <function"):
        batches(lambda images: images)
    for layer in (L.MixUp(name="mine"), keras.Sequential([L.CutMix()], name="mine")):
        with pytest.raises(ValueError, match="Augment.mixup or Augment.cutmix. Received: 'mine'"):
            batches(layer)
    for layer in (L.Rescaling(1 / 255, name="mine"), keras.Sequential([L.Resizing(4, 4, name="mine")])):
        with pytest.raises(ValueError, match="the model rescales pixels, .* Received: Res.*ing 'mine'"):
            batches(layer)


PLACES = np.zeros((8, 32, 32, 1), "uint8")
PLACES[:, 4:20, 6:15], PLACES[:, 22:28, 20:30] = 1, 2
EXACT = {
    "RandomFlip": lambda: L.RandomFlip(),
    "RandomRotation": lambda: L.RandomRotation(0.2),
    "RandomTranslation": lambda: L.RandomTranslation(0.2, 0.2, fill_mode="constant"),
    "RandomZoom": lambda: L.RandomZoom(0.3),
    "RandomShear": lambda: L.RandomShear(0.3, 0.3),
    "RandomPerspective": lambda: L.RandomPerspective(1.0, 0.5),
    "RandomErasing": lambda: L.RandomErasing(),
    "RandomContrast": lambda: L.RandomContrast(0.4),
    "RandAugment": lambda: L.RandAugment(),
    "Pipeline": lambda: L.Pipeline([L.RandomFlip(), keras.Sequential([L.RandomRotation(0.1)])]),
}


def with_masks(*layers):
    function = keras_layers.layers_function(layers, 1, ("images", "segmentation_masks"))
    examples = {"images": tf.constant(PLACES.repeat(3, -1) * 100.0), "segmentation_masks": tf.constant(PLACES)}
    at = tf.constant([[0, 0]] * 8, "int64")
    found = tf.data.Dataset.from_tensors((examples, at)).map(function).get_single_element()[0]
    return found["images"].numpy(), found["segmentation_masks"].numpy()


@pytest.mark.parametrize("name", EXACT)
def test_masks_keep_their_values(name):
    images, masks = with_masks(EXACT[name]())
    assert masks.dtype == np.uint8 and set(np.unique(masks)) <= {0, 1, 2, 255}
    if name in ("RandomErasing", "RandomContrast"):
        np.testing.assert_array_equal(masks, PLACES)
    elif name != "RandAugment":  # whose colors hide where it moved
        assert (masks != PLACES).any()
        known = np.round(images[..., :1]) == images[..., :1]  # not blended
        same = np.where(masks == 255, 0, masks)[known] * 100 == images[..., :1][known]
        assert known.mean() > 0.75 and same.mean() > 0.98
    assert (masks == 255).any() == (name in ("RandomTranslation", "RandomPerspective"))  # 255 where nothing was


def test_layers_that_cannot_change_masks_are_refused():
    for layer in (L.AugMix(), L.RandomGrayscale(), L.Identity(), keras.Sequential([L.AugMix()])):
        with pytest.raises(ValueError, match="leave their values as they are. Received: (AugMix|RandomGr|Identity)"):
            with_masks(layer)
    with pytest.raises(ValueError, match="fill_value=0 where there are segmentation masks. Received: fill_value=9"):
        with_masks(L.RandomZoom(0.3, fill_mode="constant", fill_value=9))


def test_layers_that_move_anything_are_refused_where_there_are_boxes():
    keras_layers.check_layers([L.RandomContrast(0.2), keras.Sequential([L.RandomGaussianBlur()])], ("bounding_boxes",))
    for layer in (L.RandomFlip(), keras.Sequential([L.RandomBrightness(0.1), L.RandomZoom(0.1)]), L.AugMix()):
        with pytest.raises(ValueError, match="are bounding boxes; .* Received: (RandomFlip|RandomZoom|AugMix)"):
            keras_layers.check_layers([layer], ("bounding_boxes",))
    with pytest.raises(ValueError, match="are instance masks; Augment's own .* Received: RandomFlip"):
        keras_layers.check_layers([L.RandomBrightness(0.1), L.RandomFlip()], ("images", "instance_masks"))


@slow
def test_layers_of_keras_on_jax():
    pytest.importorskip("jax")
    script = (
        "import keras; assert keras.backend.backend() == 'jax'\n"
        f"from {__name__} import KERAS, draws_by_position_alone\n"
        "draws_by_position_alone(lambda: [KERAS['Pipeline']()])"
    )
    run = [sys.executable, "-c", script]
    settings = {"cwd": pathlib.Path(__file__).parents[3], "env": {**os.environ, "KERAS_BACKEND": "jax"}}
    done = subprocess.run(run, capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stderr

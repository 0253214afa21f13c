import dataclasses
import types

import keras
import numpy as np
import pytest

from keras_vit.config import Augment, Data, Optim, Recipe
from keras_vit.tasks import Classify, Restore
from tests.marks import EAGERLY, slow_on_jax

pytestmark = pytest.mark.backend

SMALL = dict(variant="mu/4", stem=((8, 1, 1), (8, 1)), patch_size=4, image_size=(8, 12), depth=2)
TASK = Restore(scale=2, luma=True, head_depth=1)
RNG = np.random.default_rng(0)
IMAGES, ORIGINALS = (RNG.integers(0, 256, (2, n, 12 * n // 8, 3)).astype("float32") for n in (8, 16))


@slow_on_jax
def test_starts_as_cubic_convolution_and_learns(tmp_path):
    model = TASK.model(**SMALL)
    assert model.output_shape == (None, 16, 24, 3) and model.output.dtype == "float32"
    assert not any("norm" in v.path for v in model.get_layer("stem").weights)
    enlarged = [TASK._enlarged(image) for image in IMAGES]
    np.testing.assert_allclose(np.asarray(model(IMAGES)), enlarged, atol=1e-3)
    model.compile(keras.optimizers.Adam(1e-2), **TASK.compiled(None), run_eagerly=EAGERLY)
    x, y = TASK.batch({"images": IMAGES, "originals": ORIGINALS}, None, (0, 0))
    logs = [model.train_on_batch(x, y, return_dict=True) for _ in range(4)]
    assert logs[3]["loss"] < logs[0]["loss"] and logs[0]["psnr"] > 0
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(IMAGES)), np.asarray(model(IMAGES)))
    started = TASK.model(**SMALL, weights=tmp_path / "model.keras", head="require")
    np.testing.assert_allclose(np.asarray(started(IMAGES)), np.asarray(model(IMAGES)), atol=1e-3)
    with pytest.warns(UserWarning, match="model.keras' has a head of other shapes: the encoder is loaded"):
        deeper = dataclasses.replace(TASK, head_depth=3).model(**SMALL, weights=tmp_path / "model.keras")
    np.testing.assert_allclose(np.asarray(deeper(IMAGES)), enlarged, atol=1e-3)
    assert np.array_equal(deeper.get_layer("block_0").weights[2], model.get_layer("block_0").weights[2])


@slow_on_jax
@pytest.mark.parametrize(
    "task, channels, stem, shape",
    [
        (Restore(noise=5.0), 3, ((8, 2),), (8, 12, 3)),
        (Restore(scale=3), 1, ((8, 1),), (24, 36, 1)),
        (Restore(gray=True), 1, ((8, 1),), (8, 12, 3)),
    ],
)
def test_shapes_of_other_tasks(task, channels, stem, shape):
    model = task.model(**{**SMALL, "patch_size": 2, "stem": stem, "channels": channels})
    assert model.output_shape == (None, *shape) == (None, *task.data_shape(model.input_shape[1:]))
    assert model(IMAGES[..., :channels]).shape == (2, *shape)


def test_data_are_degraded_for_training():
    pytest.importorskip("tensorflow")
    examples = TASK.prepare({"images": ORIGINALS}, (0, 1))
    np.testing.assert_array_equal(examples["originals"], ORIGINALS)
    assert examples["images"].shape == (2, 8, 12, 3)
    assert TASK.batch(examples, None, (0, 1)) == (examples["images"], examples["originals"])


def source(*sizes):
    return types.SimpleNamespace(sizes=lambda: [(f"{i}.png", size) for i, size in enumerate(sizes)])


def test_small_images_are_named():
    arguments = {**SMALL, "channels": 3}
    assert TASK.on(source((16, 24), (90, 24)), arguments) == TASK
    with pytest.raises(
        ValueError, match="16 x 24 pixels or more, .* Received: 1 smaller ones, such as '1.png' of 15 x 90"
    ):
        TASK.on(source((16, 24), (15, 90)), arguments)


def test_what_is_scored():
    pytest.importorskip("skimage")
    made = [Restore(scale=2), Restore(noise=1.0), Restore(noise=1.0, luma=True), Restore(gray=True), TASK]
    assert [(one.tally().of_luma, one.tally().border) for one in made] == [
        (True, 2), (False, 0), (True, 0), (False, 0), (True, 2)
    ]  # fmt: skip


def test_arrays_may_be_larger_than_the_windows(tmp_path):
    pytest.importorskip("tensorflow")
    from keras_vit.training.fit import datasets

    small = recipe(data=Data(resize="window", batch_size=2), optim=Optim(epochs=1, xla=False))
    images = RNG.integers(0, 256, (2, 21, 40, 3), "uint8")
    train, validation = datasets(small, train=(images,), validation=(images,))
    for data in (train, validation):
        x, y = next(iter(data))
        assert x.shape == (2, 8, 12, 3) and y.shape == (2, 16, 24, 3)
    np.testing.assert_array_equal(y, images[:, 2:18, 8:32])
    with pytest.raises(ValueError, match="Received: 1 smaller ones, such as 'images' of 15 x 40"):
        datasets(small, train=(images[:, :15],), validation=(images,))


def test_answers_and_pictures():
    pytest.importorskip("skimage")
    output = TASK._enlarged(IMAGES[0])
    assert TASK.answer(output) == {"width": 24, "height": 16}
    assert TASK.result(output - 500).max() == 0 and TASK.result(output).dtype == np.uint8
    assert TASK.picture(IMAGES[0], output).shape == (16, 49, 3)
    assert TASK.picture(IMAGES[0], output, {"originals": ORIGINALS[0]}).shape == (16, 74, 3)
    said = TASK.caption(ORIGINALS[0], {"images": IMAGES[0], "originals": ORIGINALS[0]})
    tally = TASK.tally()
    tally.add({"images": IMAGES, "originals": ORIGINALS}, ORIGINALS)
    assert (
        said == f"100.00 dB, without the model {tally.values['input_psnr'][0]:.2f} dB" and tally.result()["psnr"] == 100
    )
    gray = Restore(gray=True)
    assert gray.picture(IMAGES[0, ..., :1], IMAGES[0]).shape == (8, 25, 3)
    assert "dB" in gray.caption(IMAGES[0], {"images": IMAGES[0, ..., :1], "originals": IMAGES[0]})


def recipe(task=TASK, model=None, **parts):
    parts = {"data": Data(resize="window"), "augment": Augment(crop="window"), **parts}
    return Recipe(name="x", model={**SMALL, **(model or {})}, task=task, **parts)


@pytest.mark.parametrize(
    "made, message",
    [
        (recipe(Restore()), "needs what to undo: scale, gray, noise, jpeg or mask. Received: none of them"),
        (recipe(Restore(scale=2, classes=("a",))), r"Restore has no classes. Received: task.classes=\('a',\)"),
        (recipe(Restore(gray=True, luma=True)), "Received: both"),
        (recipe(Restore(gray=True)), "channels must be 1 with Restore.gray. Received: channels=3"),
        (recipe(model={"channels": 4}), "channels must be 1 or 3. Received: channels=4"),
        (recipe(augment=Augment(crop="window", mixup=0.2)), "do not change originals. Received: augment.mixup=0.2"),
        (recipe(data=Data()), "must be 'window'. Received: augment.crop='window', data.resize=None"),
        (recipe(augment=Augment()), "must be 'window'. Received: augment.crop=None, data.resize='window'"),
    ],
)
def test_settings_that_contradict_each_other(made, message):
    with pytest.raises(ValueError, match=message):
        made.task.check(made)


def test_the_model_needs_a_stem():
    TASK.check(recipe())
    with pytest.raises(ValueError, match="needs a stem, whose feature map becomes pixels. Received: stem=None"):
        TASK.model(**{**SMALL, "stem": None})
    with pytest.raises(ValueError, match="has no pooling. Received: num_classes=3"):
        TASK.model(**SMALL, num_classes=3)
    with pytest.raises(ValueError, match=r"\(filters, stride\) pairs, .* Received: stem=\(\)"):
        TASK.model(**{**SMALL, "stem": ()})
    with pytest.raises(ValueError, match="times as large as the images"):  # strides that do not divide the image
        Restore(noise=1.0).model(**{**SMALL, "stem": ((8, 2),), "image_size": (9, 9), "patch_size": 1})
    half = TASK.model(**SMALL, dtype="mixed_bfloat16")
    assert half.get_layer("stem").dtype_policy.name == "mixed_bfloat16" and half.output.dtype == "float32"
    assert not dataclasses.replace(TASK).classes and not Classify.whole and Restore.whole

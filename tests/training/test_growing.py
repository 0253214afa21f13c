import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.training import growing
from keras_vit.training.loop import Run
from tests.marks import slow
from tests.training.small import RECIPE, SOURCE, Break, fit, tiny, what_counts

GROWS = config.override(RECIPE, {"optim.image_sizes": (4,), "optim.epochs": 2})


@pytest.mark.parametrize(
    "epochs, sizes, sides",
    [
        (3, (), [None] * 3),
        (4, (4,), [4, 4, None, None]),
        (5, (4, 6), [4, 4, 6, 6, None]),
        (3, (4, 6), [4, 6, None]),
    ],
)
def test_equal_parts_of_the_run_have_one_size_each(epochs, sizes, sides):
    optim = config.Optim(epochs=epochs, image_sizes=sizes)
    recipe = dataclasses.replace(RECIPE, optim=optim)
    found = [growing.of_epoch(recipe, epoch, (9, 9, 3))[1] for epoch in range(epochs)]
    assert found == [(side or 9, side or 9, 3) for side in sides]
    for epoch, side in enumerate(sides):
        until = growing.until(optim, epoch)
        assert set(sides[epoch:until]) == {side} and sides[until : until + 1] != [side]


@slow
def test_a_run_grows_learns_and_takes_one_size_again(tmp_path):
    model = tiny()
    before = [w.copy() for w in model.get_weights()]
    _, history = fit(tmp_path, GROWS, model)
    assert len(history["loss"]) == 2 and all(np.isfinite(history["loss"]))
    for variable, old, new in zip(model.weights, before, model.get_weights(), strict=True):
        assert (old != new).any() or not variable.path.endswith(("kernel", "position_embedding")), variable.path
    with pytest.raises(ValueError, match="expected shape"):
        model(np.zeros((1, 4, 4, 1), "float32"))


def test_batches_have_the_size_of_their_part(tmp_path):
    for epoch, side, epochs in ((0, 4, 1), (1, 8, 1)):
        run = Run(GROWS, tiny(), SOURCE, SOURCE, tmp_path, epoch=epoch)
        assert run.training_batches().cardinality() == 5 * epochs
        assert run.training_batches().element_spec[0].shape == (8, side, side, 1)
    assert run.validation_batches().element_spec[0].shape[1:] == (8, 8, 1)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run that grows and is left alone: its model and history."""
    return fit(tmp_path_factory.mktemp("grown") / "one", GROWS, save_steps=1)


@slow
@pytest.mark.parametrize("after", [2, *(pytest.param(one, marks=slow) for one in (5, 7))])
def test_a_run_that_grows_resumes_bit_for_bit(tmp_path, grown, after):
    model, history = grown
    with pytest.raises(SystemError):
        fit(tmp_path / "two", GROWS, save_steps=1, extra=[Break(after)])
    again, found = fit(tmp_path / "two", GROWS)
    assert what_counts(found) == what_counts(history)
    for a, b in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sizes", [(8,), (6, 4), (4, 4), (4, 5, 6)])
def test_sizes_that_do_not_grow_are_refused(sizes):
    with pytest.raises(ValueError, match="must grow to the side of the model's square images, 8 x 8"):
        growing.check(config.override(GROWS, {"optim.image_sizes": sizes}), tiny())


@pytest.mark.parametrize("size", [0, -4])
def test_sizes_are_positive(size):
    with pytest.raises(ValueError, match=f"must be a positive integer. Received: optim.image_sizes={size}"):
        growing.check(config.override(GROWS, {"optim.image_sizes": (size,)}), tiny())


def test_patches_and_positions_must_fit_smaller_images():
    with pytest.raises(ValueError, match="on images of 6 x 6 pixels: The patch size must divide the image size"):
        growing.check(config.override(GROWS, {"optim.image_sizes": (6,)}), tiny())
    for more in ({"rotary": "dinov3", "position": None}, {"position": "relative"}):
        with pytest.raises(ValueError, match="cannot be trained on images of 4 x 4 pixels"):
            growing.check(GROWS, tiny(**more))


def test_padding_is_a_share_of_the_image(tmp_path):
    large = config.override(GROWS, {"optim.image_sizes": (112,), "augment.crop": "padded"})
    (first, _), (second, _) = (growing.of_epoch(large, epoch, (224, 224, 3)) for epoch in (0, 1))
    assert first.augment.crop_padding == 2 and second == large
    small = next(iter(Run(GROWS, tiny(), SOURCE, SOURCE, tmp_path).training_batches()))[0]
    whole = next(iter(Run(GROWS, tiny(), SOURCE, SOURCE, tmp_path, epoch=1).training_batches()))[0]
    np.testing.assert_allclose(np.mean(small), np.mean(whole), atol=12)
    assert small.shape[1:3] == (4, 4) and whole.shape[1:3] == (8, 8)


def test_outputs_for_every_pixel_are_refused():
    recipe = config.override(GROWS, {})
    model = config.Segment(classes=("a", "b")).model(variant="mu/4", image_size=8, channels=1)
    with pytest.raises(
        ValueError, match=r"one output vector per image.* Received: \(4,\) and outputs of shape \(None, 8"
    ):
        growing.check(recipe, model)


def test_windows_are_refused():
    with pytest.raises(ValueError, match="not for augment.crop='window'"):
        growing.check(config.override(GROWS, {"augment.crop": "window"}), tiny())


def test_a_teacher_is_refused_before_a_directory_is_made(tmp_path):
    shape = {"model.variant": "mu/4", "model.image_size": 8, "model.channels": 1, "model.num_classes": 3}
    recipe = config.override(GROWS, {"task.distill": "soft", **shape})
    arrays = (SOURCE.images[:], SOURCE.labels)
    for teacher, message in (
        (tiny(), "without a teacher or a decoder"),
        (keras_vit.vit("mu/4", image_size=8, num_classes=4), "input_shape must be"),
    ):
        with pytest.raises(ValueError, match=message):
            keras_vit.fit(recipe, tmp_path / "run", train=arrays, validation=arrays, teacher=teacher)
    assert not (tmp_path / "run").exists()

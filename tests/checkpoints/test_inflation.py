import keras
import numpy as np
import pytest

from keras_vit import inflated, vit
from keras_vit.tasks.clip_task import started
from tests.checkpoints.helpers import randomized, unexpected
from tests.marks import slow

pytestmark = pytest.mark.backend

SMALL = dict(variant=None, image_size=(8, 12), patch_size=4, width=16, depth=2, num_heads=4, num_classes=5)
IMAGE = np.random.default_rng(0).integers(0, 256, (2, 8, 12, 3)).astype("float32")


def small(**options):
    return randomized(vit(**{**SMALL, **options}))


def tokens(model, x):
    return keras.ops.convert_to_numpy(keras.Model(model.input, model.get_layer("encoder").output)(x))


@pytest.mark.parametrize("kernel", ["central", "uniform"])
def test_a_still_clip_has_the_image_s_tokens_at_each_step(kernel):
    model = small()
    clips = inflated(model, frames=4, kernel=kernel)
    still = np.repeat(IMAGE[:, None], 4, axis=1)
    found, wanted = tokens(clips, still), tokens(model, IMAGE)
    np.testing.assert_allclose(found[:, :1], wanted[:, :1], atol=1e-5)
    np.testing.assert_allclose(found[:, 1:], np.tile(wanted[:, 1:], (1, 2, 1)), atol=1e-3)
    assert clips.input_shape == (None, 4, 8, 12, 3) and clips.output_shape == (None, 5)


def test_of_a_tubelet_one_frame_counts_or_all():
    model, moving = small(), np.random.default_rng(1).integers(0, 256, (1, 6, 8, 12, 3)).astype("float32")
    central = tokens(inflated(model, frames=6, tubelet=3), moving)
    alone = tokens(model, moving[0])  # an example for each frame
    np.testing.assert_allclose(central[0, 1:7], alone[1, 1:], atol=1e-3)  # at index 3 // 2
    np.testing.assert_allclose(central[0, 7:], alone[4, 1:], atol=1e-3)
    uniform = tokens(inflated(model, frames=6, tubelet=3, kernel="uniform"), moving)
    np.testing.assert_allclose(uniform[0, 1:7], alone[:3, 1:].mean(0), atol=1e-3)


def test_model_two_starts_from_the_image_model_at_each_step():
    model, clips = small(num_classes=0), np.repeat(IMAGE[:, None], 4, axis=1)
    both = inflated(model, frames=4, time_depth=1, num_classes=3)
    spatial = keras.Model(both.input, both.get_layer("pool").output)(clips)
    found = keras.ops.convert_to_numpy(spatial).reshape(2, 2, 16)
    np.testing.assert_allclose(found, np.repeat(keras.ops.convert_to_numpy(model(IMAGE))[:, None], 2, 1), atol=1e-4)
    assert both.output_shape == (None, 3)


def test_what_is_kept_of_the_metadata():
    model = small(metadata={"labels": list("abcde"), "license": "x"})
    assert inflated(model, frames=4).get_layer("rescale").metadata == {"labels": list("abcde"), "license": "x"}
    other = inflated(model, frames=4, num_classes=2, metadata={"frames": {"stride": 3}})
    assert other.get_layer("rescale").metadata == {"license": "x", "frames": {"stride": 3}}
    assert not keras.ops.convert_to_numpy(other.get_layer("head").kernel).any()


@slow
def test_other_models_are_refused(tmp_path):
    calls = [
        (lambda: inflated(small(stem=((6, 4),), patch_size=1)), "plain ViT. Received: .* with stem"),
        (lambda: inflated(small(tokens={"registers": 2})), "with registers"),
        (lambda: inflated(small(position="sincos2d")), "with position='sincos2d'"),
        (lambda: inflated(small(pooling="map")), "with pooling='map'"),
        (lambda: inflated(small(), kernel="mean"), "`kernel` must be one of 'central', 'uniform'"),
        (lambda: inflated(small(), frames=3), "must divide those of a clip"),
        (lambda: inflated(inflated(small(), frames=4)), "which takes clips"),
    ]
    assert not unexpected(calls)
    small().save(tmp_path / "m.keras")
    model = started(tmp_path / "m.keras", 4, {}, {"image_size": (8, 12), "num_classes": 2, "tubelet": 4})
    assert model.input_shape == (None, 4, 8, 12, 3) and model.get_layer("tubelets").length == 4
    model.save(tmp_path / "clips.keras")
    again = started(tmp_path / "clips.keras", 8, {}, {"image_size": (8, 12), "num_classes": 2, "tubelet": 4})
    assert again.input_shape == (None, 8, 8, 12, 3)
    with pytest.raises(ValueError, match="must be of such a model. Received: .*'tubelet': 2"):
        started(tmp_path / "clips.keras", 4, {}, {"image_size": (8, 12), "tubelet": 2})


def test_model_two_starts_with_other_frames_and_another_size(tmp_path):
    """The tables of space and of time are resampled, each by itself."""
    model = inflated(small(), frames=4, time_depth=2)
    table = np.random.default_rng(0).normal(size=(1, 3, 16))
    model.get_layer("steps").table.assign(table)
    model.save(tmp_path / "m.keras")
    given = {"image_size": (16, 12), "num_classes": 3}
    found = started(str(tmp_path / "m.keras"), 8, {}, given)
    assert found.input_shape == (None, 8, 16, 12, 3) and found.get_layer("steps").steps == 4
    first, second = table[0, 1:]
    expected = [table[0, 0], first, first * 3 / 4 + second / 4, first / 4 + second * 3 / 4, second]
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found.get_layer("steps").table)[0], expected, atol=1e-6)
    own, other = (keras.ops.convert_to_numpy(each.get_layer("time_1").mlp.fc1.kernel) for each in (model, found))
    np.testing.assert_array_equal(own, other)
    same = started(str(tmp_path / "m.keras"), 4, {}, {"image_size": (8, 12), "num_classes": 5})
    for one, two in zip(model.weights, same.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(two))

import keras
import numpy as np
import pytest

from keras_vit import video_vit
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.models.inputs import image_shape, inputs_of
from keras_vit.utils.keras_private import shapes_only
from tests.checkpoints.helpers import randomized, unexpected
from tests.marks import how

pytestmark = pytest.mark.backend

SIZES = dict(variant=None, frames=4, image_size=(8, 12), patch_size=4, width=16, depth=2, num_heads=4, num_classes=5)
CLIPS = np.random.default_rng(0).integers(0, 256, (2, 4, 8, 12, 3)).astype("uint8")


def small(**options):
    return randomized(video_vit(**{**SIZES, **options}))


def outputs(model, clips=CLIPS):
    return keras.ops.convert_to_numpy(model(clips, training=False))


def test_names_of_layers_and_weights_are_public():
    names = "clips frames rescale patches tubelets encoder block_0 block_1 norm pool head"
    assert " ".join(layer.name for layer in small().layers) == names
    factorised = small(time_depth=1, stem=((6, 2), (8, 2)), patch_size=1)
    names = "clips frames rescale apart stem together patches tubelets encoder block_0 block_1 norm pool steps time_0 "
    assert " ".join(layer.name for layer in factorised.layers) == names + "time_norm time_pool head"
    outside = {
        v.path: tuple(v.shape) for v in small(time_depth=1).weights if not v.path.startswith(("block_", "time_0"))
    }
    assert outside == {
        "encoder/projection/kernel": (96, 16),
        "encoder/projection/bias": (16,),
        "encoder/class_token": (1, 1, 16),
        "encoder/position_embedding": (1, 7, 16),
        "norm/gamma": (16,),
        "norm/beta": (16,),
        "steps/class_token": (1, 1, 16),
        "steps/table": (1, 3, 16),
        "time_norm/gamma": (16,),
        "time_norm/beta": (16,),
        "head/kernel": (16, 5),
        "head/bias": (5,),
    }
    assert video_vit("Ti/4", frames=4, image_size=8, depth=1).name == "vivit_Ti_4x2"
    assert inputs_of(small()) == {"clips": (4, 8, 12, 3)} and image_shape(small()) == (4, 8, 12, 3)


def test_published_sizes():
    """Counts of transformers' VivitForVideoClassification and VideoMAEForVideoClassification, 400 classes."""
    vivit = shapes_only(lambda: video_vit("B/16", frames=32))
    assert vivit.count_params() == 88_954_000 and vivit.output_shape == (None, 400)
    mae = dict(position="sincos1d", pooling="gap", final_norm="after", block={"key_bias": False})
    assert shapes_only(lambda: video_vit("B/16", **mae)).count_params() == 86_534_800


@pytest.mark.parametrize("options", [{}, {"time_depth": 1}, {"stem": ((6, 2), (8, 2)), "patch_size": 1}])
def test_after_the_input_no_tensor_has_more_than_four_axes(options):
    model = small(**options)
    ranks = [len(layer.output.shape) for layer in model.layers[1:]]
    assert max(ranks) == 4 and len(model.input_shape) == 5


def test_time_is_seen():
    """Frames in another order give another answer, and each frame counts."""
    for model in (small(), small(time_depth=1), small(tubelet=1, pooling="gap")):
        before = outputs(model)
        assert np.abs(outputs(model, CLIPS[:, ::-1]) - before).max() > 1e-2
        for frame in range(4):
            other = CLIPS.copy()
            other[:, frame] = 255 - other[:, frame]
            assert np.abs(outputs(model, other) - before).max() > 1e-3


def test_model_two_is_a_spatial_encoder_of_each_step_and_a_temporal_one():
    model = small(time_depth=1)
    spatial = keras.Model(model.input, model.get_layer("pool").output)
    both = keras.ops.convert_to_numpy(spatial(CLIPS)).reshape(2, 2, 16)  # clips, steps
    swapped = keras.ops.convert_to_numpy(spatial(CLIPS[:, [2, 3, 0, 1]])).reshape(2, 2, 16)
    np.testing.assert_allclose(swapped, both[:, ::-1], atol=1e-5)
    assert np.abs(outputs(model, CLIPS[:, [2, 3, 0, 1]]) - outputs(model)).max() > 1e-3  # positions of time


def test_a_stem_sees_each_frame_alone():
    model = video_vit(**{**SIZES, "stem": ((6, 2), (8, 2)), "patch_size": 1})
    maps = keras.Model(model.input, model.get_layer("together").output)
    other = CLIPS.copy()
    other[:, 1] = 0
    difference = np.abs(keras.ops.convert_to_numpy(maps(other)) - keras.ops.convert_to_numpy(maps(CLIPS)))
    changed = difference.reshape(2, 4, -1).max(axis=(0, 2)) > 0
    assert changed.tolist() == [False, True, False, False]


def test_arguments_are_read_off_a_model():
    options = dict(time_depth=1, pool_epsilon=1e-3, tubelet=1, channels=1, block={"gelu": "exact"})
    found = arguments_of(small(**options), words=True)
    assert {name: found[name] for name in ("frames", "tubelet", "time_depth", "pool_epsilon", "channels")} == {
        "frames": 4, "tubelet": 1, "time_depth": 1, "pool_epsilon": 1e-3, "channels": 1,
    }  # fmt: skip
    assert found["image_size"] == (8, 12) and found["patch_size"] == (4, 4)
    with pytest.raises(ValueError, match="Received: 'vivit_custom_4x2', which takes clips"):
        arguments_of(small())


def test_it_is_saved_and_trained(tmp_path):
    for options in ({}, {"time_depth": 1, "dropout": 0.1, "stochastic_depth": 0.5}):
        model = small(**options)
        model.save(tmp_path / "m.keras")
        np.testing.assert_array_equal(outputs(keras.models.load_model(tmp_path / "m.keras")), outputs(model))
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), **how(compiled=False))
        before = [keras.ops.convert_to_numpy(w) for w in model.trainable_weights]
        model.fit(CLIPS, np.array([1, 3]), batch_size=2, epochs=1, verbose=0)
        assert all((keras.ops.convert_to_numpy(w) != old).any() for w, old in zip(model.trainable_weights, before))


def test_bad_arguments():
    calls = [
        (dict(variant="R50+B/16"), "`variant` must be a size and a patch size"),
        (dict(frames=5), "must divide those of a clip. Received: length=2, frames=5"),
        (dict(frames=0), "`frames` must be a positive integer"),
        (dict(image_size=10), "must divide the image size"),
        (dict(tokens={"registers": 2}), "no other tokens than a class token. Received: .*registers"),
        (dict(tokens={"class_token": False}), "needs the class token"),
        (dict(position="sincos2d"), "`position` must be one of"),
        (dict(pooling="map"), "`pooling` must be one of"),
        (dict(time_depth=1, pooling="none"), "needs one vector for each time step"),
        (dict(time_depth=1, position="sincos1d", pooling="gap"), "needs one vector for each time step"),
        (dict(pool_epsilon=0), "`pool_epsilon` must be a finite number above 0"),
    ]
    assert not unexpected(
        [(lambda options=options: video_vit(**{**SIZES, **options}), text) for options, text in calls]
    )

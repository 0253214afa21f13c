import keras
import numpy as np
import pytest

from keras_vit import TransformerBlock, vit
from keras_vit.config import Optim
from keras_vit.training import optimizers
from tests.marks import slow_on_jax

pytestmark = pytest.mark.backend


def moved(optimizer, **more):
    """Returns how far one step moves each weight of a model, by path."""
    keras.utils.set_random_seed(0)
    model = vit("mu/4", image_size=8, num_classes=3, depth=2, pooling="map", **more)
    optim = Optim(optimizer=optimizer, warmup_epochs=0, weight_decay=0.0, learning_rate=0.01, clip_norm=None)
    made = optimizers.make(optim, model.trainable_variables, 100)
    rng = np.random.default_rng(0)
    before = [keras.ops.convert_to_numpy(v).copy() for v in model.trainable_variables]
    made.build(model.trainable_variables)
    made.apply([rng.normal(size=v.shape).astype("float32") for v in model.trainable_variables])
    return {v.path: keras.ops.convert_to_numpy(v) - old for v, old in zip(model.trainable_variables, before)}


@slow_on_jax
def test_matrices_of_blocks_move_in_all_directions_alike_and_the_rest_as_with_adam():
    muon, adam = moved("muon"), moved("adamw")
    kernels = [path for path in muon if "block_" in path and path.endswith("kernel")]
    assert len(kernels) == 2 * 4
    for path, step in muon.items():
        if path in kernels:
            sizes = np.linalg.svd(step, compute_uv=False) / (0.01 * 0.2 * max(step.shape) ** 0.5)
            assert sizes.min() > 0.6 and sizes.max() < 1.3, path
        else:
            np.testing.assert_allclose(step, adam[path], atol=1e-6, err_msg=path)


@slow_on_jax
def test_convolutions_move_in_all_directions_alike_but_those_that_read_images():
    more = {"stem": ((8, 1), (12, 2), (24, 1)), "patch_size": 1}
    muon, adam = moved("muon", **more), moved("adamw", **more)
    kernels = [path for path in muon if "stem/conv" in path]
    assert len(kernels) == 3
    for path in kernels[1:]:
        step = muon[path].reshape(-1, muon[path].shape[-1])
        sizes = np.linalg.svd(step, compute_uv=False) / (0.01 * 0.2 * max(step.shape) ** 0.5)
        assert sizes.min() > 0.6 and sizes.max() < 1.3, path
    for path in (kernels[0], "stem/norm1/gamma", "encoder/projection/kernel", "head/kernel"):
        np.testing.assert_allclose(muon[path], adam[path], atol=1e-6, err_msg=path)


@pytest.mark.parametrize("name, moves", [("head", False), ("decode", True)])
def test_convolutions_of_a_head_move_as_with_adam(name, moves):
    layer = keras.layers.Conv2D(5, 1, name=name)
    layer.build((None, 4, 4, 24))
    assert optimizers.Muon().is_convolution(layer.kernel) == moves


def test_a_convolution_of_each_channel_is_no_matrix():
    layer = keras.layers.DepthwiseConv2D(3)
    layer.build((None, 8, 8, 24))
    assert not optimizers.Muon().is_convolution(layer.kernel)


def test_it_comes_back_from_its_config():
    made = optimizers.make(Optim(layer_decay=0.7, optimizer="muon"), [keras.Variable(0.0)], 10)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(made))
    assert type(again) is optimizers.Muon and again.layer_decay == 0.7


@pytest.mark.parametrize("names", [(None, None), ("first", "second")])
def test_blocks_of_any_name_are_moved(names):
    x = inputs = keras.Input((4, 12))
    for name in names:
        x = TransformerBlock(3, 24, name=name)(x)
    model = keras.Model(inputs, keras.layers.Dense(5, name="top")(x))
    optimizer = optimizers.Muon()
    optimizer.build(model.trainable_variables)
    by_adam = [v.path for v, speed in zip(model.trainable_variables, optimizer.adam_velocities) if speed is not None]
    assert [path for path in by_adam if path.endswith("kernel")] == ["top/kernel"]


@slow_on_jax
def test_tables_of_relative_positions_move_as_with_adam():
    muon, adam = (moved(name, position="relative") for name in ("muon", "adamw"))
    tables = [path for path in muon if path.endswith("table")]
    assert len(tables) == 2
    for path in tables:
        np.testing.assert_allclose(muon[path], adam[path], atol=1e-5)

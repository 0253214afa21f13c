import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import vit
from keras_vit.config import Optim
from keras_vit.training import optimizers

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)


def rates(steps, at, **settings):
    schedule = optimizers.make(Optim(**settings), [keras.Variable(0.0)], steps)._learning_rate
    again = optimizers.Schedule.from_config(schedule.get_config())
    found = [float(schedule(step)) for step in at]
    assert found == [float(again(step)) for step in at]
    return found


@pytest.mark.parametrize(
    "settings, at, expected",
    [
        (dict(warmup_epochs=1.0), (0, 50, 100, 250, 400), (0, 0.5, 1, 0.5, 0)),
        (dict(warmup_epochs=0), (0, 200, 400), (1, 0.5, 0)),
        (dict(schedule="linear", warmup_epochs=1.0), (50, 100, 250, 400), (0.5, 1, 0.5, 0)),
        (dict(schedule="constant", warmup_epochs=0.5, cooldown_epochs=1.0), (25, 50, 300, 350), (0.5, 1, 1, 0.5)),
        (dict(schedule="rsqrt", warmup_epochs=1.0, rsqrt_epochs=0.5), (50, 100, 250), (0.5, 1, 0.5)),
        (dict(warmup_epochs=0, accumulate=2), (0, 1, 198, 199, 200), (1, 1, 0.508, 0.508, 0.5)),
    ],
)
def test_schedules(settings, at, expected):
    found = rates(100, at, epochs=4, learning_rate=0.01, **settings)
    np.testing.assert_allclose(found, 0.01 * np.array(expected), atol=1e-5)


def test_a_warmup_longer_than_the_training_rises_to_the_end():
    np.testing.assert_allclose(rates(100, [100, 200], epochs=2, warmup_epochs=4.0, learning_rate=1.0), [0.25, 0.5])


def variables(model):
    return {v.path: keras.ops.convert_to_numpy(v).copy() for v in model.trainable_variables}


def ones(optim):
    """A model of ones and its optimizer, after one step without any gradient."""
    model = vit("mu/4", image_size=8, num_classes=3, depth=2)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    optimizer = optimizers.make(optim, model.trainable_variables, 100)
    optimizer.apply([keras.ops.zeros(v.shape) for v in model.trainable_variables], model.trainable_variables)
    return variables(model)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("layer_decay", [None, 0.5])
def test_only_kernels_decay_and_lower_layers_less(optimizer, layer_decay):
    """Without a gradient, what decays is multiplied by 1 - rate * decay, and the rest stays."""
    optim = Optim(optimizer=optimizer, warmup_epochs=0, learning_rate=0.01, weight_decay=0.1, layer_decay=layer_decay)
    for path, value in ones(optim).items():
        factor = 1.0
        if layer_decay:  # depth 2: patches 1/8, blocks 1/4 and 1/2, norm and head 1
            factor = 0.125 if "encoder" in path else 0.25 if "block_0" in path else 0.5 if "block_1" in path else 1.0
        expected = 1 - 0.01 * 0.1 * factor if path.endswith("kernel") else 1
        np.testing.assert_allclose(value, expected, rtol=1e-6, err_msg=path)


def test_the_table_of_layer_decay_is_beits():
    """As MAE's lr_decay.py: `decay ** (depth + 1 - layer)`, patches and positions being 0, blocks 1 to depth."""
    model = vit("B/16", image_size=32, num_classes=2, depth=12, width=12, num_heads=3, mlp_dim=12)
    paths = [v.path for v in model.trainable_variables]
    found = dict(zip(paths, optimizers.layer_factors(paths, 0.75)))
    assert found["encoder/position_embedding"] == found["encoder/projection/kernel"] == 0.75**13
    for i in range(12):
        assert found[f"block_{i}/attention/qkv/kernel"] == 0.75 ** (12 - i)
    assert found["norm/gamma"] == found["head/kernel"] == 1
    assert optimizers.layer_factors(["sequential/norm/gamma", "block_0/norm1/gamma", "head/bias"], 0.5) == [
        0.25,
        0.5,
        1,
    ]


def levels(model):
    """How many times the learning rate of each trainable variable is halved."""
    factors = optimizers.layer_factors([v.path for v in model.trainable_variables], 0.5)
    return [-round(np.log2(factor)) for factor in factors]


def named(network):
    """A stem of another library, whose layers are called as the parts of a ViT are."""
    x = network(filters=4, kernel_size=2, strides=2, name="norm")(images := keras.Input((8, 8, 3)))
    x = network(filters=4, kernel_size=1, name="head")(x)
    inner = keras.Sequential([keras.Input((4, 4, 4)), network(filters=4, kernel_size=1, name="conv")], name="block_7")
    return keras.Model(images, inner(x))


STEMS = {
    "conv": lambda: "conv",
    "resnet": lambda: keras_vit.ResNetStem((1, 1), width=32),
    "model": lambda: named(keras.layers.Conv2D),
    "layer": lambda: keras.layers.Conv2D(4, 2, strides=2),
    "built": lambda: keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 2, strides=2)]),
}


@pytest.mark.parametrize("kind", STEMS)
def test_all_of_a_stem_is_below_the_blocks(kind):
    size = 32 if kind == "resnet" else 8
    more = {"patch_size": 1} if kind != "conv" else {}
    stem = STEMS[kind]()
    model = vit(
        "mu/4", image_size=size, num_classes=3, depth=2, stem=stem, pre_norm=True, representation_size=8, **more
    )
    above = {"block_0": 2, "block_1": 1, "norm": 0, "pre_logits": 0, "head": 0}
    expected = [above.get(layer.name, 3) for layer in model.layers for _ in layer.trainable_variables]
    assert levels(model) == expected and expected.count(3) >= 7


def test_a_head_of_your_own_learns_at_the_full_rate():
    inner = vit("mu/4", image_size=8, num_classes=0, depth=2)
    images = keras.Input((8, 8, 3))
    x = keras.layers.Dense(8, name="encoder_of_mine")(inner(keras.layers.Conv2D(3, 1, name="colours")(images)))
    nested = keras.Model(images, keras.layers.Dense(4)(keras.layers.BatchNormalization()(x)))
    longer = keras.Model(inner.input, keras.layers.Dense(4, name="mine")(inner.output))
    for model, count in ((nested, 6), (longer, 2), (keras.Sequential([inner, keras.layers.Dense(4)]), 2)):
        found = dict(zip([v.path for v in model.trainable_variables], levels(model)))
        assert list(found.values())[-count - 2 :] == [0] * (count + 2)  # the norm has two
        assert found["encoder/projection/kernel"] == 3 and found["block_1/mlp/fc1/kernel"] == 1
        assert found.get("colours/kernel", 3) == 3


def test_a_nested_path_and_blocks_of_any_name():
    paths = ["vit_mu/encoder/class_token", "vit_mu/block_0/attention/qkv/kernel", "adapter/kernel",
             "vit_mu/block_1/attention/qkv/kernel", "vit_mu/block_1/mlp/fc1/kernel", "dense/kernel"]  # fmt: skip
    assert optimizers.layer_factors(paths, 0.5) == [0.125, 0.25, 0.25, 0.5, 0.5, 1]
    paths = [path.replace("block_0", "transformer_block").replace("block_1", "transformer_block_1") for path in paths]
    assert optimizers.layer_factors(paths, 0.5) == [0.125, 0.25, 0.25, 0.5, 0.5, 1]
    assert optimizers.layer_factors(["dense/kernel", "head/kernel"], 0.5) == [1, 1]  # a probe
    upper = ["block_2/attention/qkv/kernel", "block_3/attention/qkv/kernel", "mine/kernel"]  # the lower ones are frozen
    assert optimizers.layer_factors(upper, 0.5) == [0.25, 0.5, 1]


@pytest.mark.parametrize("optimizer, kind", [("adamw", keras.optimizers.AdamW), ("sgd", keras.optimizers.SGD)])
def test_layer_decay_moves_each_weight_by_its_share(optimizer, kind):
    """A step with layer-wise decay is a step without, times the factor; from the same start, no weight decay."""
    images, labels = RNG.integers(0, 256, (8, 8, 8, 3)).astype("uint8"), RNG.integers(0, 3, 8)
    moved = []
    for decay in (None, 0.5):
        keras.utils.set_random_seed(0)
        model = vit("mu/4", image_size=8, num_classes=3, depth=2)
        model.get_layer("head").kernel.assign(np.full(model.get_layer("head").kernel.shape, 0.1))
        optim = Optim(optimizer=optimizer, warmup_epochs=0, weight_decay=0.0, layer_decay=decay, learning_rate=0.1)
        before = variables(model)
        made = optimizers.make(optim, model.trainable_variables, 100)
        assert isinstance(made, kind)
        model.compile(made, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
        model.train_on_batch(images, labels)
        moved.append({path: value - before[path] for path, value in variables(model).items()})
    factors = dict(zip(moved[0], optimizers.layer_factors(list(moved[0]), 0.5)))
    for path, plain in moved[0].items():
        np.testing.assert_allclose(moved[1][path], plain * factors[path], rtol=2e-3, atol=1e-6, err_msg=path)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_four_batches_of_eight_are_one_of_thirty_two(optimizer):
    images, labels = RNG.integers(0, 256, (64, 8, 8, 3)).astype("uint8"), np.eye(3)[RNG.integers(0, 3, 64)]
    ends = []
    for batch, accumulate in ((32, 1), (8, 4)):
        keras.utils.set_random_seed(0)
        model = vit("mu/4", image_size=8, num_classes=3, depth=1)
        optim = Optim(
            optimizer=optimizer, epochs=4, warmup_epochs=1.0, accumulate=accumulate, learning_rate=0.01, ema=0.9
        )
        made = optimizers.make(optim, model.trainable_variables, 64 // batch)
        model.compile(made, keras.losses.CategoricalCrossentropy(from_logits=True), jit_compile=True)
        for _ in range(2):
            for start in range(0, 64, batch):
                model.train_on_batch(images[start : start + batch], labels[start : start + batch])
        averages = [keras.ops.convert_to_numpy(v) for v in made._model_variables_moving_average]
        ends.append([*variables(model).values(), *averages])
    count = len(ends[0]) // 2
    for a, b in zip(ends[0][:count], ends[1][:count]):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_an_optimizer_comes_back_from_its_config():
    made = optimizers.make(Optim(layer_decay=0.7, optimizer="sgd"), [keras.Variable(0.0)], 10)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(made))
    assert type(again) is optimizers.SGD and again.layer_decay == 0.7
    with pytest.raises(ValueError, match="At least one layer must be trainable"):
        optimizers.make(Optim(), [], 10)

import keras
import numpy as np
import pytest

from keras_vit import vit
from keras_vit.config import Optim
from keras_vit.training import optimizers
from tests.marks import few, first_everywhere, how, once, slow, slow_on_jax

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
        (dict(schedule="constant", warmup_epochs=0.5), (25, 50, 300, 350), (0.5, 1, 1, 1)),
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


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
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


@few(1)
@pytest.mark.parametrize(
    "optimizer, kind",
    [
        pytest.param("adamw", keras.optimizers.AdamW, marks=once),
        pytest.param("sgd", keras.optimizers.SGD, marks=once),
        ("muon", keras.optimizers.Muon),
    ],
)
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
        model.compile(made, keras.losses.SparseCategoricalCrossentropy(from_logits=True), **how(False))
        model.train_on_batch(images, labels)
        moved.append({path: value - before[path] for path, value in variables(model).items()})
    factors = dict(zip(moved[0], optimizers.layer_factors(list(moved[0]), 0.5)))
    for path, plain in moved[0].items():
        np.testing.assert_allclose(moved[1][path], plain * factors[path], rtol=2e-3, atol=1e-6, err_msg=path)


@slow
@few(1)
@pytest.mark.parametrize("optimizer", first_everywhere("muon", "adamw", "sgd"))
def test_four_batches_of_eight_are_one_of_thirty_two(optimizer):
    """Without biases of keys: their gradient is 0, and AdamW would make steps of what rounding leaves of it."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (64, 8, 8, 3)).astype("uint8"), np.eye(3)[rng.integers(0, 3, 64)]
    ends = []
    for batch, accumulate in ((32, 1), (8, 4)):
        keras.utils.set_random_seed(0)
        model = vit("mu/4", image_size=8, num_classes=3, depth=1, block={"key_bias": False})
        optim = Optim(
            optimizer=optimizer, epochs=4, warmup_epochs=1.0, accumulate=accumulate, learning_rate=0.01, ema=0.9
        )
        made = optimizers.make(optim, model.trainable_variables, 64 // batch)
        model.compile(made, keras.losses.CategoricalCrossentropy(from_logits=True), **how(optimizer == "muon"))
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


@slow_on_jax
@pytest.mark.parametrize("name", ["AdamW", "SGD", "Muon"])
def test_a_loaded_model_decays_what_it_did(name, tmp_path):
    model = vit("mu/4", image_size=8, depth=1, num_classes=2)
    optimizer = getattr(optimizers, name)(0.01, weight_decay=0.5, layer_decay=0.9)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer, "mse", jit_compile=False)
    model.train_on_batch(np.ones((2, 8, 8, 3), "float32"), np.ones((2, 2), "float32"))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.undecayed == optimizer.undecayed and 0 < len(optimizer.undecayed) < len(optimizer.factors)
    for each in (model, loaded):
        each.optimizer.apply([keras.ops.zeros(v.shape) for v in each.trainable_variables])
    for one, other in zip(model.trainable_variables, loaded.trainable_variables, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7, err_msg=one.path)
    again = type(optimizer).from_config(optimizer.get_config())
    again.build(loaded.trainable_variables)
    assert again.undecayed == optimizer.undecayed

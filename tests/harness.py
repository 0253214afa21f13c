"""What every layer must do. A layer's own test is then about what it computes."""

import json

import keras
import numpy as np

from keras_vit.utils import keras_private
from tests.marks import EAGERLY

POLICIES = ["float32", "mixed_bfloat16"]
if keras.backend.backend() != "jax":  # whose CPU attention has no float16 product summed in float32
    POLICIES.append("mixed_float16")


class Apart(list):
    """Inputs, or their shapes, of a layer that takes each as an argument."""


def run_layer_test(make, input_shape, output_shape, sublayers=(), tmp_path=None, unknown=None, last=None):
    """Checks config, shapes, saving, precision and training of a layer.

    Args:
        make: Function of a `dtype` that returns a new layer.
        input_shape: Shape of an input, batch first; a list of shapes for a layer of several inputs, `Apart` for
            one that is called with each by itself.
        output_shape: The shape expected for it.
        sublayers: Names of the sub-layers that must exist and follow the policy.
        tmp_path: Where to save.
        unknown: The shape expected for inputs of an unknown batch, if not only its first axis is unknown.
        last: Name of the sub-layer that is float32 under every policy, and whose output is returned so.
    """
    rng = np.random.default_rng(0)
    x = _each(lambda shape: rng.normal(size=shape).astype("float32"), input_shape)
    _config(make("float32"))
    _shapes(make("float32"), x, output_shape, unknown or (None, *output_shape[1:]))
    _frozen(make("float32"), x)
    _saving(make("float32"), x, tmp_path)
    for policy in POLICIES:
        layer = make(policy)
        _precision(layer, x, sublayers, policy, last)
        if layer.trainable_variables and (EAGERLY or policy == "float32"):
            _training(make(policy), x, output_shape, policy)


def _config(layer):
    config = layer.get_config()
    assert type(layer).from_config(json.loads(json.dumps(config))).get_config() == config


def _frozen(layer, x):
    """A copy of a frozen layer is frozen, its normalization too."""
    copy = type(layer).from_config({**layer.get_config(), "trainable": False})
    _call(copy, x, training=True)
    before = [_numpy(v) for v in copy.weights]
    _call(copy, x, training=True)
    assert not copy.trainable_variables and not _model(copy, x).trainable_variables
    assert not any(part.trainable for part in keras_private.sublayers(copy))
    for old, new in zip(before, copy.weights):
        if new.dtype.startswith("float"):  # not the state of a seed
            np.testing.assert_array_equal(old, _numpy(new))


def _shapes(layer, x, output_shape, unknown):
    assert tuple(_call(layer.compute_output_shape, _each(np.shape, x))) == output_shape
    assert tuple(_call(layer, x).shape) == output_shape
    symbolic = _call(layer, _each(lambda x: keras.KerasTensor((None, *x.shape[1:])), x))
    assert tuple(symbolic.shape) == unknown


def _saving(layer, x, tmp_path):
    model = _model(layer, x)
    _shake(model)
    model.save(tmp_path / "layer.keras")
    loaded = keras.models.load_model(tmp_path / "layer.keras")  # safe mode, no custom_objects
    assert [v.path for v in loaded.weights] == [v.path for v in model.weights]
    np.testing.assert_array_equal(_numpy(loaded(_plain(x))), _numpy(model(_plain(x))))


def _precision(layer, x, sublayers, policy, last):
    output = _call(layer, x)
    returned = keras.DTypePolicy("float32" if last else policy).compute_dtype
    assert keras.backend.standardize_dtype(output.dtype) == returned
    assert last is None or layer(_each(lambda x: keras.KerasTensor(x.shape), x)).dtype == returned
    assert type(layer).from_config(layer.get_config()).dtype_policy.name == policy
    inner = {sub.name: sub for sub in keras_private.sublayers(layer, include_self=False)}
    assert set(sublayers) <= set(inner)
    assert last is None or inner.pop(last).dtype_policy.name == "float32"
    assert {sub.dtype_policy.name for sub in inner.values()} <= {policy}
    assert {keras.backend.standardize_dtype(v.dtype) for v in layer.weights} <= {"float32"}


def _training(layer, x, output_shape, policy):
    """Takes one training step. In float32, XLA compiles it and it must move every trainable variable.

    In mixed precision the step is eager, which takes a tenth of the time on TensorFlow, and none is taken on JAX;
    test_models.py compiles whole models there.
    """
    model = _model(layer, x)
    _shake(model)
    model.dtype_policy = policy  # scales the loss of float16
    compiled = policy == "float32"
    model.compile(keras.optimizers.SGD(10.0), "mse", jit_compile=compiled, run_eagerly=not compiled)
    before = [_numpy(v) for v in model.trainable_variables]
    target = np.random.default_rng(1).normal(size=output_shape).astype("float32")
    assert np.isfinite(model.train_on_batch(_plain(x), target))
    if compiled:
        still = [v.path for v, b in zip(model.trainable_variables, before) if np.array_equal(_numpy(v), b)]
        assert not still


def _model(layer, x):
    inputs = _each(lambda x: keras.Input(x.shape[1:]), x)
    return keras.Model(_plain(inputs), _call(layer, inputs))


def _each(function, x):
    """Applies a function to an input or a shape, or to each of a list of them."""
    return type(x)(map(function, x)) if isinstance(x, list) else function(x)


def _plain(x):
    return [*x] if isinstance(x, list) else x


def _call(function, x, **more):
    """Calls a layer with its input, its list of inputs, or each by itself."""
    return function(*x, **more) if isinstance(x, Apart) else function(x, **more)


def _shake(model):
    """Moves every weight off its initial value, so that nothing passes by being zero."""
    rng = np.random.default_rng(2)
    for variable in model.trainable_variables:
        variable.assign(_numpy(variable) + 0.1 * rng.normal(size=variable.shape))


def _numpy(x):
    return np.asarray(keras.ops.convert_to_numpy(x))

import numpy as np
import pytest
from keras import ops

from keras_vit import DepthHead
from tests.harness import run_layer_test
from tests.marks import few, once, slow_on_jax

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)


@slow_on_jax
@few(1)
@pytest.mark.parametrize(
    "options, count, output",
    [
        (dict(readout="project", doubles=True), 16, (2, 32, 48, 1)),  # maps of 6, 3 and 2 rows
        pytest.param(dict(size=(10, 17), end="sigmoid"), 17, (2, 10, 17, 1), marks=once),
        pytest.param(dict(readout="add", batch_norm=True, neck=(3, 4, 5)), 16, (2, 24, 40, 1), marks=once),
    ],
)
def test_layer(options, count, output, tmp_path):
    make = lambda dtype: DepthHead((3, 5), 4, factors=(2, 1, 0.5), hidden=6, **options, dtype=dtype)  # noqa: E731
    inside = ["conv0", "fusion0", "proj0", "first", "second"]
    run_layer_test(make, [(2, count, 8)] * 3, output, inside, tmp_path, last="depth")


def test_what_the_class_token_does():
    """Every patch is told it, or none is; the other tokens before the patches count nowhere."""
    tokens = RNG.normal(size=(1, 6, 8)).astype("float32")
    changed = {}
    for readout in ("ignore", "add", "project"):
        head = DepthHead((2, 2), 4, factors=(1,), readout=readout, end=None)
        before = np.asarray(head([ops.convert_to_tensor(tokens)]))
        for i in (0, 1, 5):
            other = tokens.copy()
            other[:, i] += 1
            changed[readout, i] = np.abs(np.asarray(head([ops.convert_to_tensor(other)])) - before).max() > 1e-6
    assert [changed[readout, 0] for readout in ("ignore", "add", "project")] == [False, True, True]
    assert not any(changed[readout, 1] for readout in ("ignore", "add", "project"))
    assert all(changed[readout, 5] for readout in ("ignore", "add", "project"))


def test_the_end_and_its_scale():
    tokens = RNG.normal(size=(2, 4, 8)).astype("float32")
    plain = DepthHead((2, 2), 4, factors=(1,), end=None)
    values = np.asarray(plain(tokens))
    for end, function in {"relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}.items():
        head = DepthHead((2, 2), 4, factors=(1,), end=end, scale=20)
        head.build(tokens.shape)
        head.set_weights(plain.get_weights())
        np.testing.assert_allclose(np.asarray(head(tokens)), 20 * function(values), rtol=1e-5, atol=1e-6)


def test_refused():
    for options, pattern in (
        (dict(readout="concatenate"), "readout"),
        (dict(end="softplus"), "end"),
        (dict(scale=0), "scale"),
        (dict(factors=(None, 1)), "powers of two from 1/16 to 16. Received"),
        (dict(neck=(3,)), "one entry per factor"),
        (dict(size=0), "size"),
    ):
        with pytest.raises(ValueError, match=pattern):
            DepthHead((2, 2), 4, **{"factors": (1, 1), **options})
    for shapes in ([(1, 4, 8)], [(1, 3, 8)] * 2, [(1, None, 8)] * 2, [(1, 2, 2, 8)] * 2):
        with pytest.raises(ValueError, match="must be 2 blocks' tokens .* with 2 x 2 patches. Received"):
            DepthHead((2, 2), 4, factors=(1, 1)).build(shapes)
    with pytest.raises(ValueError, match="with 2 x 2 patches after a class token"):
        DepthHead((2, 2), 4, factors=(1,), readout="add").build((1, 4, 8))

import numpy as np
import pytest

from keras_vit.layers import PixelHead
from tests.harness import run_layer_test
from tests.marks import few

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
TOKENS, MAP = RNG.normal(size=(2, 2, 3, 5)).astype("float32"), RNG.normal(size=(2, 4, 6, 7)).astype("float32")


@few(1)
@pytest.mark.parametrize("scale, depth", [(1, 0), (2, 1), (3, 2)])
def test_layer(scale, depth, tmp_path):
    make = lambda dtype: PixelHead(3, scale=scale, depth=depth, dtype=dtype)  # noqa: E731
    names = ["tokens", "pixels", *["branch0_conv0", "branch0_conv1"][: 2 * depth]]
    run_layer_test(make, [TOKENS.shape, MAP.shape], (2, 4 * scale, 6 * scale, 3), names, tmp_path)


def test_starts_at_zero():
    assert not np.asarray(PixelHead(3, scale=2, depth=1)([TOKENS, MAP])).any()


def test_is_a_linear_layer_of_each_token_and_a_shuffle_of_pixels():
    head = PixelHead(3, scale=2)
    head([TOKENS, MAP])
    kernel, bias = (RNG.normal(size=v.shape).astype("float32") for v in head.tokens.weights)  # (2, 2, 7, 5)
    head.tokens.set_weights([kernel, bias])
    last = RNG.normal(size=head.pixels.kernel.shape).astype("float32")  # (2, 2, 3, 7)
    head.pixels.set_weights([last, np.zeros(3, "float32")])
    patches = np.einsum("brcw,yxfw->brycxf", TOKENS, kernel).reshape(2, 4, 6, 7)
    wanted = np.einsum("bhwf,yxof->bhywxo", MAP + patches + bias, last).reshape(2, 8, 12, 3)
    np.testing.assert_allclose(np.asarray(head([TOKENS, MAP])), wanted, atol=1e-4)


def test_a_branch_adds_two_convolutions():
    head, plain = PixelHead(3, depth=1), PixelHead(3)
    head([TOKENS, MAP]), plain([TOKENS, MAP])
    last = np.ones(head.pixels.kernel.shape, "float32")
    for one in (head, plain):
        one.tokens.set_weights([np.zeros((2, 2, 7, 5)), np.zeros(7)])
        one.pixels.set_weights([last, np.zeros(3, "float32")])
    np.testing.assert_array_less(0.01, np.abs(np.asarray(head([TOKENS, MAP])) - np.asarray(plain([TOKENS, MAP]))).max())
    head.convs[1].set_weights([np.zeros((3, 3, 7, 7)), np.full(7, 2.0)])
    added = np.asarray(head([TOKENS, MAP])) - np.asarray(plain([TOKENS, MAP]))
    np.testing.assert_allclose(added, np.full(added.shape, 14.0), atol=1e-4)


def test_bad_input_is_named():
    with pytest.raises(
        ValueError, match=r"the second a multiple of the first. Received: \[\(2, 2, 3, 5\), \(2, 5, 6, 7\)\]"
    ):
        PixelHead(3)([TOKENS, np.zeros((2, 5, 6, 7))])
    with pytest.raises(ValueError, match="`channels` must be a positive integer. Received: channels=0"):
        PixelHead(0)
    with pytest.raises(ValueError, match="`depth` must be an integer, 0 or more. Received: depth=-1"):
        PixelHead(3, depth=-1)

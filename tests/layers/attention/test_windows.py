import numpy as np
import pytest
from keras import ops

from keras_vit import MultiHeadSelfAttention, vit
from keras_vit.layers.attention import windows
from keras_vit.models.counting import count_macs

pytestmark = pytest.mark.backend

WINDOWS = {"count": 2, "grid": (4, 6), "num_prefix": 8}  # two prefix tokens for each of four windows
X = np.random.default_rng(0).normal(size=(2, 32, 12)).astype("float32")


def window(x, row, column):
    """Returns the tokens of a window: its own prefix tokens, then its patches."""
    number, patches = 2 * row + column, x[:, 8:].reshape(2, 4, 6, 12)
    own = patches[:, 2 * row : 2 * row + 2, 3 * column : 3 * column + 3].reshape(2, 6, 12)
    return np.concatenate([x[:, 2 * number : 2 * number + 2], own], axis=1)


def test_each_window_is_cut_out_and_put_back():
    cut = np.asarray(windows.cut(ops.convert_to_tensor(X), **WINDOWS)).reshape(2, 4, 8, 12)
    for number in range(4):
        np.testing.assert_array_equal(cut[:, number], window(X, *divmod(number, 2)))
    again = windows.joined(ops.convert_to_tensor(cut.reshape(8, 8, 12)), **WINDOWS)
    np.testing.assert_array_equal(np.asarray(again), X)
    alone = {**WINDOWS, "num_prefix": 0}
    again = windows.joined(windows.cut(ops.convert_to_tensor(X[:, 8:]), **alone), **alone)
    np.testing.assert_array_equal(np.asarray(again), X[:, 8:])


def test_tokens_attend_to_their_window_alone():
    layer = MultiHeadSelfAttention(3, windows=WINDOWS)
    found = np.asarray(layer(X))
    plain = MultiHeadSelfAttention(3)
    plain.build((None, 8, 12))
    plain.set_weights(layer.get_weights())
    for number in range(4):
        place = divmod(number, 2)
        np.testing.assert_allclose(window(found, *place), np.asarray(plain(window(X, *place))), atol=1e-5)
    output, scores = layer(X, return_attention_scores=True)
    np.testing.assert_allclose(np.asarray(output), found, atol=1e-5)
    assert np.asarray(scores).shape == (2, 3, 32, 32)
    assert not np.asarray(scores)[:, :, ~windows.mask(**WINDOWS)[0, 0]].any()
    nothing = np.ones((2, 32, 32), bool)
    np.testing.assert_allclose(np.asarray(layer(X, attention_mask=nothing)), found, atol=1e-5)
    again = MultiHeadSelfAttention.from_config(layer.get_config())
    assert again.windows == WINDOWS


def test_a_model_has_windows_and_whole_blocks():
    sizes = dict(image_size=16, patch_size=4, width=8, depth=3, num_heads=2, num_classes=0, pooling="none")
    model = vit(None, **sizes, tokens={"class_token": True, "windows": 2, "whole_blocks": (1,)})
    assert [bool(model.get_layer(f"block_{i}").windows) for i in range(3)] == [True, False, True]
    assert model.output_shape == (None, 4 + 16, 8) and model.get_layer("encoder").num_own == 1
    images = np.random.default_rng(1).uniform(0, 255, (1, 16, 16, 3)).astype("float32")
    tokens = np.asarray(model.get_layer("encoder")(model.get_layer("patches")(model.get_layer("rescale")(images))))
    np.testing.assert_array_equal(tokens[:, 0], tokens[:, 3])  # copies of the class token, with its position
    whole = vit(None, **sizes, tokens={"class_token": True})
    assert whole.count_params() == model.count_params() and count_macs(model) < count_macs(whole) * 1.2


@pytest.mark.parametrize(
    "options, said",
    [
        (dict(tokens={"windows": 3}), "3 x 3 windows must divide the grid, .* Received: grid=.4, 4."),
        (dict(tokens={"windows": 2, "whole_blocks": (4,)}), "numbers of blocks from 0 to 1. Received: 4"),
        (dict(tokens={"windows": 2}, rotary="dinov3"), "no rotary or relative positions"),
        (
            dict(tokens={"windows": 2}, patch_dropout=0.5),
            "need all patches. Received: patch_dropout=0.5, windows=2",
        ),
        (dict(tokens={"windows": 0}), "windows"),
    ],
)
def test_refused(options, said):
    with pytest.raises(ValueError, match=said):
        vit(None, image_size=16, patch_size=4, width=8, depth=2, num_heads=2, num_classes=3, **options)

import keras
import numpy as np
import pytest

from keras_vit import layers
from keras_vit.utils import other_words

pytestmark = pytest.mark.backend


@pytest.mark.parametrize(
    "name, args, arguments, said",
    [
        (
            "PatchEncoder",
            (),
            dict(num_patches=16, projection_dim=64),
            "number of tokens is read.*keras_vit has width",
        ),
        ("PatchEncoder", (16, 64), {}, "takes `width` by place.*Received: 16, 64"),
        ("PatchEncoder", (64,), dict(cls_token=False), "keras_vit has class_token"),
        ("MultiHeadSelfAttention", (), dict(num_heads=4, key_dim=16), "width of a head.*`num_heads`, is read off"),
        ("MultiHeadSelfAttention", (4, 16), {}, "takes `num_heads` by place"),
        ("MultiHeadSelfAttention", (4,), dict(attn_drop=0.1), "keras_vit has attention_dropout"),
        ("TransformerBlock", (64, 4, 128), {}, "takes `num_heads` and `mlp_dim` by place"),
        (
            "TransformerBlock",
            (),
            dict(embed_dim=64, num_heads=4, ff_dim=128),
            "width is read.*keras_vit has mlp_dim",
        ),
        ("TransformerBlock", (4, 128), dict(rate=0.1), "keras_vit has dropout"),
        ("TransformerBlock", (4, 128), dict(mlp_ratio=4), "keras_vit has mlp_dim, the number of channels itself"),
        ("MLP", (), dict(hidden_units=[128, 64]), "keras_vit has hidden_dim"),
        ("CrossAttention", (4,), dict(key_dim=16), "is read off the input"),
        ("StochasticDepth", (), dict(drop_prob=0.1), "keras_vit has rate"),
        ("Patches", (8,), dict(num_patches=16), "is read off the input"),
        ("Rescale", (), dict(scale=1 / 255), "keras_vit has mean and std, on a scale of 0 to 1"),
        ("TokenPool", (), dict(pool_type="gap"), "keras_vit has pooling"),
        ("AdaptiveBlock", (4, 128), dict(qkv_biases=True), "Did you mean 'qkv_bias'"),
        ("Similarity", (), dict(nonsense=1), "Known: bias, pairs, scale"),
    ],
)
def test_the_words_of_others_are_translated(name, args, arguments, said):
    with pytest.raises(TypeError, match=f"`{name}`.*{said}"):
        getattr(layers, name)(*args, **arguments)


def test_a_word_is_translated_only_where_there_is_the_argument():
    for ours, theirs in other_words.ARGUMENTS.items():
        assert all(other_words.meant(word, {ours.partition(",")[0].split()[0]}) for word in theirs.split())
    assert other_words.meant("ff_dim", {"width"}) is None and other_words.meant("nonsense", {"width"}) is None


def test_arguments_of_keras_and_of_subclasses_pass():
    class Mine(layers.MLP):
        def __init__(self, hidden_dim, extra, **kwargs):
            super().__init__(hidden_dim, **kwargs)
            self.extra = extra

    mine = Mine(8, "more", dropout=0.1, name="mine", dtype="float32", trainable=False)
    assert (mine.extra, mine.dropout, mine.name, mine.trainable) == ("more", 0.1, "mine", False)
    with pytest.raises(TypeError, match="`Mine` has no argument 'drop'. keras_vit has dropout"):
        Mine(8, "more", drop=0.1)


def test_sizes_in_another_order_are_refused():
    for name in ("TransformerBlock", "DecoderBlock"):
        with pytest.raises(ValueError, match=r"`mlp_dim`.*Received: num_heads=64, mlp_dim=4"):
            getattr(layers, name)(64, 4)


@pytest.mark.parametrize("arguments", [(64,), (64, 64), (1, 64, 64)])
def test_a_second_tensor_is_no_mask(arguments):
    x = np.zeros((2, 64, 64), "float32")
    for layer in (layers.MultiHeadSelfAttention(4), layers.TransformerBlock(4, 128)):
        with pytest.raises(ValueError, match=r"`attention_mask` must be boolean.*`CrossAttention"):
            layer(x, np.zeros((2, *arguments)[-len(arguments) - 1 :], "float32"))
    with pytest.raises(ValueError, match="`attention_mask` must be boolean"):
        layers.CrossAttention(4)(x, x, x)


def test_a_mask_of_integers_is_one_of_truth_values():
    x = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")
    layer, mask = layers.MultiHeadSelfAttention(2), np.tril(np.ones((1, 6, 6), "int32"))
    found = [keras.ops.convert_to_numpy(layer(x, attention_mask=each)) for each in (mask, mask.astype(bool))]
    np.testing.assert_array_equal(*found)


def test_a_mask_of_two_axes_is_refused_since_it_would_broadcast():
    x = np.zeros((6, 6, 8), "float32")
    for layer in (layers.MultiHeadSelfAttention(2), layers.TransformerBlock(2, 16)):
        with pytest.raises(ValueError, match=r"`attention_mask` must be boolean.*Received: shape \(6, 6\), bool"):
            layer(x, attention_mask=np.ones((6, 6), bool))
        assert layer(x, attention_mask=np.ones((6, 1, 6), bool)).shape == x.shape  # of the batch's padding

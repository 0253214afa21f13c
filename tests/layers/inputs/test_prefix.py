import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import MergingBlock, PatchDropout, PatchEncoder, Patches, TokenPool, TransformerBlock
from keras_vit.layers.inputs.prefix import has_class_token, prefix_of

pytestmark = pytest.mark.backend

STATED = r"`num_prefix` of `{}`.* must be stated.* Received: num_prefix=None"


def tokens(**options):
    return PatchEncoder(8, **options)(Patches(4)(keras.Input((8, 8, 3))))


@pytest.mark.parametrize(
    "options, count",
    [({}, 1), (dict(class_token=False), 0), (dict(registers=4), 5), (dict(distillation_token=True), 2)],
)
def test_pooling_leaves_out_the_prefix_of_the_encoder(options, count):
    x = tokens(**options)
    pool = TokenPool("gap")
    pool(keras.layers.LayerNormalization()(TransformerBlock(2, 16)(x)) + x)
    assert pool.num_prefix == pool.get_config()["num_prefix"] == count


def test_it_is_kept_and_the_mean_is_that_of_the_patches():
    images = keras.Input((8, 8, 3))
    x = PatchEncoder(8, registers=2)(Patches(4)(images))
    model = keras.Model(images, [x, TokenPool("gap")(x)])
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    for each in (model, copy):
        every, mean = map(keras.ops.convert_to_numpy, each(np.ones((1, 8, 8, 3), "float32")))
        np.testing.assert_allclose(mean, every[:, 3:].mean(1), atol=1e-6)


def test_layers_that_keep_the_prefix_hand_it_on():
    drop, first, second, pool = PatchDropout(0.5), MergingBlock(2, 16, merged=1), MergingBlock(2, 16, merged=1), None
    x, sources = first(drop(tokens(registers=1)))
    x, _ = second(x, sources)
    pool = TokenPool("gap")
    pool(x)
    assert [each.num_prefix for each in (drop, first, second, pool)] == [2] * 4 and has_class_token(x)


def test_a_model_inside_and_a_sequence_of_layers_are_read():
    inner = keras_vit.vit(
        "Ti/4", image_size=8, width=8, depth=1, num_heads=2, mlp_dim=16, pooling="none", num_classes=0,
        tokens={"registers": 3},
    )  # fmt: skip
    assert prefix_of(inner(keras.Input((8, 8, 3)))) == 3
    model = keras.Sequential([keras.Input((8, 8, 3)), Patches(4), PatchEncoder(8, registers=1), TokenPool("gap")])
    assert model.layers[-1].num_prefix == 2


def test_the_class_token_is_asked_for_only_where_there_is_one():
    for options in (dict(class_token=False), dict(class_token=False, registers=2)):
        for pooling in ("token", "token+gap"):
            with pytest.raises(ValueError, match="needs a class token.*Received: tokens of a `PatchEncoder` without"):
                TokenPool(pooling)(tokens(**options))
    assert TokenPool()(np.ones((2, 3, 8), "float32")).shape == (2, 8)  # the first token, as it is asked for


@pytest.mark.parametrize("pooling", ["gap", "token+gap", "first"])
def test_where_it_is_not_known_it_must_be_stated(pooling):
    for x in (np.ones((2, 3, 8), "float32"), keras.Input((3, 8)), tokens()[:, 1:]):
        with pytest.raises(ValueError, match=STATED.format("TokenPool")):
            TokenPool(pooling)(x)
        assert TokenPool(pooling, num_prefix=1)(x).shape[-1] % 8 == 0


def test_other_layers_say_so_too():
    x = np.ones((2, 5, 8), "float32")
    for layer in (PatchDropout(0.5), MergingBlock(2, 16, merged=1)):
        with pytest.raises(ValueError, match=STATED.format(type(layer).__name__)):
            layer(x)


def test_many_layers_that_keep_the_prefix_are_each_walked_once():
    x, sources = tokens(), None
    for _ in range(40):
        block = MergingBlock(2, 16, merged=0)
        x, sources = block(x, sources) if sources is not None else block(x)
    assert has_class_token(x) and prefix_of(x) == 1


@pytest.mark.parametrize(
    "moved",
    [
        lambda x: x[:, ::-1],
        lambda x: keras.ops.roll(x, 1, 1),
        lambda x: keras.ops.flip(x, 1),
        lambda x: keras.layers.Concatenate(1)([x[:, 1:], x[:, :1]]),
        lambda x: keras.layers.Lambda(lambda y: y[:, ::-1])(x),
    ],
)
def test_tokens_that_moved_have_no_known_prefix(moved):
    tokens = TransformerBlock(2, 8)(moved(PatchEncoder(8)(keras.Input((4, 3)))))
    with pytest.raises(ValueError, match="`num_prefix` of `TokenPool`.* must be stated"):
        TokenPool("gap")(tokens)
    assert TokenPool("gap", num_prefix=1)(tokens).shape == (None, 8)

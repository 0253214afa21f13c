import keras
import numpy as np
import pytest

from keras_vit import MLP, ConvStem, MaskDecoder, MultiHeadSelfAttention, TokenPool, TransformerBlock
from keras_vit.layers.base import Layer
from tests.marks import few, first_everywhere, once, slow_on_jax

pytestmark = pytest.mark.backend


class Owner(Layer):
    def __init__(self, count, *, switch=True, **kwargs):
        super().__init__(**kwargs)
        self.count, self.switch = count, switch

    def build(self, input_shape):
        self.inner = keras.layers.Dense(self.count, name="inner")
        self.inner.build(input_shape)


class Heir(Owner):
    def __init__(self, count, size=2, **kwargs):
        super().__init__(count, **kwargs)
        self.size = size

    def build(self, input_shape):
        super().build(input_shape)
        self.more = MLP(4, name="more")
        self.more.build(input_shape)


def built(layer, width=4):
    layer.build((None, width))
    return layer


def copied(layer, width=4):
    return built(type(layer).from_config(layer.get_config()), width)


def model(seed=0):
    """Returns a model of layers with layers inside, and the images' tokens."""
    tokens = keras.Input((9, 16))
    x = TransformerBlock(2, 32, name="block")(tokens)
    x = MaskDecoder(3, 2, 32, depth=1, name="masks")(x)
    x = keras.layers.Dense(16, name="between")(x)
    made = keras.Model(tokens, TokenPool("map", num_prefix=0, num_heads=2, mlp_dim=32, name="pool")(x))
    rng = np.random.default_rng(seed)
    made.set_weights([w + 0.1 * rng.normal(size=w.shape) for w in made.get_weights()])
    return made, rng.normal(size=(2, 9, 16)).astype("float32")


def trained(made):
    return [v.path for v in made.trainable_variables]


@pytest.mark.parametrize(
    "layer, shape",
    [
        (TransformerBlock(2, 8), (1, 5, 4)),
        (MultiHeadSelfAttention(2), (1, 5, 4)),
        (MLP(8), (1, 5, 4)),
        (ConvStem((6,)), (1, 8, 8, 3)),
    ],
)
def test_another_width_is_refused_when_a_model_is_put_together(layer, shape):
    layer(keras.Input(batch_shape=shape))
    assert layer(keras.Input(batch_shape=(None, *shape[1:]))).shape[0] is None
    for inputs in keras.Input(batch_shape=(*shape[:-1], 7)), np.zeros((*shape[:-1], 7), "float32"):
        with pytest.raises(ValueError, match=f"axis -1 of input shape to have value {shape[-1]}.*7"):
            layer(inputs)


@pytest.mark.parametrize("layer", [TransformerBlock(2, 8), MultiHeadSelfAttention(2)])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 5, 4)])
def test_tokens_of_another_number_of_axes_are_refused_before_anything_is_built(layer, shape):
    with pytest.raises(ValueError, match=f"expected ndim=3, found ndim={len(shape)}"):
        layer(np.zeros(shape, "float32"))
    assert not layer.built


def test_a_configuration_holds_the_arguments_of_a_class_and_of_those_above_it():
    config = Heir(2, switch=False, name="mine").get_config()
    assert (config["count"], config["size"], config["switch"], config["name"]) == (2, 2, False, "mine")
    assert "parts" not in config and "parts" not in copied(Heir(2)).get_config()


@pytest.mark.parametrize("trainable", [True, False])
def test_the_layers_inside_are_what_the_layer_is(trainable):
    layer = built(MLP(8, trainable=trainable))
    assert [part.trainable for part in (layer.fc1, layer.fc2)] == [trainable] * 2
    assert len(layer.trainable_variables) == (4 if trainable else 0)


def test_what_was_changed_in_the_layers_inside_is_changed_in_a_copy():
    layer = built(Heir(2))
    layer.inner.enable_lora(1, lora_alpha=3)
    layer.more.fc1.trainable = False
    layer.more.fc2.bias.trainable = False
    copy = copied(layer)
    assert copy.get_config() == layer.get_config() == copied(copy).get_config()
    assert trained(copy) == trained(layer) and len(trained(layer)) == 4  # LoRA's two, a bias, a kernel
    assert (copy.inner.lora_rank, copy.inner.lora_alpha) == (1, 3) and not copy.more.fc1.trainable


def test_a_frozen_layer_says_nothing_of_its_parts():
    layer = built(MLP(8))
    layer.trainable = False
    assert "parts" not in layer.get_config() and not trained(copied(layer))


@slow_on_jax
@few(1)
@pytest.mark.parametrize("mode", first_everywhere("int8", "int4", "float8"))
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_a_quantized_model_is_saved(mode, tmp_path):
    made, tokens = model()
    made.quantize(mode)
    made.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert {v.path: v.dtype for v in loaded.weights} == {v.path: v.dtype for v in made.weights}
    np.testing.assert_array_equal(loaded(tokens), made(tokens))
    if mode == "int8":
        copy = keras.models.clone_model(made)
        copy.set_weights(made.get_weights())
        np.testing.assert_array_equal(copy(tokens), made(tokens))


@once
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_one_quantized_layer_with_settings_of_its_own(tmp_path):
    made, tokens = model()
    config = keras.quantizers.Int4QuantizationConfig(block_size=8)
    made.quantize("int4", config=config, filters="fc1")
    made.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    mlp = loaded.get_layer("block").mlp
    assert (mlp.fc1.quantization_mode, mlp.fc2.quantization_mode) == ("int4", None)
    np.testing.assert_array_equal(loaded(tokens), made(tokens))


@pytest.mark.parametrize("number", [np.int64(4), np.array(4), np.uint8(4)])
def test_numbers_of_numpy_are_python_s(number):
    assert type(MLP(number, dropout=np.float32(0.5)).get_config()["hidden_dim"]) is int
    assert built(MLP(number))(np.zeros((2, 4), "float32")).shape == (2, 4)

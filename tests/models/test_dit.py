import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import dit
from keras_vit.models.dit import classes_of, is_dit, none_of, reads_texts
from keras_vit.utils.resampling import sincos_2d
from tests.dits import given, given_texts, of_texts, small

pytestmark = pytest.mark.backend


def test_names_of_layers_and_weights_are_public():
    model = small()
    names = "block_0 block_1 condition encoder head images label labels patches rescale silu time times"
    assert " ".join(sorted(layer.name for layer in model.layers)) == names
    assert [f"{v.path} {tuple(v.shape)}" for v in model.weights if not v.path.startswith("block_1")] == [
        "time/fc1/kernel (256, 16)",
        "time/fc1/bias (16,)",
        "time/fc2/kernel (16, 16)",
        "time/fc2/bias (16,)",
        "label/embeddings (4, 16)",
        "encoder/position_embedding (1, 6, 16)",
        "encoder/projection/kernel (16, 16)",
        "encoder/projection/bias (16,)",
        "block_0/attention/qkv/kernel (16, 48)",
        "block_0/attention/qkv/bias (48,)",
        "block_0/attention/proj/kernel (16, 16)",
        "block_0/attention/proj/bias (16,)",
        "block_0/mlp/fc1/kernel (16, 64)",
        "block_0/mlp/fc1/bias (64,)",
        "block_0/mlp/fc2/kernel (64, 16)",
        "block_0/mlp/fc2/bias (16,)",
        "block_0/modulation/kernel (16, 96)",
        "block_0/modulation/bias (96,)",
        "head/modulation/kernel (16, 32)",
        "head/modulation/bias (32,)",
        "head/pixels/kernel (16, 16)",
        "head/pixels/bias (16,)",
    ]


def test_begins_with_zeros_and_the_positions_of_the_paper():
    model = small(random=False)
    assert not np.asarray(model(given())).any()
    expected = sincos_2d((2, 3), 16, inclusive=False)
    np.testing.assert_array_equal(np.asarray(model.get_layer("encoder").position_embedding)[0], expected)


@pytest.mark.parametrize(
    "options", [{}, {"own_conditions": True, "mlp_epsilon": 1e-5, "rotary": "rope-vit", "block": {"qk_norm": True}}]
)
def test_every_input_matters_and_a_file_gives_the_same(options, tmp_path):
    model, x = small(**options), given()
    output = np.asarray(model(x))
    assert output.shape == (2, 8, 12, 1) and is_dit(model) and classes_of(model) == 3
    for name, other in {"images": x["images"] + 1, "times": x["times"] / 2, "labels": x["labels"][::-1]}.items():
        assert np.abs(np.asarray(model({**x, name: other})) - output).max() > 1e-2, name
    model.save(tmp_path / "dit.keras")
    np.testing.assert_array_equal(np.asarray(keras.models.load_model(tmp_path / "dit.keras")(x)), output)


def test_published_sizes():
    """DiT-XL/2 has 675 million weights; its table of positions counts here, and theirs not (arXiv:2212.09748)."""
    from keras_vit.utils.keras_private import shapes_only

    counts = [shapes_only(lambda: dit("XL/2", out_channels=8, depth=n).count_params()) for n in (1, 2)]  # noqa: B023
    assert counts[0] + 27 * (counts[1] - counts[0]) == 675_129_632
    assert dit("S/4", image_size=16, depth=1).name == "dit_S_4"


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_near(policy):
    model, x = small(), given()
    other = small(dtype=policy)
    other.set_weights(model.get_weights())
    output = other(x)
    assert keras.backend.standardize_dtype(output.dtype) == "float32" and other.dtype_policy.name == policy
    np.testing.assert_allclose(np.asarray(output), np.asarray(model(x)), atol=0.15)


def test_multiply_adds():
    """With 6 tokens: per token 16 x 16 projection, 12 * 16^2 in a block, 16 x 16 pixels; once a vector's layers."""
    once = 256 * 16 + 16 * 16 + 2 * 16 * 96 + 16 * 32
    assert keras_vit.count_macs(small()) == 6 * (256 + 2 * 12 * 256 + 256) + 2 * 2 * 36 * 16 + once


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(variant="R50+B/16"), "`variant` must be a size and a patch size, such as 'S/2'. Received: variant='R50"),
        (dict(image_size=30), "`image_size` must be a multiple of the patch size. Received: .*30.* with patches of"),
        (dict(num_classes=0), "`num_classes` must be a positive integer"),
        (dict(out_channels=0), "`out_channels` must be a positive integer"),
        (dict(block={"layer_scale": 0.1}), "layer_scale None, and parallel False. Received"),
        (dict(time_scale=0), "`scale` must be a finite number above 0"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        dit(**{"variant": "S/4", "depth": 1, **options})


def test_texts_in_place_of_labels():
    model = of_texts()
    names = "block_0 block_1 condition encoder head images patches pooled rescale silu text texts time times"
    assert " ".join(sorted(layer.name for layer in model.layers)) == names
    paths = {weight.path: tuple(weight.shape) for weight in model.weights}
    assert paths["pooled/kernel"] == (12, 16) and paths["block_0/cross/key/kernel"] == (12, 16)
    assert paths["block_0/modulation/kernel"] == (16, 9 * 16) and "words/word_embedding" in paths
    assert is_dit(model) and reads_texts(model) and not reads_texts(small()) and classes_of(model) == 0
    np.testing.assert_array_equal(none_of(model), [1, 0, 0, 0, 0])
    assert none_of(small()) == 3
    with pytest.raises(ValueError, match="the ids of a text without words in its metadata, as 'empty'. Received: 'dit"):
        none_of(of_texts(metadata={"words": ["a"]}))


@pytest.mark.parametrize("options", [{}, {"cross_attention": False}, {"own_conditions": True, "predicts": "image"}])
def test_every_word_matters_and_padding_does_not(options, tmp_path):
    model, x = of_texts(**options), given_texts()
    output = np.asarray(model(x))
    for other in ([3, 5, 6, 1, 0], [4, 3, 6, 1, 0], [3, 4, 7, 1, 0]):  # "a blue cat", "red a cat", "a red dog"
        changed = np.asarray(model({**x, "texts": np.array([other, *x["texts"][1:]], "int32")}))
        assert np.abs(changed[0] - output[0]).max() > 1e-2
        np.testing.assert_allclose(changed[1:], output[1:], atol=1e-5)
    after = np.array([[3, 4, 6, 1, 7], [5, 1, 4, 1, 6], [1, 2, 3, 4, 5]], "int32")
    np.testing.assert_allclose(np.asarray(model({**x, "texts": after})), output, atol=1e-5)
    model.save(tmp_path / "dit.keras")
    np.testing.assert_array_equal(np.asarray(keras.models.load_model(tmp_path / "dit.keras")(x)), output)


def test_a_longer_table_of_positions_draws_the_same():
    short, long, x = of_texts(), of_texts(tower={"length": 9}), given_texts()
    for ours, theirs in zip(long.weights, short.weights):
        value = np.asarray(theirs)
        ours.assign(value if ours.shape == theirs.shape else np.concatenate([value, np.full((4, 12), 9.0)]))
    longer = np.pad(x["texts"], ((0, 0), (0, 4)))
    np.testing.assert_allclose(np.asarray(long({**x, "texts": longer})), np.asarray(short(x)), atol=1e-4)


def test_the_velocity_of_a_predicted_image_leads_to_it():
    model, x = small(predicts="image"), given(3)
    plain = small()
    plain.set_weights(model.get_weights())
    x["times"] = np.array([0.0, 0.4, 0.995], "float32")
    image, left = np.asarray(plain(x)), np.array([1.0, 0.6, 0.02])[:, None, None, None]
    np.testing.assert_allclose(np.asarray(model(x)), (image - x["images"]) / left, rtol=1e-4, atol=1e-4)
    assert model.layers[-1].name == "head"


def test_bad_texts():
    tower = dict(vocabulary=8, length=5, width=12, depth=1, num_heads=2)
    sizes = {"variant": "S/4", "depth": 1}
    message = "`text` must be a model from keras_vit.text_tower with `end`, the id after a text. Received: "
    with pytest.raises(ValueError, match=f"{message}'text'"):
        dit(**sizes, text=keras_vit.text_tower(**tower, pooling="last"))
    with pytest.raises(ValueError, match=f"{message}7"):
        dit(**sizes, text=7)
    with pytest.raises(ValueError, match="`cross_attention` is for a text tower. Received: True without `text`"):
        dit(**sizes, cross_attention=True)
    with pytest.raises(ValueError, match="`cross_attention` must be True or False"):
        dit(**sizes, cross_attention="yes", text=keras_vit.text_tower(**tower, end=1))
    with pytest.raises(ValueError, match="A predicted image has the channels of the images, 4. Received: out_chan.*=8"):
        dit(**sizes, predicts="image", out_channels=8)
    with pytest.raises(ValueError, match="`predicts` must be one of"):
        dit(**sizes, predicts="noise")

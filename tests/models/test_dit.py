import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import dit
from keras_vit.models.dit import classes_of, is_dit
from keras_vit.utils.resampling import sincos_2d
from tests.dits import given, small

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
        (dict(block={"layer_scale": 0.1}), "layer_scale None. Received"),
        (dict(time_scale=0), "`scale` must be a finite number above 0"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        dit(**{"variant": "S/4", "depth": 1, **options})

import keras
import numpy as np
import pytest

from keras_vit import text_tower
from tests.checkpoints.helpers import randomized, unexpected
from tests.marks import how

pytestmark = pytest.mark.backend

SIZES = dict(vocabulary=30, length=6, width=16, depth=2, num_heads=4, mlp_dim=24)
IDS = np.array([[5, 7, 2, 0, 0, 0], [5, 8, 9, 11, 12, 2]], "int32")
CLIP = dict(end=2, projection=12, gelu="quick", epsilon=1e-5)
SIGLIP = dict(causal=False, pooling="last", projection=12, projection_bias=True)


def answers(model, ids):
    return keras.ops.convert_to_numpy(model(ids, training=False))


def test_names_of_layers_and_weights_are_public():
    model = text_tower(**SIZES, **SIGLIP)
    assert " ".join(layer.name for layer in model.layers) == "texts words block_0 block_1 norm pool projection"
    outside = [f"{v.path} {tuple(v.shape)}" for v in model.weights if not v.path.startswith("block_")]
    assert outside == [
        "words/word_embedding (30, 16)",
        "words/position_embedding (6, 16)",
        "norm/gamma (16,)",
        "norm/beta (16,)",
        "projection/kernel (16, 12)",
        "projection/bias (12,)",
    ]
    assert model.name == "text" and model.inputs[0].dtype == "int32" and model.output_shape == (None, 12)


def test_what_stands_behind_the_end_matters_only_without_a_causal_mask():
    changed = IDS.copy()
    changed[0, 3:] = 13
    for options, same in ((CLIP, True), (CLIP | {"causal": False}, False), (SIGLIP, False)):
        model = randomized(text_tower(**SIZES, **options))
        before, after = answers(model, IDS), answers(model, changed)
        assert np.allclose(before[0], after[0], atol=1e-6) == same
        np.testing.assert_allclose(before[1], after[1], atol=1e-6)


def test_each_pooling_takes_its_token():
    ids = np.array([[5, 7, 2, 9, 2, 0]], "int32")
    for options, place in ((dict(end=2), 2), (dict(pooling="largest"), 3), (dict(pooling="last"), 5),
                           (dict(pooling="first"), 0)):  # fmt: skip
        model = randomized(text_tower(**SIZES, **options))
        tokens = keras.Model(model.input, model.get_layer("norm").output)
        np.testing.assert_array_equal(answers(model, ids), answers(tokens, ids)[:, place])


def test_an_encoder_returns_all_tokens_and_does_not_see_padding():
    """Its words equal those of the text without padding."""
    options = dict(causal=False, pooling="none", masked_id=0, dropout=0.1)
    model = randomized(text_tower(**SIZES, **options))
    assert model.output_shape == (None, 6, 16) and "mask" in {layer.name for layer in model.layers}
    short = text_tower(**{**SIZES, "length": 3}, **options)
    short.set_weights([w[:3] if w.shape == (6, 16) else w for w in model.get_weights()])
    np.testing.assert_allclose(answers(model, IDS[:1])[:, :3], answers(short, IDS[:1, :3]), atol=1e-5)
    random = keras.ops.convert_to_numpy(model(IDS, training=True))
    assert not np.allclose(random, answers(model, IDS))  # the dropout


@pytest.mark.parametrize("options", [CLIP, SIGLIP])
def test_trains_compiled_saves_and_loads(options, tmp_path):
    model = text_tower(**SIZES, **options, metadata={"words": ["a", "b"]})
    model.compile("sgd", "mse", jit_compile=True)
    before = answers(model, IDS)
    assert np.isfinite(model.train_on_batch(IDS, np.ones((2, 12), "float32")))
    assert not np.allclose(answers(model, IDS), before)
    model.save(tmp_path / "text.keras")
    loaded = keras.models.load_model(tmp_path / "text.keras")
    np.testing.assert_array_equal(answers(loaded, IDS), answers(model, IDS))
    assert loaded.get_layer("words").metadata == {"words": ["a", "b"]} and loaded.name == "text"


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_counts_with_integers(policy):
    if policy == "mixed_float16" and keras.backend.backend() == "jax":
        pytest.skip("see tests/harness.py")
    sizes, ids = SIZES | {"vocabulary": 5000}, np.array([[4097, 4099, 2, 0, 0, 0]], "int32")
    plain, mixed = (randomized(text_tower(**sizes, **CLIP, dtype=dtype)) for dtype in ("float32", policy))
    np.testing.assert_allclose(answers(mixed, ids), answers(plain, ids), atol=0.15)
    assert mixed.dtype_policy.name == policy and mixed.inputs[0].dtype == "int32"
    mixed.compile("sgd", "mse", **how(compiled=False))
    assert np.isfinite(mixed.train_on_batch(ids, np.zeros((1, 12), "float32")))


def test_bad_arguments():
    wrong = [
        (dict(), "pooling='end' needs `end`, the id that ends a text. Received: end=None"),
        (dict(end=30), "must be an id of the vocabulary, for pooling='end'. Received: end=30, vocabulary=30"),
        (dict(end=2, pooling="last"), "Received: end=2, vocabulary=30, pooling='last'"),
        (dict(pooling="mean"), "`pooling` must be one of 'end', .*'first', 'none'. Received: pooling='mean'"),
        (dict(pooling="none", projection=8), "leave `projection` out. Received: projection=8"),
        (dict(pooling="none", masked_id=30), "`masked_id` must be below the vocabulary, 30. Received: masked_id=30"),
        (dict(end=2, depth=2000), "at most 1000 blocks. Received: depth=2000"),
        (dict(end=2, num_heads=3), "A width of 16 cannot be split into 3 heads"),
        (dict(end=2, causal="no"), "`causal` must be True or False. Received: causal='no'"),
    ]
    assert not unexpected([(lambda given=given: text_tower(**{**SIZES, **given}), says) for given, says in wrong])

import keras
import numpy as np
import pytest

from keras_vit import class_names, from_pretrained, load_weights, preprocess, save_checkpoint, vilt
from keras_vit.checkpoints.arguments import arguments_of
from tests.checkpoints.helpers import randomized, unexpected
from tests.marks import how

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
SIZES = dict(vocabulary=30, length=6, image_size=(8, 12), width=16, depth=2, num_heads=4, mlp_dim=24, num_classes=5)
IDS = np.array([[5, 7, 2, 0, 0, 0], [5, 8, 9, 11, 12, 2]], "int32")
PIXELS = RNG.integers(0, 256, (2, 8, 12, 3)).astype("uint8")


def small(**options):
    return vilt("Ti/4", **{**SIZES, **options})


def answers(model, texts=IDS, images=PIXELS):
    return keras.ops.convert_to_numpy(model({"images": images, "texts": texts}, training=False))


def test_names_of_layers_and_weights_are_public():
    model = small(dropout=0.1)
    names = "answer answer_gelu answer_norm block_0 block_1 encoder head images mask norm patches pool pre_logits "
    names += "rescale texts tokens words words_drop words_norm"
    assert " ".join(sorted(layer.name for layer in model.layers)) == names
    outside = [f"{v.path} {tuple(v.shape)}" for v in model.weights if not v.path.startswith(("block_", "words_drop"))]
    assert sorted(path for path in outside if "seed" not in path) == [
        "answer/bias (32,)",
        "answer/kernel (16, 32)",
        "answer_norm/beta (32,)",
        "answer_norm/gamma (32,)",
        "encoder/class_token (1, 1, 16)",
        "encoder/position_embedding (1, 7, 16)",
        "encoder/projection/bias (16,)",
        "encoder/projection/kernel (48, 16)",
        "head/bias (5,)",
        "head/kernel (32, 5)",
        "norm/beta (16,)",
        "norm/gamma (16,)",
        "pre_logits/bias (16,)",
        "pre_logits/kernel (16, 16)",
        "words/position_embedding (6, 16)",
        "words/word_embedding (30, 16)",
        "words_norm/beta (16,)",
        "words_norm/gamma (16,)",
    ]
    assert model.name == "vilt_Ti_4" and {x.name: x.dtype for x in model.inputs}["texts"] == "int32"
    assert small(num_classes=0).output_shape == (None, 16)
    assert small(answer_dim=0, pad=None).get_layer("head").kernel.shape == (16, 5)


def test_the_published_size():
    """Counts of transformers' ViltModel, less the vectors of two types of words and two modalities."""
    from keras_vit.utils.keras_private import shapes_only

    count = shapes_only(lambda: vilt(vocabulary=30522, length=40, num_classes=0).count_params())
    assert count == 111_595_008 - 4 * 768


@pytest.mark.parametrize("pad, matters", [(0, False), (None, True)])
def test_what_fills_a_text_is_seen_only_without_a_mask(pad, matters):
    model = randomized(small(pad=pad))
    before, table = answers(model), model.get_layer("words").word_embedding
    table.assign(keras.ops.convert_to_numpy(table) + np.pad(np.ones((1, 1)), ((0, 29), (0, 15))))
    after = answers(model)
    assert np.allclose(before[0], after[0], atol=1e-6) != matters
    np.testing.assert_allclose(before[1], after[1], atol=1e-6)


def test_both_the_picture_and_the_words_matter():
    model = randomized(small())
    first = answers(model)
    assert np.abs(first - answers(model, IDS[::-1])).min(axis=1).max() > 1e-4
    assert np.abs(first - answers(model, images=PIXELS[::-1])).min(axis=1).max() > 1e-4


def test_trains_compiled_saves_and_loads(tmp_path):
    model = small(metadata={"words": ["<pad>", "red"], "labels": list("abcde")}, dropout=0.1, stochastic_depth=0.1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=True)
    before, x, y = answers(model), {"images": PIXELS, "texts": IDS}, np.array([1, 2])
    assert np.isfinite(model.train_on_batch(x, y))
    assert not np.allclose(answers(model), before)
    model.save(tmp_path / "vilt.keras")
    loaded = keras.models.load_model(tmp_path / "vilt.keras")
    np.testing.assert_array_equal(answers(loaded), answers(model))
    assert loaded.get_layer("words").metadata == {"words": ["<pad>", "red"]} and class_names(loaded) == tuple("abcde")
    assert preprocess(loaded, [PIXELS[0, :, :8], PIXELS[0, ..., 0]]).shape == (2, 8, 12, 3)  # a gray one too


def test_every_weight_learns():
    model = randomized(small())
    before = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
    model.compile(keras.optimizers.SGD(1.0), "mse", **how(compiled=False))
    model.train_on_batch({"images": PIXELS, "texts": IDS}, np.ones((2, 5), "float32"))
    still = [v.path for v, old in zip(model.trainable_variables, before) if np.array_equal(old, v)]
    assert not still


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy):
    if policy == "mixed_float16" and keras.backend.backend() == "jax":
        pytest.skip("see tests/harness.py")
    ids = np.array([[4097, 4099, 2, 0, 0, 0]] * 2, "int32")
    plain, mixed = (randomized(small(vocabulary=5000, dtype=dtype)) for dtype in ("float32", policy))
    np.testing.assert_allclose(answers(mixed, ids), answers(plain, ids), atol=0.2)
    assert mixed.dtype_policy.name == policy and mixed.output.dtype == "float32"
    mixed.compile("sgd", "mse", **how(compiled=False))
    assert np.isfinite(mixed.train_on_batch({"images": PIXELS, "texts": ids}, np.zeros((2, 5), "float32")))


def test_arguments_go_in_and_come_out(tmp_path):
    given = dict(pad=3, image_size=(8, 12), patch_size=(4, 4), answer_dim=7, word_epsilon=1e-3, mean=0.1,
                 norm={"rms_norm": False, "epsilon": 1e-5})  # fmt: skip
    found = arguments_of(small(**given), words=True)
    assert {name: found[name] for name in [*SIZES, *given]} == SIZES | given
    assert not unexpected(
        [
            (lambda: arguments_of(small()), "a model from `keras_vit.vit`. Received: 'vilt_Ti_4', which reads words"),
            (lambda: save_checkpoint(small(), tmp_path / "a.npz"), "Received: 'vilt_Ti_4', which reads words too"),
        ]
    )


def test_a_stem_looks_before_the_patches(tmp_path):
    stem = ((4, 2), (6, 2))
    model = randomized(small(stem=stem, patch_size=1, metadata={"words": ["<pad>", "red"]}))
    model.get_layer("stem").set_weights([np.abs(w) for w in model.get_layer("stem").get_weights()])  # its variances
    assert model.get_layer("patches").grid(model.get_layer("patches").input.shape) == (2, 3)
    assert np.abs(answers(model) - answers(model, images=PIXELS[::-1])).max() > 1e-4
    model.save(tmp_path / "vilt.keras")
    for other in (
        from_pretrained(tmp_path / "vilt.keras"),
        load_weights(small(stem=stem, patch_size=1), tmp_path / "vilt.keras"),
    ):
        np.testing.assert_allclose(answers(other), answers(model), atol=1e-5)
        assert other.get_layer("words").metadata == {"words": ["<pad>", "red"]}
    wide = from_pretrained(tmp_path / "vilt.keras", image_size=(16, 12), num_classes=3)
    assert answers(wide, images=np.zeros((2, 16, 12, 3))).shape == (2, 3)


def test_bad_arguments():
    wrong = [
        (dict(pad=30), "`pad` must be an id of the vocabulary. Received: pad=30, vocabulary=30"),
        (dict(length=0), "`length` must be a positive integer. Received: length=0"),
        (dict(variant="R50+L/32"), "must be a size and a patch size, such as 'B/32'. Received: variant='R50.L/32'"),
        (dict(image_size=10), "The patch size must divide the image size"),
        (dict(num_heads=3), "A width of 16 cannot be split into 3 heads"),
        (dict(answer_dim=-1), "`answer_dim` must be an integer, 0 or more. Received: answer_dim=-1"),
        (dict(block={"heads": 3}), "`block` must be a dictionary with keys among"),
        (dict(word_epsilon=0), "`word_epsilon` must be a finite number above 0. Received: word_epsilon=0"),
    ]
    assert not unexpected(
        [(lambda given=given: vilt(**{"variant": "Ti/4", **SIZES, **given}), says) for given, says in wrong]
    )

import math
import pathlib

import keras
import numpy as np
import pytest

from keras_vit import HYBRIDS, VARIANTS, ResNetStem, vit
from keras_vit.models import counting, variants
from tests.marks import slow, slow_on_jax

pytestmark = pytest.mark.backend

TINY = dict(width=16, depth=2, num_heads=2, mlp_dim=32)
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 12, 8, 3)).astype("uint8")

# google-research/vision_transformer, vit_jax/models_test.py; timm, results/; KerasHub, presets.
GAP = dict(pooling="gap")
BARE = dict(num_classes=0)
DEIT3 = dict(tokens={"class_position": False}, block={"layer_scale": 1e-6})
OF_22B = dict(block={"parallel": True, "qk_norm": True, "qkv_bias": False}, norm={"rms_norm": True})
PARAMETERS = [
    ("Ti/16", {}, 5_717_416),
    ("S/32", {}, 22_878_952),
    ("S/32", GAP, 22_878_184),
    ("S/16", {}, 22_050_664),
    ("S/16", GAP, 22_049_896),
    ("B/32", {}, 88_224_232),
    ("B/32", GAP, 88_222_696),
    ("B/16", {}, 86_567_656),
    ("B/16", GAP, 86_566_120),
    ("B/8", {}, 86_576_872),
    ("L/32", {}, 306_535_400),
    ("L/16", {}, 304_326_632),
    ("H/14", {}, 632_045_800),
    ("Ti/16", dict(image_size=384), 5_790_376),
    ("S/32", dict(image_size=384), 22_915_432),
    ("S/16", dict(image_size=384), 22_196_584),
    ("B/32", dict(image_size=384), 88_297_192),
    ("B/16", dict(image_size=384), 86_859_496),
    ("L/32", dict(image_size=384), 306_632_680),
    ("L/16", dict(image_size=384), 304_715_752),
    ("Ti/16", BARE, 5_524_416),
    ("S/16", BARE, 21_665_664),
    ("B/16", BARE, 85_798_656),
    ("B/32", BARE, 87_455_232),
    ("L/16", BARE, 303_301_632),
    ("L/32", BARE, 305_510_400),
    ("H/14", BARE, 630_764_800),
    ("B/16", dict(image_size=384, **BARE), 86_090_496),
    ("L/16", dict(image_size=384, **BARE), 303_690_752),
    ("B/32", dict(image_size=384, **BARE), 87_528_192),
    ("L/32", dict(image_size=384, **BARE), 305_607_680),
    ("S/8", {}, 22_055_272),
    ("L/14", {}, 304_203_752),
    ("g/14", {}, 1_012_611_432),
    ("G/14", {}, 1_844_440_680),
    ("22B/14", OF_22B, 21_756_703_720),
    ("B/16", dict(num_classes=21_843), 102_595_923),
    ("B/16", dict(num_classes=21_843, representation_size=768), 103_186_515),
    ("S/16", dict(position="sincos2d", representation_size=True, **GAP), 22_122_472),
    ("S/16", dict(image_size=240, tokens={"class_position": False}), 22_061_416),
    ("B/16", dict(image_size=240, tokens={"class_position": False}), 86_589_160),
    ("L/16", dict(image_size=240, tokens={"class_position": False}), 304_355_304),
    ("Ti/16", dict(tokens={"distilled": True}), 5_910_800),
    ("S/16", dict(tokens={"distilled": True}), 22_436_432),
    ("B/16", dict(tokens={"distilled": True}), 87_338_192),
    ("B/16", dict(tokens={"distilled": True}, image_size=384), 87_630_032),
    ("Ti/16", dict(tokens={"distilled": True}, **BARE), 5_524_800),
    ("S/16", dict(tokens={"distilled": True}, **BARE), 21_666_432),
    ("B/16", dict(tokens={"distilled": True}, **BARE), 85_800_192),
    ("B/16", dict(tokens={"distilled": True}, image_size=384, **BARE), 86_092_032),
    ("S/16", DEIT3, 22_059_496),
    ("S/16", dict(image_size=384, **DEIT3), 22_205_416),
    ("M/16", DEIT3, 38_849_512),
    ("B/16", DEIT3, 86_585_320),
    ("B/16", dict(image_size=384, **DEIT3), 86_877_160),
    ("L/16", DEIT3, 304_374_760),
    ("L/16", dict(image_size=384, **DEIT3), 304_763_880),
    ("H/14", DEIT3, 632_126_440),
    ("So400m/14", dict(pooling="map", **BARE), 427_680_704),
    ("R+Ti/16", {}, 6_337_704),
    ("R26+S/32", {}, 36_431_912),
    ("R26+B/32", {}, 101_383_976),
    ("R50+B/16", {}, 98_659_112),
    ("R50+L/32", {}, 328_994_856),
    ("R+Ti/16", dict(image_size=384), 6_355_944),
    ("R26+S/32", dict(image_size=384), 36_468_392),
    ("R26+B/32", dict(image_size=384), 101_456_936),
    ("R50+B/16", dict(image_size=384), 98_950_952),
    ("R50+L/32", dict(image_size=384), 329_092_136),
]


def parameters(variant, options):
    """Counts a model's parameters without memory for them. All blocks are equal: options are counted on one and two."""
    depth = variants.parse(variant)[0].depth
    one, two = (counting.shapes_only(lambda: vit(variant, depth=n, **options).count_params()) for n in (1, 2))  # noqa: B023
    return one + (depth - 1) * (two - one)


@slow
def test_parameter_counts_are_the_published_ones():
    assert [(variant, options, parameters(variant, options)) for variant, options, _ in PARAMETERS] == PARAMETERS


def test_blocks_are_equal():
    """So that two blocks are enough to count the rest."""
    for name in ("S/16", "G/14", "R50+L/32"):
        published = next(count for variant, options, count in PARAMETERS if (variant, options) == (name, {}))
        assert counting.shapes_only(lambda: vit(name).count_params()) == published  # noqa: B023


def test_kernels_of_vit_22b_are_the_published_number():
    """Of its 21,743 million (arXiv:2302.05442, table 1); norms, biases, patches, positions and the head come on top."""

    def kernels():
        block = vit("22B/14", depth=1, **OF_22B).get_layer("block_0")
        return sum(math.prod(weight.shape) for weight in block.weights if weight.path.endswith("kernel"))

    assert VARIANTS["22B"].depth * counting.shapes_only(kernels) == 21_743_271_936


def test_every_size_is_counted():
    counted = {name for name, *_ in PARAMETERS}
    sizes = {name.split("/")[0] for name in counted - set(HYBRIDS)}
    assert sizes == set(VARIANTS) - {"mu"}  # which was published without a count
    assert counted >= set(HYBRIDS)


def everything():
    """A small model that has every kind of weight."""
    options = dict(
        tokens={"distilled": True, "registers": 2}, representation_size=8, block={"layer_scale": 0.1, "qk_norm": True}
    )
    return vit("mu/4", image_size=(12, 8), num_classes=5, **options)


def test_weight_paths_are_public():
    golden = pathlib.Path(__file__).parents[1] / "golden" / "weight_paths.txt"
    assert [f"{v.path} {tuple(v.shape)}" for v in everything().weights] == golden.read_text().splitlines()


def test_layer_names_are_public():
    names = [layer.name for layer in vit("mu/4", image_size=8, depth=2, representation_size=8).layers]
    assert " ".join(names) == "images rescale patches encoder block_0 block_1 norm pool pre_logits head"


HALF = "mixed_bfloat16" if keras.backend.backend() == "jax" else "mixed_float16"  # see tests/harness.py
STEM = ResNetStem((1,), width=32, dtype="mixed_bfloat16")
EVERY_OPTION = {
    "tokens": dict(
        tokens={"distilled": True, "registers": 1}, block={"qk_norm": True, "layer_scale": 0.1, "gelu": "exact"},
        representation_size=True, depth=2, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6),
    ),
    "map": dict(
        pooling="map", position="sincos1d", tokens={"registers": 1, "pre_norm": True}, final_norm=None,
        block={"swiglu": True, "gelu": "quick"}, dtype="mixed_bfloat16",
    ),
    "gap": dict(pooling="gap", position="sincos2d", stem="conv", final_norm="after", dtype=HALF),
    "first": dict(
        pooling="first", tokens={"class_token": True, "class_position": False}, stem=STEM, rotary="dinov3",
        block={"key_bias": False}, dtype="mixed_bfloat16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=slow) for name in ("tokens", "gap", "map", "first")])
def test_trains_under_xla_saves_and_loads(name, tmp_path):
    model = vit("mu/4", image_size=(12, 8), num_classes=5, dropout=0.1, stochastic_depth=0.1, **EVERY_OPTION[name])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"], jit_compile=True)
    assert np.isfinite(model.train_on_batch(IMAGES, np.array([0, 1, 2, 4]))).all()
    assert_saves_and_loads(model, tmp_path)


def test_overfits_a_few_images_under_xla_saves_and_loads(tmp_path):
    model = vit("mu/4", image_size=(12, 8), num_classes=4)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.02), loss, jit_compile=True)
    labels = np.arange(4)
    model.fit(IMAGES, labels, epochs=12, verbose=0)
    assert (np.asarray(model(IMAGES)).argmax(-1) == labels).all()
    assert_saves_and_loads(model, tmp_path)


def assert_saves_and_loads(model, folder):
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    assert np.asarray(model(IMAGES)).any()
    np.testing.assert_array_equal(np.asarray(model(IMAGES)), np.asarray(loaded(IMAGES)))


def test_rescales_pixels_itself():
    model = vit("mu/4", image_size=(12, 8), mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    found = keras.Model(model.input, model.get_layer("rescale").output)(IMAGES)
    np.testing.assert_allclose(found, (IMAGES / 255 - [0.1, 0.2, 0.3]) / [0.4, 0.5, 0.6], atol=1e-5)
    plain = vit("mu/4", image_size=(12, 8)).get_layer("rescale")
    np.testing.assert_allclose(plain(IMAGES), IMAGES / 127.5 - 1, atol=1e-6)


def test_distilled_averages_two_heads():
    model = vit("mu/4", image_size=(12, 8), num_classes=5, tokens={"distilled": True})
    heads = [model.get_layer(name) for name in ("head", "head_distilled")]
    for head in heads:
        head.kernel.assign(np.random.default_rng(1).normal(size=head.kernel.shape))
    tokens = keras.Model(model.input, model.get_layer("norm").output)(IMAGES)
    expected = (np.asarray(heads[0](tokens[:, 0])) + np.asarray(heads[1](tokens[:, 1]))) / 2
    np.testing.assert_allclose(np.asarray(model(IMAGES)), expected, atol=1e-5)


@slow_on_jax
def test_each_head_of_a_distilled_model_can_have_its_own_target():
    model = vit("mu/4", image_size=(12, 8), num_classes=5, tokens={"distilled": True})
    both = keras.Model(model.input, [model.get_layer(name).output for name in ("head", "head_distilled")])
    both.compile(
        keras.optimizers.SGD(1.0),
        [keras.losses.SparseCategoricalCrossentropy(from_logits=True), "mse"],
        run_eagerly=True,
    )
    before = np.asarray(model(IMAGES))
    both.fit(IMAGES, [np.arange(4), np.ones((4, 5))], verbose=0)
    heads = [np.asarray(output) for output in both(IMAGES)]
    np.testing.assert_allclose(np.asarray(model(IMAGES)), (heads[0] + heads[1]) / 2, atol=1e-5)
    assert np.abs(heads[0] - heads[1]).max() > 1e-3 and np.abs(np.asarray(model(IMAGES)) - before).max() > 1e-3


def test_the_last_norm_comes_before_or_after_pooling():
    for where, order in (("before", ["norm", "pool"]), ("after", ["pool", "norm"]), (None, ["pool"])):
        layers = vit("mu/4", image_size=8, pooling="gap", final_norm=where).layers
        assert [layer.name for layer in layers if layer.name in ("norm", "pool")] == order


def test_metadata_travels(tmp_path):
    vit("mu/4", image_size=8, metadata={"source": "here", "sizes": [1, 2]}).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("rescale").metadata == {"source": "here", "sizes": [1, 2]}


def test_stochastic_depth_grows_linearly():
    model = vit("mu/4", image_size=8, depth=5, stochastic_depth=0.4)
    rates = [model.get_layer(f"block_{i}").stochastic_depth for i in range(5)]
    np.testing.assert_allclose(rates, [0, 0.1, 0.2, 0.3, 0.4])


def test_float16_training_scales_its_loss():
    model = vit("mu/4", image_size=(12, 8), dtype="mixed_float16")
    model.compile("adamw", "mse")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def test_names():
    names = [vit(*args, image_size=8, **kw).name for args, kw in ((["mu/4"], {}), (["mu/4"], dict(patch_size=(2, 4))))]
    assert names == ["vit_mu_4", "vit_mu_2x4"] and vit("mu/4", image_size=8, name="mine").name == "mine"


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_under_any_policy(policy):
    if policy == "mixed_float16" and keras.backend.backend() == "jax":
        pytest.skip("JAX has no float16 product summed in float32 on a CPU")
    model = vit("mu/4", image_size=(12, 8), dtype=policy)
    assert model.get_layer("block_0").mlp.fc1.compute_dtype == policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(model(IMAGES).dtype) == "float32"


def test_sizes_of_your_own():
    model = vit(None, image_size=(12, 8), patch_size=(3, 2), channels=1, num_classes=3, width=16, depth=1, num_heads=2)
    assert model.get_layer("block_0").mlp_dim == 64
    assert model.get_layer("encoder").output.shape == (None, 17, 16)
    assert vit("Ti/16", image_size=32, depth=2, width=96).get_layer("block_1").output.shape == (None, 5, 96)

import keras
import pytest

from keras_vit import count_macs, list_variants, vit
from keras_vit.models import counting
from keras_vit.tasks import Detect, Segment

pytestmark = pytest.mark.backend

# 10^9 multiply-adds at 224 pixels as timm lists them, to two decimals.
TIMM = {
    "Ti/16": 1.26,
    "S/32": 1.15,
    "S/16": 4.61,
    "B/32": 4.41,
    "B/16": 17.58,
    "B/8": 78.22,
    "L/32": 15.39,
    "L/16": 61.60,
    "H/14": 167.40,
    "g/14": 267.18,
    "G/14": 483.95,
}


def test_variants_agree_with_the_published_tables():
    sizes = {size.name: size for size in list_variants()}
    assert set(TIMM) <= set(sizes)
    for name, gmacs in TIMM.items():
        assert sizes[name].gmacs == pytest.approx(gmacs, rel=0.01), name
    assert sizes["B/16"][1:6] == (768, 12, 3072, 12, 86_567_656)
    assert sizes["mu/16"].parameters == vit("mu/16").count_params()


def test_variants_that_do_not_fit_the_image_are_left_out():
    names = [size.name for size in list_variants(image_size=28)]
    assert names == ["mu/2", "mu/4", "So400m/14", "H/14", "g/14", "G/14", "22B/14"]


def test_macs_by_hand():
    model = vit(None, image_size=8, channels=1, patch_size=4, width=8, depth=2, mlp_dim=16, num_heads=2, num_classes=3)
    n, d = 5, 8
    block = n * d * 3 * d + 2 * n * n * d + n * d * d + 2 * n * d * 16
    assert count_macs(model) == 4 * 16 * d + 2 * block + d * 3
    pooled = vit(
        None,
        image_size=8,
        channels=1,
        patch_size=4,
        width=8,
        depth=1,
        mlp_dim=16,
        num_heads=2,
        num_classes=0,
        pooling="map",
    )
    n = 4
    block = n * d * 3 * d + 2 * n * n * d + n * d * d + 2 * n * d * 16
    pool = 2 * d * d + 2 * n * d * d + 2 * n * d + 2 * d * 16
    assert count_macs(pooled) == 4 * 16 * d + block + pool


def test_counting_leaves_nothing_to_initialize_later():
    model = counting.shapes_only(lambda: keras.Sequential([keras.Input((3,)), keras.layers.Dense(4)]))
    with keras.StatelessScope():
        pass  # on leaving, Keras fills the variables that wait
    assert model.layers[0].kernel._value is None
    assert vit("mu/4", image_size=8).weights[0]._value is not None


def test_convolutions_of_every_kind_are_counted():
    inputs = keras.Input((8, 8, 4))
    x = keras.layers.DepthwiseConv2D(3, padding="same")(inputs)
    x = keras.layers.SeparableConv2D(6, 3, strides=2, padding="same")(x)
    model = keras.Model(inputs, keras.layers.Conv2D(2, 1, groups=2)(x))
    assert count_macs(model) == 64 * 9 * 4 + 16 * (9 * 4 + 4 * 6) + 16 * 3 * 2


def test_a_transposed_convolution_is_counted_at_its_input():
    inputs = keras.Input((4, 5, 6))
    model = keras.Model(inputs, keras.layers.Conv2DTranspose(3, 2, strides=2)(inputs))
    assert count_macs(model) == 4 * 5 * 2 * 2 * 6 * 3


def test_heads_of_segmenters_are_counted():
    d, n, c = 8, 16, 3  # width, patches, classes
    macs = {}
    for head, options in {"linear": {}, "mask": {"width": d, "depth": 1}, "dpt": {"width": d}}.items():
        task = Segment(classes=tuple("abc"), head={"kind": head, **options})
        model = task.model(patch_size=4, width=d, depth=4, num_heads=1, mlp_dim=d, image_size=16)
        macs[head] = next(row.macs for row in counting.by_layer(model) if row.name == "head")
    t = n + c
    assert macs["linear"] == n * d * c
    assert macs["mask"] == n * d * d + t * (4 + 2) * d * d + 2 * t * t * d + n * d * d + c * d * d
    sides, necks = [4, 2, 1, 1], [1, 2, 4, 8]  # of the maps, at factors 1, 1/2, 1/4 and 1/8 of the tokens
    maps = sum(16 * d * k for k in necks) + sum(s * s * 9 * k * k for s, k in zip(sides[1:], necks[1:]))
    convs = sum(s * s * 9 * k * d for s, k in zip(sides, necks))
    residual = sum(s * s * 2 * 9 * d * d * times for s, times in zip(sides, (2, 2, 2, 1)))
    projs = sum(s * s * d * d for s in (8, 4, 2, 1))
    assert macs["dpt"] == maps + convs + residual + projs + 64 * (9 * d * d + d * c)


def test_layers_add_up_to_the_model():
    model = vit("R26+S/32", image_size=64, depth=2, pooling="map", num_classes=10)
    rows = counting.by_layer(model)
    assert [row.name for row in rows] == [layer.name for layer in model.layers]
    assert sum(row.parameters for row in rows) == model.count_params()
    assert sum(row.macs for row in rows) == count_macs(model)
    head = rows[-1]
    assert (head.kind, head.output, head.parameters, head.macs) == ("Dense", (10,), 3850, 3840)


def test_each_block_of_a_decoder_is_counted_with_its_head():
    d, n, q, c = 8, 16, 5, 2  # width, patches, queries, classes
    task = Detect(classes=("a", "b"), head={"kind": "decoder", "depth": 3}, most=q)
    model = task.model(patch_size=4, width=d, depth=1, num_heads=1, mlp_dim=d, image_size=16)
    found = next(row.macs for row in counting.by_layer(model) if row.kind == "QueryDecoder")
    attention = 4 * q * d * d + 2 * q * q * d + 2 * q * d * d + 2 * n * d * d + 2 * q * n * d
    head = q * (d * (c + 1) + 2 * d * d + 4 * d)
    assert found == 3 * (attention + 2 * q * d * d + head)

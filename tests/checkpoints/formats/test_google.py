import types

import pytest

from keras_vit.checkpoints.formats import google
from keras_vit.models.options import flat
from tests.checkpoints.helpers import arrays_of

pytestmark = pytest.mark.backend


def shapes_of(case):
    return {name: array.shape for name, array in arrays_of(case).items()}


def test_detect():
    assert google.detect(shapes_of("google_vit"))
    assert google.detect(["params/img/Transformer/encoderblock/LayerNorm_0/bias"])
    assert not google.detect(shapes_of("timm_vit")) and not google.detect(shapes_of("hf_vit"))


def test_canonical_names_are_the_published_ones():
    canonical = google.canonical(shapes_of("google_vit_gap_linen"))
    assert canonical["Transformer/encoderblock_1/LayerNorm_2/bias"] == "Transformer/encoderblock_1/LayerNorm_1/bias"
    assert canonical["Transformer/encoderblock_0/MlpBlock_3/Dense_0/bias"].endswith("MlpBlock_0/Dense_0/bias")
    published = shapes_of("google_vit")
    assert google.canonical(published) == dict(zip(published, published))


@pytest.mark.parametrize(
    "case, expected",
    [
        ("google_vit", dict(width=24, depth=2, num_heads=3, mlp_dim=48, patch_size=(8, 8), pooling="token", stem=None)),
        (
            "google_vit_gap_linen",
            dict(pooling="gap", tokens={"class_token": False, "class_position": None}, num_classes=7),
        ),
        (
            "google_vit_representation",
            dict(
                representation_size=20, block={"gelu": "tanh"}, norm={"epsilon": 1e-6}, tokens={"class_position": True}
            ),
        ),
        ("google_r50ish", dict(patch_size=(1, 1), depth=1, num_heads=2, channels=3)),
    ],
)
def test_architecture(case, expected):
    shapes = shapes_of(case)
    canonical = {name: shapes[place] for name, place in google.canonical(shapes).items()}
    arguments, evaluation, _ = google.architecture(canonical, types.SimpleNamespace(shapes=shapes))
    assert flat(arguments).items() >= flat(expected).items()
    assert evaluation["resize"] == "direct" and evaluation["antialias"] is False


def test_stems():
    for case, stages in (("google_r50ish", (2, 1)), ("google_r_ti", ())):
        stem = google.architecture(shapes_of(case), types.SimpleNamespace(shapes=shapes_of(case)))[0]["stem"]
        assert stem.stages == stages and stem.standardize == "google" and stem.epsilon == 1e-6


def test_what_is_missing_is_named():
    shapes = shapes_of("google_vit")
    del shapes["embedding/kernel"]
    with pytest.raises(ValueError, match="'embedding/kernel' with 4 axes"):
        google.architecture(shapes, types.SimpleNamespace(shapes=shapes))


def test_a_weight_that_is_there_twice():
    with pytest.raises(ValueError, match="twice"):
        google.canonical({"pos_embedding": (1,), "Transformer/posembed_input/pos_embedding": (1,)})


def test_stacked_blocks_are_counted_off_their_first_axis():
    canonical = google.canonical({"Transformer/encoderblock/LayerNorm_0/bias": (3, 24), "head/bias": (2,)})
    assert canonical["Transformer/encoderblock_2/LayerNorm_0/bias"] == ("Transformer/encoderblock/LayerNorm_0/bias", 2)
    assert len(canonical) == 4

import re
from functools import partial

import pytest

import keras_vit
from keras_vit.checkpoints.published import Published, list_checkpoints, published
from keras_vit.utils.keras_private import shapes_only
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend

ROWS = list_checkpoints()
IMAGENET = (0.485, 0.456, 0.406)
STATISTICS = {  # mean: deviation
    0: 1,
    0.5: 0.5,
    IMAGENET: (0.229, 0.224, 0.225),
    (0.48145466, 0.4578275, 0.40821073): (0.26862954, 0.26130258, 0.27577711),  # CLIP's
    (0.43, 0.411, 0.296): (0.213, 0.156, 0.143),  # of satellite images
}
LICENSES = {"mae": "cc-by-nc-4.0", "dinov3": "dinov3-license", "dinov3-sat493m": "dinov3-license"}  # others: apache-2.0
OUTPUTS = (0, 512, 768, 1024, 11221, 21843)  # without ImageNet's 1,000 classes: features, CLIP's projection, classes
FAMILIES = """
    augreg-i21k-i1k-224 augreg-i21k-i1k-384 augreg-i1k-224 augreg-i1k-384 augreg-i21k orig-i21k
    orig-i21k-i1k-224 orig-i21k-i1k-384 sam-i1k-224 deit-i1k-224 deit-i1k-384 deit-distilled-i1k-224
    deit-distilled-i1k-384 deit3-i1k-224 deit3-i1k-384 deit3-i21k-i1k-224 deit3-i21k-i1k-384
    timm-augreg2-i21k-i1k-224 timm-augreg-i21k-i1k-224 timm-orig-i21k-i1k-384 timm-miil-i21k-i1k-224
    timm-deit3-i21k-i1k-384 dino dinov2 dinov2-reg4 dinov3 dinov3-sat493m clip-openai clip-openai-336
    clip-laion2b siglip-224 siglip-384 siglip2-224 siglip2-384 pe-core beit-i21k-i1k-224 beitv2-i21k-i1k-224 mae
    hf-i21k hf-i21k-i1k-224 hf-i21k-i1k-384 hf-deit-i1k-224 hf-deit-distilled-i1k-384
"""


def split(row):
    variant, _, weights = row.name.partition("-")
    return variant, weights


def stride(variant):
    """The pixels from one token to the next: the name's number, but for R+Ti/16 (8 x 8 patches on a map of 1/4)."""
    return 32 if variant == "R+Ti/16" else int(variant.partition("/")[2])


def test_names_and_sources_are_unique():
    assert len({row.name for row in ROWS}) == len({row.source for row in ROWS}) == len(ROWS) > 150
    assert list_checkpoints() is not list_checkpoints()  # a caller may sort his own
    assert all(row.variant == split(row)[0] for row in ROWS)


def test_families_are_there():
    assert set(FAMILIES.split()) <= {split(row)[1] for row in ROWS}
    hybrids = {split(row)[0] for row in ROWS if "+" in split(row)[0]}
    assert hybrids == {"R+Ti/16", "R26+S/32", "R50+B/16", "R50+L/32"}


def test_variants_build():
    for variant in sorted({split(row)[0] for row in ROWS}):
        model = shapes_only(partial(keras_vit.vit, variant, depth=1, image_size=2 * stride(variant), num_classes=3))
        assert model.output_shape == (None, 3), variant


def test_rows():
    wrong = []
    for row in ROWS:
        try:
            check_row(row)
        except AssertionError as error:
            wrong.append(f"{row.name}: {error}")
    assert not wrong, "\n".join(wrong)


def check_row(row):
    variant, weights = split(row)
    assert published(row.name) is row and isinstance(row, Published)
    assert re.fullmatch(r"https://\S+\.(npz|pth)|hf://[\w-]+/[\w.-]+", row.source)
    assert re.fullmatch(r"([0-9a-f]{8})?", row.sha256) and row.sha256 in row.source
    assert row.image_size % stride(variant) == 0
    size = re.search(r"-i1k-(\d+)$", weights)
    assert (row.num_classes == 1000) == (size is not None)
    assert (row.image_size == int(size[1])) if size else (row.num_classes in OUTPUTS)
    assert row.std == STATISTICS[row.mean]
    assert row.resize in ("direct", "crop") and (row.crop_pct is None) == (row.resize == "direct")
    assert row.crop_pct is None or 0.8 <= row.crop_pct <= 1
    assert row.interpolation in ("bilinear", "bicubic")
    assert row.antialias == ("googleapis" not in row.source)
    assert (row.top1 is None) == (row.top1_source == "")
    assert row.top1 is None or (row.num_classes == 1000 and 70 < row.top1 < 90)
    assert row.license == LICENSES.get(weights, "apache-2.0")


def test_copies_of_a_training_run_agree():
    for row in ROWS:
        variant, weights = split(row)
        if weights.startswith("timm-") and f"{variant}-{weights[5:]}" in {other.name for other in ROWS}:
            source = published(f"{variant}-{weights[5:]}")
            assert row.top1 == source.top1 and row.num_classes == source.num_classes and row.mean == source.mean


def test_known_rows():
    row = published("B/16-augreg-i21k-i1k-384")
    assert row.source.startswith("https://storage.googleapis.com/vit_models/augreg/B_16-i21k-300ep-")
    assert row.source.endswith("-res_384.npz")
    assert row[2:] == (
        *("", 384, 1000, 0.5, 0.5, "direct", None, "bilinear", False),
        *(86.01, "timm results/results-imagenet.csv", "apache-2.0"),
    )
    row = published("B/16-deit-distilled-i1k-384")
    assert row.sha256 == "d0272ac0" and row.top1 == 85.438
    assert (row.resize, row.crop_pct, row.interpolation, row.antialias) == ("crop", 1.0, "bicubic", True)
    row = published("B/16-timm-augreg2-i21k-i1k-224")
    assert row.source == "hf://timm/vit_base_patch16_224.augreg2_in21k_ft_in1k"
    assert row.top1 == 85.108 and row.crop_pct == 0.9
    assert published("S/32-augreg-i21k").num_classes == 21843 and published("S/32-augreg-i21k").top1 is None


def test_unknown_names_are_refused():
    suggestions = {
        "B/16-augreg-i21k-i1k-385": "Did you mean 'B/16-augreg-i21k-i1k-384'",
        "b/16-augreg-i21k-i1k-384": "Did you mean 'B/16-augreg-i21k-i1k-384'",
        "B/61-augreg-i21k-i1k-384": "Did you mean 'B/16'",
        None: "Known: Ti/16, ",
    }
    assert not unexpected(
        (partial(published, name), f"Received: {re.escape(repr(name))}. {re.escape(suggestion)}")
        for name, suggestion in suggestions.items()
    )


def test_words():
    rows = list_checkpoints("b/16", "AUGREG", "384")
    assert 1 < len(rows) < 10 and all("B/16" in row.name and "augreg" in row.name for row in rows)

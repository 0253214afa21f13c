import pytest

from keras_vit import HYBRIDS, VARIANTS
from keras_vit.models.variants import NAMES, parse

pytestmark = pytest.mark.backend


def test_names():
    assert parse("B/16") == (VARIANTS["B"], 16, None) and parse("So400m/14")[0].mlp_dim == 4304
    assert parse("S") == (VARIANTS["S"], None, None) and parse(None)[0].width is None
    assert parse("R50+L/32") == (VARIANTS["L"], None, HYBRIDS["R50+L/32"])
    assert {"mu/2", "H/14", "B/8", "R+Ti/16"} <= set(NAMES) and len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    "name, message", [("b/16", "Did you mean 'B/16'"), ("R50+B/32", "Did you mean"), (16, "Received: 16")]
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        parse(name)


@pytest.mark.parametrize(
    "name, variant, source",
    [
        ("vit_base_patch16_224", "B/16", "hf://timm/vit_base_patch16_224"),
        ("vit_tiny_patch16_224.augreg_in21k", "Ti/16", "hf://timm/vit_tiny_patch16_224.augreg_in21k"),
        ("timm/vit_so400m_patch14_siglip_384", "So400m/14", "hf://timm/vit_so400m_patch14_siglip_384"),
        ("google/vit-base-patch16-224", "B/16", "hf://google/vit-base-patch16-224"),
        ("vit-large-patch32-384", "L/32", "hf://google/vit-large-patch32-384"),
        ("facebook/deit-small-patch16-224", "S/16", "hf://facebook/deit-small-patch16-224"),
        ("vit_b_16", "B/16", None),
        ("ViT-L/32", "L/32", None),
        ("ViTB16", "B/16", None),
    ],
)
def test_names_of_other_libraries_are_translated(name, variant, source):
    with pytest.raises(ValueError, match=f"keras_vit calls it '{variant}'") as raised:
        parse(name)
    assert source is None or f"from_checkpoint('{source}')" in str(raised.value)


def test_every_row_has_its_source():
    assert all(row.source for row in [*VARIANTS.values(), *HYBRIDS.values()])

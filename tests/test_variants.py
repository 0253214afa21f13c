import pytest

from keras_vit import HYBRIDS, VARIANTS
from keras_vit.variants import NAMES, parse

pytestmark = pytest.mark.backend


def test_names():
    assert parse("B/16") == (VARIANTS["B"], 16, None) and parse("So400m/14")[0].mlp_dim == 4304
    assert parse("S") == (VARIANTS["S"], None, None) and parse(None)[0].width is None
    assert parse("R50+L/32") == (VARIANTS["L"], None, HYBRIDS["R50+L/32"])
    assert {"mu/2", "H/14", "B/8", "R+Ti/16"} <= set(NAMES) and len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    "name, said", [("b/16", "Did you mean 'B/16'"), ("R50+B/32", "Did you mean"), (16, "Received: 16")]
)
def test_unknown_names(name, said):
    with pytest.raises(ValueError, match=said):
        parse(name)


def test_every_row_has_its_source():
    assert all(row.source for row in [*VARIANTS.values(), *HYBRIDS.values()])

import pytest

from keras_vit.text.families import FAMILIES, OWN, canonical, lower, open_clip_canonical


@pytest.mark.parametrize(
    ("clean", "text", "wanted"),
    [
        (lower, "A CAT, ΣΑΣ", "a cat, σας"),
        (canonical, "  Two DOGS, on the\n street! ", "two dogs on the street"),
        (canonical, "l'ÉTÉ à_b", "lété àb"),
        (open_clip_canonical, "a_b", "a b"),
    ],
)
def test_cleaning(clean, text, wanted):
    assert clean(text) == wanted


def test_rows_are_whole():
    for name, row in FAMILIES.items():
        assert row.pad and row.end and (name in OWN or (row.read and row.classes and row.models))
    classes = [each for row in FAMILIES.values() for each in row.classes]
    assert len(set(classes)) == len(classes)

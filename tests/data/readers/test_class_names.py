import pytest

from keras_vit.data.readers.class_names import in_order, name_of


@pytest.mark.parametrize(
    "value, name",
    [
        (" hot dog ", "hot dog"),
        (3, "3"),
        ("none", "none"),
        ("cafe\u0301", "caf\u00e9"),
        ("[a]", "[a]"),
    ],
)
def test_names(value, name):
    assert name_of(value, "label") == name


@pytest.mark.parametrize("value", [True, 1.5, None, ["a"], "", "a\nb", "a\0", "\ud800", "['a', \"b\"]", "NaN", "null"])
def test_what_is_no_name(value):
    with pytest.raises(ValueError, match="'label' must be the name of "):
        name_of(value, "label")
    assert name_of("NaN", "label", {"NaN"}) == "NaN"


def test_whole_numbers_are_sorted_by_value():
    assert in_order(["10", "9", "-1"]) == ["-1", "9", "10"] and in_order(["10", "9", "a"]) == ["10", "9", "a"]

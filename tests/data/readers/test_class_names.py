import pytest

from keras_vit.data.readers.class_names import in_order, name_of
from keras_vit.data.readers.dataset_labels import one
from keras_vit.data.readers.table_cells import Labels


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


def test_an_answer_may_be_a_word_for_a_missing_value():
    """It is refused as a class of images, and as one of several labels unless it is among the names of all."""
    answers, labels = (Labels(("answer",), said) for said in ({"texts": ("question",)}, {}))
    for word in ("two", "None"):
        answers.add(answers.parse([word]))
    with pytest.warns(UserWarning, match="'answer' has 'None', which programs also write for a missing value"):
        assert answers.made().tolist() == [1, 0] and answers.names() == ("None", "two")
    with pytest.raises(ValueError, match="not of a missing value. Received: 'None'"):
        labels.parse(["None"])
    assert one("null", answer=True) == "null"
    with pytest.raises(ValueError, match="not of a missing value"):
        one("null")

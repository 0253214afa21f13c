import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers.table_cells import Groups, Labels, Numbers, group_of


def made(reader, rows, inside=True):
    for row in rows:
        reader.add(reader.parse(row), inside)
    return reader.made()


def test_labels():
    reader = Labels(("label",))
    reader.add(reader.parse(["a"]), inside=False)  # a class of images elsewhere
    assert made(reader, [["b"], ["c"], ["b"]]).tolist() == [1, 2, 1] and reader.names() == ("a", "b", "c")
    with pytest.raises(ValueError, match="'label' is empty"):
        reader.parse([None])


@pytest.mark.parametrize("separator", [";", ",", "|"])
def test_a_cell_of_several_classes_is_refused_where_one_is_wanted(separator):
    several = f"a{separator} b"
    with pytest.raises(ValueError, match="must have one label for each image. Several, as in 'a. b'"):
        made(Labels(("label",)), [["a"], ["b"], [several]])
    assert made(Labels(("label",), {"texts": ("text",)}), [["a"], ["b"], [several]]).tolist() == [0, 2, 1]


def test_numbers():
    found = made(Numbers(("x", "y")), [["1", 2], [0.5, "1e3"]])
    assert found.dtype == np.float32 and found.tolist() == [[1, 2], [0.5, 1000]]
    for cell, message in ((None, "'x' is empty"), ("1_0", "no number: '1_0'"), (True, "True"), ("1e300", "1e300")):
        with pytest.raises(ValueError, match=message):
            Numbers(("x",)).parse([cell])


def test_groups_have_the_same_number_in_every_table():
    assert made(Groups(("patient",)), [["p1"], ["p2"], ["p1"]]).tolist() == [*map(group_of, ("p1", "p2", "p1"))]
    assert group_of("p1") == group_of(b"p1") != group_of("p2")

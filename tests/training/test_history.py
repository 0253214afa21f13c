import csv
import math

import pytest

from keras_vit.training import history

pytestmark = pytest.mark.backend


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "has no epoch yet"),
        ("epoch,loss\n", "has no epoch yet"),
        ("epoch,loss\n0,0.5\n1", "is damaged"),
        ("epoch,loss\n0,0.5,3\n", "is damaged"),
        ("epoch,loss\n0,what\n", "is damaged: could not convert string to float: 'what'. `fit` rewrites it"),
    ],
)
def test_a_damaged_history_is_named(tmp_path, text, said):
    (tmp_path / "history.csv").write_text(text)
    with pytest.raises(ValueError, match=f"history.csv' {said}"):
        history.read(tmp_path)


def test_history_is_written_anew(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("epoch,loss\n0,9\n1,8\n2,7\n")
    history.rewrite(tmp_path, [{"epoch": 0, "loss": 0.5}, {"epoch": 1, "loss": 0.25}])
    with open(path, newline="") as file:
        assert list(csv.DictReader(file)) == [{"epoch": "0", "loss": "0.5"}, {"epoch": "1", "loss": "0.25"}]
    history.rewrite(tmp_path, [])
    assert not path.read_text()


def test_a_column_of_some_epochs_is_not_a_number_in_others(tmp_path):
    history.rewrite(tmp_path, [{"epoch": 0, "a": 1.0}, {"epoch": 1}, {"epoch": 2, "a": 3.0, "b": 4.0}])
    found = history.read(tmp_path)
    assert list(found) == ["epoch", "a", "b"] and found["epoch"] == [0, 1, 2]
    assert str(found["a"]) == "[1.0, nan, 3.0]" and str(found["b"]) == "[nan, nan, 4.0]"


@pytest.mark.parametrize(
    "values, better, waited",
    [
        ([], "max", 0),
        ([math.nan, math.nan], "max", 0),
        ([1, 3, 3, math.nan], "max", 2),
        ([1, 3, 3, math.nan], "min", 3),
        ([5, 4, 3], "min", 0),
    ],
)
def test_epochs_since_the_best(values, better, waited):
    assert history.since_best([{"val_loss": 1.0, "a": value} for value in values], "a", better) == waited

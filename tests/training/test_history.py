import csv

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


def test_history_is_written_anew_and_then_line_by_line(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("epoch,loss\n0,9\n1,8\n2,7\n")
    history.rewrite(tmp_path, [{"epoch": 0, "loss": 0.5}])
    history.append(tmp_path, {"epoch": 1, "loss": 0.25})
    with open(path, newline="") as file:
        assert list(csv.DictReader(file)) == [{"epoch": "0", "loss": "0.5"}, {"epoch": "1", "loss": "0.25"}]

import csv

from keras_vit.inspecting import findings
from keras_vit.inspecting.pictures import Pictures


def test_the_table_has_a_row_a_finding(tmp_path):
    pictures = Pictures(['a,"b".png', "c.png"], []).labeled(["cat", "dog"]).divided(["train", "test"])
    found = findings.ordered([
        findings.single("outlier", pictures, 1, 2.0, "far"),
        findings.pair("near", pictures, 0, 1, 0.5, "alike"),
        findings.pair("near", pictures, 0, 1, 0.75, "alike"),
        findings.single("unreadable", pictures, 1, None, "empty"),
    ])  # fmt: skip
    findings.write(tmp_path / "a.csv", found)
    with open(tmp_path / "a.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["kind"] for row in rows] == ["unreadable", "near", "near", "outlier"]
    assert [row["score"] for row in rows] == ["", "0.7500", "0.5000", "2.0000"]
    assert rows[1] == {
        "kind": "near", "file": 'a,"b".png', "other_file": "c.png", "label": "cat", "suggested_label": "dog",
        "score": "0.7500", "split": "train", "other_split": "test", "why": "alike",
    }  # fmt: skip
    findings.write(tmp_path / "b.csv", [])
    assert (tmp_path / "b.csv").read_text().splitlines() == [",".join(findings.COLUMNS)]

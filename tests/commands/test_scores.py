import pytest

import keras_vit
from keras_vit.commands import scores
from keras_vit.utils import tables

FILES = ("runs/a/model.keras", "runs/a/model.tflite")
TWO = keras_vit.Regress(names=("ink_percent", "slant"))


def lines(task, values, width=80, files=FILES):
    found = scores.lines(dict.fromkeys(files, values), task, width)
    assert all(tables.places(line) <= max(width, *map(len, files)) for line in found)
    return found


def test_a_table_has_a_row_for_each_file_and_words_for_scores():
    assert lines(keras_vit.Classify(), {"accuracy": 0.975, "top_5_accuracy": 1.0}) == [
        "file                 accuracy  top-5 accuracy",
        "runs/a/model.keras     97.50%         100.00%",
        "runs/a/model.tflite    97.50%         100.00%",
    ]


def test_what_is_in_standard_deviations_says_so():
    values = {"mae": 0.5, "mae_ink_percent": 2.0, "mae_slant": 3.0, "r2_ink_percent": 0.9}
    assert lines(TWO, values, files=FILES[:1]) == [
        "runs/a/model.keras",
        "  mean error, in standard deviations  0.5000",
        "  mean error of ink, in percent       2.0000",
        "  mean error of slant                 3.0000",
        "  R2 of ink                           0.9000",
    ]
    assert lines(keras_vit.Regress(names=("age_years",)), {"mae": 2.5})[0].endswith("  mean error, in years")


@pytest.mark.parametrize("task, score", [(keras_vit.Segment(), "iou"), (keras_vit.Detect(), "ap50")])
def test_long_names_keep_the_columns(task, score):
    values = {"map": 0.25, f"{score} sky": 0.5, f"{score} {'x' * 200}": 0.1, f"{score} 犬の名前": 1.0}
    found = lines(task, values)
    assert found[:3][-1].startswith("runs/a/model.tflite") and len(found) == 6  # of the first file alone
    assert {tables.places(line) for line in found[3:]} == {80}
    assert "..." in found[4] and "犬の名前" in found[5]


def test_a_long_name_of_a_file_is_a_line_of_its_own():
    files = ("runs/" + "long" * 20 + "/model.keras", "runs/b.tflite")
    assert lines(keras_vit.Classify(), {"accuracy": 0.5}, files=files) == [
        files[0],
        "  accuracy  50.00%",
        files[1],
        "  accuracy  50.00%",
    ]


def test_columns_of_a_table_have_their_units_below_it():
    rows = [{"fold": 1, "val_mae": 0.5, "val_mae_ink_percent": 2.0, "val_r2_slant": 0.5}, {"val_mae": 0.25}]
    assert scores.units(rows, TWO) == [
        "val_mae: mean error, in standard deviations",
        "val_mae_ink_percent: mean error of ink, in percent",
    ]
    assert scores.units([{"val_accuracy": 0.5}], keras_vit.Classify()) == []

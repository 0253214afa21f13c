import pytest

from keras_vit.hub.private import without_paths


@pytest.mark.parametrize(
    "value, kept",
    [
        ("folder:/home/me/cells", "folder:cells"),
        ("folder:~/cells/", "folder:cells"),
        ("folder:../data/cells", "folder:cells"),
        (r"C:\\Users\\me\\cells", "cells"),
        ("/data/a.keras", "a.keras"),
        ("runs/mae", "runs/mae"),
        ("hf://me/model", "hf://me/model"),
        ("folder:cells", "folder:cells"),
        ("and/or", "and/or"),
        ("", ""),
    ],
)
def test_paths_keep_their_last_part(value, kept):
    assert without_paths({"a": [value, 3, None, True]}) == {"a": [kept, 3, None, True]}

import pytest

from keras_vit.data.sources import READERS
from keras_vit.hub.private import left_out, without_paths


@pytest.mark.parametrize(
    "value, kept",
    [
        ("folder:/home/me/cells", "folder:cells"),
        ("folder:~/cells/", "folder:cells"),
        ("folder:data/secret/cells", "folder:cells"),
        ("table:/data/clients/names.csv", "table:names.csv"),
        ("C:\\Users\\me\\cells", "cells"),
        ("/data/a.keras", "a.keras"),
        ("https://user:token@host/a.keras", "https://host/a.keras"),
        ("runs/mae", "runs/mae"),
        ("hf://me/model@v1", "hf://me/model@v1"),
        ("tfds:mnist", "tfds:mnist"),
        ("and/or", "and/or"),
        ("", ""),
    ],
)
def test_paths_keep_their_last_part(value, kept):
    assert without_paths({"a": {"source": value}, "words": [value]}) == {"a": {"source": kept}, "words": [value]}
    assert bool(left_out({"a": {"source": value}})) == (value != kept)


@pytest.mark.parametrize("kind", sorted({*READERS} - {"digits", "tfds"}))
def test_every_kind_of_data_with_a_path_is_known(kind):
    assert without_paths({"source": f"{kind}:/data/a"}) == {"source": f"{kind}:a"}

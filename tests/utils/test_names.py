import os
import unicodedata

import pytest

from keras_vit.utils.names import Written, composed

NFC, NFD = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))


def test_a_name_in_one_form():
    assert composed(NFD) == composed(NFC) == NFC and composed("cafe") == "cafe"


@pytest.mark.parametrize(("there", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_paths_are_found_in_either_form(tmp_path, there, asked):
    (tmp_path / there / "b").mkdir(parents=True)
    (tmp_path / there / "b" / f"{there}.png").touch()
    written = Written()
    path = written.path(tmp_path / asked / "b" / f"{asked}.png")
    assert path == str(tmp_path / there / "b" / f"{there}.png") and os.path.isfile(path)
    assert written.path(tmp_path / there) == str(tmp_path / there)
    absent = str(tmp_path / asked / f"{asked}.jpg")
    assert written.path(absent) == str(tmp_path / there / f"{asked}.jpg")
    assert written.path(f"{asked}.jpg") == f"{asked}.jpg"

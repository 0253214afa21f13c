import types

import numpy as np
import pytest
from PIL import Image

from keras_vit.runs import references
from keras_vit.tasks import Classify, Restore

TRAINED = types.SimpleNamespace(task=Restore(scale=2, reference=True), size=(8, 8, 3), file="model.keras")
PLAIN = types.SimpleNamespace(task=Classify(), size=(8, 8, 3), file="model.keras")


def test_a_file_for_all_or_a_folder_with_one_for_each(tmp_path):
    for i in range(3):
        Image.new("RGB", (4 + i, 5), (i, 0, 0)).save(tmp_path / f"{i}.png")
    files = [tmp_path / "x" / f"{i}.jpg" for i in (2, 0)]
    found = references.of_files(TRAINED, tmp_path, files)["references"]
    assert [found[i].shape for i in (0, 1)] == [(5, 6, 3), (5, 4, 3)] and found[0][0, 0].tolist() == [2, 0, 0]
    found = references.of_files(TRAINED, str(tmp_path / "1.png"), files)["references"]
    np.testing.assert_array_equal(found[0], found[1])
    Image.new("L", (4, 4)).save(tmp_path / "2.jpg")
    with pytest.raises(ValueError, match="one reference of the name of each image. Received: 2 for .*2.jpg"):
        references.of_files(TRAINED, tmp_path, files)
    with pytest.raises(ValueError, match="Received: 0 for .*7.png"):
        references.of_files(TRAINED, tmp_path, [tmp_path / "7.png"])


def test_what_is_not_a_reference_is_named(tmp_path):
    assert references.of_files(PLAIN, None, []) == {}
    with pytest.raises(ValueError, match="Classify of this model takes no reference. Received: reference='a.png'"):
        references.of_files(PLAIN, "a.png", [])
    with pytest.raises(ValueError, match="Restore of this model needs a picture with each image"):
        references.of_files(TRAINED, None, [])
    with pytest.raises(FileNotFoundError, match="There is no file"):
        references.of_files(TRAINED, tmp_path / "none.png", [])
    references.check_none(PLAIN, "The page")
    with pytest.raises(ValueError, match="The page shows images alone: call predict with `reference`"):
        references.check_none(TRAINED, "The page")

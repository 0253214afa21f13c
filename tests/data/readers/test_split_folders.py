import pytest

pytest.importorskip("tensorflow")

from keras_vit.data.readers.split_folders import class_folders, place_of


def test_a_split_is_a_folder_or_all_of_it(tmp_path):
    for name in ("train/cat", "train/dog", "train/.hidden", "test/cat"):
        (tmp_path / name).mkdir(parents=True)
    assert place_of(tmp_path, "train[:50%]", "images") == tmp_path / "train"
    assert place_of(tmp_path / "train", "all[:80%]", "images") == tmp_path / "train"
    assert place_of(tmp_path, "train", "images", by_column=True) == tmp_path
    assert class_folders(tmp_path / "train") == ["cat", "dog"]
    with pytest.raises(ValueError, match="contains folders of splits, test, train: name them in place of splits of"):
        place_of(tmp_path, "all", "images")
    with pytest.raises(ValueError, match="has no folder 'valid' for the split 'valid'. If the images are directly"):
        place_of(tmp_path, "valid", "images")
    with pytest.raises(FileNotFoundError, match="There is no folder '.*none'. A recipe names it"):
        place_of(tmp_path / "none", "all", "images")


def test_names_of_classes_are_lines(tmp_path):
    (tmp_path / "a\nb").mkdir()
    with pytest.raises(ValueError, match="The name of a class folder must be one line of UTF-8. Received: 'a"):
        class_folders(tmp_path)

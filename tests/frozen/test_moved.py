"""Indexes whose folder was moved, or that another system wrote."""

import json
import shutil
import warnings

import numpy as np
import pytest

import keras_vit
from keras_vit.frozen import moved


@pytest.fixture
def place(folder, model, tmp_path):
    """A folder with an index and its images."""
    shutil.copytree(folder, tmp_path / "here" / "photos")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keras_vit.embed_folder(tmp_path / "here" / "photos", model, tmp_path / "here" / "all.npz")
    return tmp_path / "here"


def files_of(index):
    return [index.file(i) for i in range(len(index.paths))]


@pytest.mark.parametrize("now", ["photos renamed", "both elsewhere", "given"])
def test_a_folder_that_was_moved_is_found(now, place, tmp_path, model):
    more = {}
    if now == "photos renamed":
        (place / "photos").rename(place / "moved")
    elif now == "both elsewhere":
        place = place.rename(tmp_path / "there")
    else:
        more = {"folder": (place / "photos").rename(tmp_path / "far")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        index = keras_vit.load_index(place / "all.npz", **more)
    assert all(path.is_file() for path in files_of(index))
    assert bool(more) != any("has the same images, and is taken" in str(each.message) for each in caught)
    keras_vit.nearest(index, files_of(index)[:1], 2, model=model)


def test_one_that_is_nowhere_is_said_to_be(place, tmp_path, model):
    (place / "photos").rename(tmp_path / "far")
    (place / "other").mkdir()
    index = keras_vit.load_index(place / "all.npz")
    with pytest.warns(UserWarning, match="photos', is not there, and none of the images that are found"):
        found = keras_vit.nearest(index, tmp_path / "far" / "dark" / "0.png", 1, model=model)
    assert found[0][0][0] == str(place / "photos" / "dark" / "0.png")
    with pytest.raises(FileNotFoundError, match="must have the images of .* Received: .*other', without 'dark/0.png'"):
        keras_vit.load_index(place / "all.npz", folder=place / "other")


def test_an_index_of_windows(place, model):
    arrays = dict(np.load(place / "all.npz"))
    about = json.loads(str(arrays["about"])) | {"folder": "D:\\me\\photos"}
    arrays |= {"paths": np.char.replace(arrays["paths"], "/", "\\"), "about": np.array(json.dumps(about))}
    np.savez(place / "windows.npz", **arrays)
    with pytest.warns(UserWarning, match="photos' has the same images"):
        index = keras_vit.load_index(place / "windows.npz")
    assert all(path.is_file() for path in files_of(index))
    assert set(keras_vit.knn(index, files_of(index)[:1], model=model)[0]) == {"dark", "light"}
    assert moved.with_slashes(np.array(["a\\b"]), "/photos").tolist() == ["a\\b"]  # a name that others allow

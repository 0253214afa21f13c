import numpy as np
import pytest

from keras_vit.inspecting import opening
from tests.inspecting.conftest import an_index, picture, save
from tests.inspecting.test_of_recipe import recipe, said


def test_an_index_has_what_its_recipe_says(divided):
    names = ["train/cat/00.png", "val/cat/02.png", "elsewhere.png"]
    index = an_index(divided, names, np.eye(3))
    pictures, vectors = opening.opened(index, recipe=recipe(divided, train="train", validation="val", test="test"))
    assert said(pictures) == [("train/cat/00.png", "cat", "train"), ("val/cat/02.png", "cat", "validation")]
    np.testing.assert_array_equal(vectors, np.eye(3)[:2])
    save(picture(0), divided.parent / "others" / "a" / "0.png")
    with pytest.raises(ValueError, match="`recipe` must be of the files that are inspected. Received: one of"):
        opening.opened(
            an_index(divided.parent / "others", ["a/0.png"], np.eye(1)),
            recipe=recipe(divided, train="train", validation="val", test="test"),
        )


def test_labels_are_of_all_pictures_without_vectors_too(tmp_path, cache):
    for i in range(2):
        save(picture(i), tmp_path / "images" / f"{i}.png")
        save(picture(i), tmp_path / "masks" / f"{i}.png")
    pictures, _ = opening.opened(tmp_path, labels=[*"abcd"])
    assert [pictures.label(i) for i in range(2)] == ["a", "b"]
    with pytest.raises(ValueError, match="one for each of the 4 pictures. Received: 2"):
        opening.opened(tmp_path, labels=[*"ab"])


def test_a_moved_folder_is_named(divided):
    index = an_index("/nowhere", ["train/cat/00.png", "val/cat/02.png"], np.eye(2))
    pictures, _ = opening.opened(index)
    assert pictures.images is None and "pass where it is now" in pictures.left_out[0]
    assert opening.opened(index, folder=divided)[0].images[0] == str(divided / "train/cat/00.png")


def test_clips_have_vectors_alone(tmp_path):
    pictures, _ = opening.opened(an_index(tmp_path, ["a/0.mp4", "b/0.mp4"], np.eye(2)))
    assert pictures.images is None and "the index is of clips" in pictures.left_out[0] and pictures.label(0) == "a"


def test_tokens_of_patches_are_refused(tmp_path):
    with pytest.raises(ValueError, match="one vector for each image"):
        opening.opened(an_index(tmp_path, ["a.png", "b.png"], np.ones((2, 2, 2, 3))))


def test_rows_stay_with_their_pictures(tmp_path, cache):
    """Of an index of images and masks, then of those that a recipe reads; labels are for all of the index."""
    for name in ("images/train/a/0.png", "images/train/b/1.png", "images/val/a/2.png", "masks/train/0.png"):
        save(picture(0), tmp_path / name)
    names = ["images/train/a/0.png", "masks/train/0.png", "images/train/b/1.png", "images/val/a/2.png"]
    index = an_index(tmp_path, names, np.eye(4))
    pictures, vectors = opening.opened(index, labels=[*"wxyz"])
    assert [pictures.label(i) for i in range(3)] == ["w", "y", "z"] and vectors.argmax(1).tolist() == [0, 2, 3]
    assert pictures.left_out == ("1 pictures in folders of masks, annotations and the like",)
    asked = recipe(tmp_path / "images" / "train", train="all[:50%]", validation="all[50%:]", test="all[50%:]")
    pictures, vectors = opening.opened(index, recipe=asked)
    assert pictures.names == [names[0], names[2]] and vectors.argmax(1).tolist() == [0, 2]

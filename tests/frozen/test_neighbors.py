import keras
import numpy as np
import pytest
from PIL import Image

import keras_vit
from keras_vit.frozen import neighbors as neighbors
from keras_vit.utils.warned import LeftOut
from tests.marks import slow_on_jax
from tests.towers import LENGTH, WORDS, two_towers

pytestmark = [pytest.mark.backend, pytest.mark.filterwarnings("ignore::keras_vit.utils.warned.LeftOut")]


def test_an_image_is_nearest_to_itself(index, model):
    found = keras_vit.nearest(index, [index.file(3), index.file(7)], 2, model=model)
    assert [answers[0][0] for answers in found] == [str(index.file(3)), str(index.file(7))]
    assert all(abs(answers[0][1] - 1) < 1e-5 and answers[1][1] <= answers[0][1] for answers in found)


def test_vectors_need_no_model(index):
    found = keras_vit.nearest(index, index.vectors[:1], 11)[0]
    unit = index.vectors / np.linalg.norm(index.vectors, axis=1, keepdims=True)
    similarities = unit @ unit[0]
    assert [path for path, _ in found] == [str(index.file(i)) for i in np.argsort(-similarities)]
    np.testing.assert_allclose([s for _, s in found], np.sort(similarities)[::-1], atol=1e-5)


@slow_on_jax
def test_the_index_s_named_model_is_loaded(folder, tmp_path):
    out = keras_vit.embed_folder(folder, "mnist", tmp_path / "named.npz")
    path = folder / "dark" / "0.png"
    assert keras_vit.nearest(out, path, 1)[0][0][0] == str(path)


def test_classes_are_those_of_the_neighbors_folders(index):
    labels = ["light" if "light" in path else "dark" for path in index.paths]
    answers = keras_vit.knn(index, index.vectors, labels, k=3)
    assert [next(iter(answer)) for answer in answers] == labels
    assert all(abs(sum(answer.values()) - 1) < 1e-6 for answer in answers)
    assert set(keras_vit.knn(index, index.vectors[:1])[0]) == {"dark", "light"}


def test_a_class_is_the_first_folder_as_in_training(index, tmp_path):
    """As `fit` on the folder: the images of all its subfolders, and none of those outside a class folder."""
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    from keras_vit.config import Data
    from keras_vit.data import sources

    paths = ["cat/black/0.png", "cat/white/0.png", "dog/2023/0.png", "dog/0.png", "x.png"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(tmp_path / path, np.full((4, 4, 3), 9), scale=False)
    trained = sources.load(Data(source=f"folder:{tmp_path}"), "all")
    about = {**index.about, "folder": str(tmp_path)}
    nested = index._replace(vectors=index.vectors[:5], paths=np.array(paths), about=about)
    names, classes, inside = neighbors.classes_of(nested)
    assert tuple(names) == trained.class_names == ("cat", "dog")
    theirs = dict(zip(map(str, trained.images), trained.labels.tolist()))
    assert dict(zip([str(nested.file(i)) for i in inside], classes.tolist())) == theirs
    [answer] = keras_vit.knn(nested, index.vectors[4:5], k=5)
    assert set(answer) == {"cat", "dog"}
    for paths, said in (
        (["train/cat/0.png", "train/dog/0.png", "val/cat/0.png"], "must be classes, not splits.*Received: train, val"),
        (["0.png", "1.png", "2.png"], "At least two classes are needed.*Received: images outside a folder"),
    ):
        with pytest.raises(ValueError, match=said):
            keras_vit.knn(index._replace(vectors=index.vectors[:3], paths=np.array(paths)), index.vectors)


def test_one_bad_file_does_not_end_the_others(index, model, folder):
    files = [folder / name for name in ("dark/0.png", "light/0.png", "light/1.png")]  # the second cannot be read
    for search in (keras_vit.nearest, keras_vit.knn):
        with pytest.raises(ValueError, match="0.png' is not a PNG"):
            search(index, files, model=model)
        with pytest.warns(LeftOut, match="Left out 1 of 3 images, which cannot be read:\n.*0.png' is not a PNG"):
            first, bad, last = search(index, files, model=model, bad_images="skip")
        assert not bad and [first, last] == search(index, [files[0], files[2]], model=model)
    with pytest.raises(ValueError, match="No image could be read. The first of 1: .*0.png' is not a PNG"):
        keras_vit.nearest(index, files[1], model=model, bad_images="skip")
    with pytest.raises(ValueError, match="`bad_images` must be one of 'raise', 'skip'. Received: bad_images='drop'"):
        keras_vit.nearest(index, files, model=model, bad_images="drop")


@pytest.mark.parametrize("head", [pytest.param(True, marks=slow_on_jax), False])
def test_texts_find_images_in_the_common_space(head, folder, tmp_path):
    """On an index of the image tower, which leaves out the projection: the tower's head."""
    both = two_towers(head=head)
    image, text, tokens = both.get_layer("image"), both.get_layer("text"), keras_vit.tokenizer(WORDS, LENGTH)
    bare = keras_vit.vit("mu/4", image_size=(12, 8), pooling="gap", num_classes=0, depth=1, name="bare")
    bare.set_weights(image.get_weights()[: len(bare.weights)])
    found = []
    for given, texts in ((image, "a red car"), (both, ["a red car", "dog"]), (bare, "a red car")):
        index = keras_vit.embed_folder(folder, given, tmp_path / f"{given.name}.npz")
        found.append(keras_vit.nearest(index, texts, 11, model=both, tokens=tokens))
    paths = [path for path, _ in found[0][0]]
    assert paths == [path for path, _ in found[1][0]] and found[0] == found[2] and len(found[1]) == 2
    vectors = keras.ops.convert_to_numpy(image(keras_vit.preprocess(image, paths)))
    query = keras.ops.convert_to_numpy(text(tokens("a red car")))[0]
    wanted = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    np.testing.assert_allclose([similarity for _, similarity in found[0][0]], wanted, atol=1e-5)
    assert (np.diff(wanted) < 1e-6).all()


def test_texts_need_the_index_s_towers(index, folder, tmp_path):
    both, other = two_towers(), two_towers(seed=1)
    made = keras_vit.embed_folder(folder, both, tmp_path / "both.npz")
    for given, said in (
        (dict(model=other, tokens=WORDS), "`model` must be the index's: the same weights"),
        (dict(model=both.get_layer("image"), tokens=WORDS), "`model` must have an image tower and a text tower"),
        (dict(model=both, tokens=[*WORDS, "boat"]), "whose table has 12 rows"),
        (dict(tokens=WORDS), "made with a model that has no name: pass it"),
    ):
        with pytest.raises(ValueError, match=said):
            keras_vit.nearest(made, "a red car", 2, **given)


def test_bad_input(index, model, folder):
    keras.utils.set_random_seed(1)
    other = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=2, pooling="gap")
    file = index.file(0)
    with pytest.raises(ValueError, match="`model` must be the index's: the same weights"):
        keras_vit.nearest(index, file, model=other)
    with pytest.raises(ValueError, match="made with a model that has no name: pass it. Received: model=None"):
        keras_vit.nearest(index, file)
    with pytest.raises(ValueError, match="`k` must be at most the 11 images of the index. Received: k=12"):
        keras_vit.nearest(index, index.vectors, 12)
    with pytest.raises(ValueError, match=r"have the index's width, \d+. Received: shape \(2, 3\)"):
        keras_vit.nearest(index, np.zeros((2, 3), "float32"))
    with pytest.raises(ValueError, match="must be finite"):
        keras_vit.nearest(index, np.full_like(index.vectors, np.nan))
    with pytest.raises(ValueError, match="must be finite, not zero"):
        keras_vit.nearest(index, np.zeros_like(index.vectors))
    with pytest.raises(ValueError, match="one for each of the 11 images. Received: 2"):
        keras_vit.knn(index, index.vectors, ["a", "b"])
    with pytest.raises(ValueError, match="At least two classes are needed, one folder each. Received: 'a' only"):
        neighbors.classes_of(index, ["a"] * 11)


def test_one_vector_a_list_and_a_gray_picture(index):
    rows = [keras_vit.nearest(index, given, 1) for given in (index.vectors[2], list(index.vectors[:2]))]
    assert [[answers[0][0] for answers in row] for row in rows] == [
        [str(index.file(2))], [str(index.file(0)), str(index.file(1))],
    ]  # fmt: skip
    picture = np.abs(index.vectors[:3]) * 10
    with pytest.raises(ValueError, match=r"may be a gray picture or vectors: pass \[picture\].*Received: shape \(3, "):
        keras_vit.nearest(index, picture, 1)
    assert len(keras_vit.nearest(index, list(picture), 1)) == 3


def test_vectors_of_texts_are_searched_with_and_without_the_projection(folder, tmp_path):
    both = two_towers()
    image, ids = both.get_layer("image"), np.array([[5, 7, 1, 0, 0, 0, 0, 0]])
    text = np.asarray(both.get_layer("text")(ids))
    plain = keras_vit.load_index(keras_vit.embed_folder(folder, both, tmp_path / "plain.npz"))
    after = keras_vit.load_index(keras_vit.embed_folder(folder, both, tmp_path / "after.npz", projected=True))
    pixels = np.concatenate([keras_vit.preprocess(image, after.file(i)) for i in range(11)])
    np.testing.assert_allclose(after.vectors, np.asarray(image(pixels)), atol=1e-5)
    width = plain.vectors.shape[1]
    assert after.projection is None and plain.projection.shape == (width + 1, 5)
    assert plain.about["vectors"] == "what enters the layer 'head'" and after.about["vectors"] == "the model's output"
    found = [keras_vit.nearest(index, text, 11)[0] for index in (plain, after)]
    found.append(keras_vit.nearest(after, "red cat", 11, model=both, tokens=lambda texts: ids)[0])
    for one, other, named in zip(*found):
        assert one[0] == other[0] == named[0] and abs(one[1] - other[1]) < 1e-5 and abs(one[1] - named[1]) < 1e-5
    assert keras_vit.nearest(after, [after.file(0)], 1, model=both)[0][0][0] == str(after.file(0))
    with pytest.raises(ValueError, match=rf"{width}, or that of texts, 5. Received: shape \(1, 7\)"):
        keras_vit.nearest(plain, -np.ones((1, 7), "float32"))


def test_the_head_of_a_classifier_is_no_projection(folder, tmp_path):
    model = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=3, depth=1)
    with pytest.raises(ValueError, match="`projected` is for models of images and texts, such as CLIP. Received: "):
        keras_vit.embed_folder(folder, model, tmp_path / "it.npz", projected=True)
    assert keras_vit.load_index(keras_vit.embed_folder(folder, model, tmp_path / "it.npz")).projection is None


def test_pictures_of_other_formats_are_left_out_by_name(tmp_path):
    pictures, model = tmp_path / "pictures", keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=1)
    pictures.mkdir()
    for ending, kind in ((".jfif", "JPEG"), (".jpe", "JPEG"), (".tif", "TIFF"), (".ico", "ICO"), (".ppm", "PPM")):
        Image.new("RGB", (16, 16)).save(pictures / f"it{ending}", kind)
    (pictures / "notes.txt").write_text("mine")
    with pytest.warns(LeftOut, match="Left out 2 of 5 images"):
        index = keras_vit.load_index(keras_vit.embed_folder(pictures, model, tmp_path / "it.npz"))
    assert [*index.paths] == ["it.jfif", "it.jpe", "it.tif"]
    assert sorted(index.left_out[:, 0]) == ["it.ico", "it.ppm"]

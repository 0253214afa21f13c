import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.frozen import neighbours

pytestmark = pytest.mark.backend


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


def test_the_index_s_named_model_is_loaded(folder, tmp_path):
    out = keras_vit.embed_folder(folder, "mnist", tmp_path / "named.npz")
    path = folder / "dark" / "0.png"
    assert keras_vit.nearest(out, path, 1)[0][0][0] == str(path)


def test_classes_are_those_of_the_neighbours_folders(index):
    labels = ["light" if "light" in path else "dark" for path in index.paths]
    answers = keras_vit.knn(index, index.vectors, labels, k=3)
    assert [next(iter(answer)) for answer in answers] == labels
    assert all(abs(sum(answer.values()) - 1) < 1e-6 for answer in answers)
    assert set(keras_vit.knn(index, index.vectors[:1])[0]) == {"dark", "deep", "light"}


def test_bad_input(index, model, folder):
    keras.utils.set_random_seed(1)
    other = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=2, pooling="gap", weights=None)
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
    with pytest.raises(ValueError, match="one for each of the 11 images. Received: 2"):
        keras_vit.knn(index, index.vectors, ["a", "b"])
    with pytest.raises(ValueError, match="At least two classes are needed, one folder each. Received: 'a' only"):
        neighbours.classes_of(index, ["a"] * 11)

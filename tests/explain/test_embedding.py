import keras
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from keras_vit import vit
from keras_vit.explain import embed, nearest, project
from tests.explain.models import IMAGES, shared

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.eye(3), 20, 0) @ (20 * RNG.normal(size=(3, 16))) + RNG.normal(size=(60, 16))


@pytest.mark.parametrize("kind", ["token", "distilled", "map"])  # a head, two heads, a head in float32
def test_the_head_gives_the_logits_of_the_vector(kind):
    model = shared(kind)
    vectors = embed(model, IMAGES, batch_size=2)
    assert vectors.shape == (3, 32)
    if kind != "distilled":
        logits = keras.ops.convert_to_numpy(model.get_layer("head")(vectors))
        np.testing.assert_allclose(
            logits, keras.ops.convert_to_numpy(model(IMAGES)), atol=0.1 if kind == "map" else 1e-4
        )


def test_a_model_without_a_head_gives_its_output():
    model = vit("mu/4", image_size=(12, 8), num_classes=0, depth=1)
    np.testing.assert_allclose(embed(model, IMAGES), keras.ops.convert_to_numpy(model(IMAGES)), atol=1e-5)
    with pytest.raises(ValueError, match=r"outputs \(None, 6, 32\)"):
        embed(vit("mu/4", image_size=(12, 8), num_classes=0, depth=1, pooling="none"), IMAGES)


@threadpool_limits.wrap(limits=1)  # threads that wait for each other are slower on a few vectors
@pytest.mark.parametrize("method", ["pca", "tsne", "umap"])
def test_groups_stay_apart(method):
    if method == "umap":
        pytest.importorskip("umap", reason="umap-learn is not installed")
    points = project(GROUPS, method)
    assert points.shape == (60, 2) and points.dtype == np.float32
    centers = points.reshape(3, 20, 2).mean(1)
    found = np.linalg.norm(points[:, None] - centers, axis=-1).argmin(1)
    np.testing.assert_array_equal(found, np.repeat(np.arange(3), 20))
    if method != "umap":
        np.testing.assert_allclose(project(GROUPS, method), points, rtol=1e-3, atol=1e-3)


def test_nearest_by_cosine():
    indices, cosines = nearest(GROUPS, 3 * GROUPS[[5, 45]], 20)
    assert indices[:, 0].tolist() == [5, 45]
    np.testing.assert_allclose(cosines[:, 0], 1, atol=1e-6)
    assert set(indices[1]) == set(range(40, 60)) and (np.diff(cosines) <= 1e-7).all()


@threadpool_limits.wrap(limits=1)
def test_few_vectors_and_bad_input():
    assert project(GROUPS[:3], "tsne").shape == (3, 2)
    with pytest.raises(ValueError, match=r"shape=\(2, 16\)"):
        project(GROUPS[:2])
    with pytest.raises(ValueError, match="method='lda'"):
        project(GROUPS, "lda")
    with pytest.raises(ValueError, match="at most the 60 vectors. Received: count=61"):
        nearest(GROUPS, GROUPS, 61)


@pytest.mark.parametrize("method", ["pca", "tsne", "umap"])
def test_equal_vectors_have_one_place(method):
    if method == "umap":
        pytest.importorskip("umap", reason="umap-learn is not installed")
    for vectors in (np.ones((12, 8)), np.repeat(RNG.normal(size=(2, 8)), 10, 0), np.repeat(GROUPS[::10], 4, 0)):
        points = project(vectors, method)
        assert points.shape == (len(vectors), 2) and np.isfinite(points).all()
        _, place = np.unique(np.float32(vectors), axis=0, return_inverse=True)
        for one in range(place.max() + 1):
            np.testing.assert_allclose(points[place == one].std(0), 0, atol=1e-4)


def test_what_follows_the_head_is_no_embedding():
    model = vit("mu/4", image_size=(12, 8), num_classes=5, name="inside")
    expected = embed(model, IMAGES)
    made = [
        keras.Sequential([model, keras.layers.Softmax()]),
        keras.Model(model.input, keras.layers.Softmax()(keras.layers.Dense(3)(model.get_layer("pool").output))),
    ]
    for each in made:
        np.testing.assert_allclose(embed(each, IMAGES), expected, atol=1e-5)

import numpy as np

from keras_vit.inspecting import graph


def test_neighbors_are_those_of_all_pairs(monkeypatch):
    monkeypatch.setattr(graph, "BLOCK", 7)
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype("float32")
    found = graph.graph(vectors, 5)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(found.neighbors, np.argsort(distances, 1)[:, :5])
    np.testing.assert_allclose(found.distances, np.sort(distances, 1)[:, :5], atol=1e-6)


def test_no_vector_is_its_own_neighbor():
    """Not among many equal ones either, nor where there are fewer than asked for."""
    for count in (4, 40):
        found = graph.graph(np.ones((count, 3), "float32"))
        assert found.neighbors.shape == (count, min(count - 1, graph.NEIGHBORS))
        assert not (found.neighbors == np.arange(count)[:, None]).any() and (found.distances < 1e-6).all()

import numpy as np

from keras_vit.tasks.pretrain import embedding_tally

IMAGES = np.zeros((6, 8, 8, 1), "float32")


def embeddings(count):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, count)
    return rng.normal(size=(count, 4)) + 9 * np.eye(4)[labels], labels


def test_the_tally_is_the_accuracy_of_neighbors(monkeypatch):
    monkeypatch.setattr(embedding_tally, "KEPT", 50)
    vectors, labels = embeddings(90)
    tally = embedding_tally.EmbeddingTally()
    for i in range(0, 90, 30):
        assert tally.add({"labels": labels[i : i + 30], "images": IMAGES}, vectors[i : i + 30]) is None
    assert len(tally.vectors) == len(tally.labels) == 50  # memory does not grow
    kept = {tuple(vector): label for vector, label in zip(vectors.astype("float32"), labels)}
    assert [kept[tuple(vector)] for vector in tally.vectors] == tally.labels.tolist()
    assert (np.bincount(tally.labels) > 5).all()  # a sample of all, not the first
    assert tally.result() == {"knn_accuracy": 1.0}
    [figure] = tally.figures().values()
    assert len(figure.axes[0].collections) == 3


def test_without_labels_there_is_no_score():
    tally = embedding_tally.EmbeddingTally()
    tally.add({"images": IMAGES}, np.ones((6, 4)))
    assert tally.result() == {} and tally.figures() == {}
    tally.add({"labels": np.array([-1, 0, 0, 1, -1, 1])}, np.float32([[9], [1], [1], [-1], [9], [-1]]))
    assert len(tally.labels) == 4 and tally.result() == {"knn_accuracy": 1.0}  # -1 is no label

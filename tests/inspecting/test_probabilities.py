import numpy as np

from keras_vit.inspecting import probabilities


def test_a_fold_has_as_many_of_each_class_and_copies_share_one():
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], [50, 100, 25])
    groups = np.arange(175)
    groups[[10, 20]] = groups[5]
    folds = probabilities.divided(classes, groups, rng)
    assert folds[5] == folds[10] == folds[20]
    for kind, count in enumerate([50, 100, 25]):
        counts = np.bincount(folds[classes == kind], minlength=5)
        assert counts.sum() == count and np.ptp(counts) <= 3


def test_each_class_is_drawn():
    """Of a million pictures, a sample at random has none of the rare classes."""
    rng = np.random.default_rng(0)
    classes = np.append(np.zeros(100_000, int), [1, 1, 2])
    rows = probabilities.drawn(np.arange(len(classes)), classes, 100, rng)
    assert len({*rows.tolist()}) == 100 and np.bincount(classes[rows]).tolist() == [97, 2, 1]
    assert len(probabilities.drawn(np.arange(50, 90), classes, 100, rng)) == 40


def test_a_class_that_a_fold_would_not_see_is_not_learned():
    """Two pictures of it that are equal share a fold."""
    vectors, classes = np.random.default_rng(0).normal(size=(40, 4)), np.repeat([0, 1], [38, 2])
    assert probabilities.fit(vectors, classes, np.append(np.arange(39), 38)) is None


def test_no_picture_is_judged_by_a_classifier_that_saw_it():
    """Random labels are not learned, though there are enough numbers to learn them by heart."""
    rng = np.random.default_rng(0)
    vectors, classes = rng.normal(size=(200, 150)), rng.integers(0, 2, 200)
    found = probabilities.fit(vectors, classes, np.arange(200))
    own = np.concatenate(
        [each[np.arange(len(rows)), classes[rows]] for rows, each in probabilities.blocks(found, vectors)]
    )
    assert 0.35 < (own > 0.5).mean() < 0.65


def test_blocks_and_rare_classes(monkeypatch):
    monkeypatch.setattr(probabilities, "BLOCK", 30)
    monkeypatch.setattr(probabilities, "TUNED", 60)
    monkeypatch.setattr(probabilities, "LEARNED", 60)
    rng = np.random.default_rng(0)
    classes = np.append(np.arange(100) % 3, 3)  # a single picture of the last
    vectors = rng.normal(0, 0.1, (101, 4)) + np.eye(4)[classes]
    found = probabilities.fit(vectors, classes, np.arange(101))
    blocks = [*probabilities.blocks(found, vectors)]
    assert [len(rows) for rows, _ in blocks] == [30, 30, 30, 11]
    each = np.concatenate([each for _, each in blocks])
    np.testing.assert_allclose(each.sum(1), 1)
    assert (each.argmax(1) == classes)[:100].all() and each[100, 3] == 0

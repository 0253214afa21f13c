import numpy as np

from keras_vit.inspecting import exact, near
from keras_vit.inspecting.graph import graph
from keras_vit.inspecting.pictures import Pictures
from tests.inspecting.conftest import picture
from tests.inspecting.test_crops import part
from tests.inspecting.test_hashes import as_jpeg, drawing, summaries


def pairs_of(splits):
    pictures = Pictures([str(i) for i in range(len(splits))], []).divided(splits)
    return pictures, near.Pairs(pictures.ranks, exact.alone(len(splits)))


def rows(pairs, pictures):
    return sorted((one.kind, one.file, one.other, round(one.score, 2)) for one in pairs.findings(pictures))


def test_each_picture_has_its_best_partner():
    pictures, pairs = pairs_of([None] * 4)
    pairs.add(np.array([0, 3, 1]), np.array([2, 0, 2]), np.array([0.8, 0.7, 0.9]), "a")
    pairs.add(np.array([0]), np.array([3]), np.array([0.95]), "b")
    assert rows(pairs, pictures) == [("near", "2", "1", 0.9), ("near", "3", "0", 0.95)]


def test_a_leak_is_found_beside_better_partners_in_a_split():
    """And each pair is one row."""
    pictures, pairs = pairs_of(["train", "train", "test", "test"])
    pairs.add(np.array([0, 0, 2]), np.array([1, 2, 3]), np.array([0.99, 0.9, 0.99]), "a")
    assert rows(pairs, pictures) == [("leak", "0", "2", 0.9), ("near", "1", "0", 0.99), ("near", "3", "2", 0.99)]


def test_a_leak_into_each_other_split_is_found():
    """Else the second one stays when the first is left out."""
    pictures, pairs = pairs_of(["train", "validation", "test"])
    pairs.add(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0.99, 0.98, 0.97]), "a")
    assert rows(pairs, pictures) == [("leak", "0", "1", 0.99), ("leak", "0", "2", 0.98), ("leak", "1", "2", 0.97)]


def test_equal_pictures_are_not_nearly_equal():
    pictures, pairs = pairs_of(["train", "test"])
    pairs.groups = exact.groups(np.zeros((2, 1), "uint8"), pictures.splits)
    pairs.add(np.array([0]), np.array([1]), np.array([1.0]), "a")
    assert not rows(pairs, pictures)


def test_neighbors_are_decided_by_their_pixels():
    """Of pictures whose vectors are equal, the part of one is found, and no other picture."""
    rng = np.random.default_rng(0)
    images = [picture(i, 48) for i in range(30)]
    images += [part(images[3], 0.85, rng), part(images[4], 0.8, rng)[:, ::-1], picture(99)]
    vectors = rng.normal(size=(33, 16))
    vectors[30:] = vectors[[3, 4, 5]]  # the last is of another picture
    pictures, pairs = pairs_of([None] * 33)
    near.add_crops(pairs, graph(vectors), *summaries(images), np.arange(33))
    found = [(one.file, one.other, one.why) for one in pairs.findings(pictures)]
    assert found == [("30", "3", "a crop"), ("31", "4", "a crop, mirrored")]


def test_plain_neighbors_are_no_crops():
    """Blank pages of a scanner and drawings are alike anyway: only copies of drawings are listed."""
    rng = np.random.default_rng(0)
    shade = 245 + np.linspace(-4, 4, 64)[:, None, None] + rng.normal(0, 0.5, (6, 64, 64, 3))
    images = [*shade.astype("uint8"), *(drawing(i) for i in range(12)), *(picture(i) for i in range(12))]
    images.append(as_jpeg(images[6], 75))
    vectors = rng.normal(size=(31, 8))
    for rows in (slice(0, 6), [*range(6, 18), 30]):
        vectors[rows] = vectors[rows][:1] + rng.normal(size=vectors[rows].shape) * 0.01
    pictures, pairs = pairs_of([None] * 31)
    near.add_crops(pairs, graph(vectors), *summaries(images), np.arange(31))
    assert [(one.file, one.other) for one in pairs.findings(pictures)] == [("30", "6")]


def test_closeness_follows_the_vectors():
    """Vectors of another model are closer together: the same pairs are found."""
    vectors = np.random.default_rng(0).normal(size=(60, 32))
    vectors[1] = vectors[0] + 0.05
    for shift in (0, 20):  # all within a narrow cone
        pictures, pairs = pairs_of([None] * 60)
        near.add_close(pairs, graph(vectors + shift), np.arange(60))
        assert [one[:3] for one in rows(pairs, pictures)] == [("near", "1", "0")]
